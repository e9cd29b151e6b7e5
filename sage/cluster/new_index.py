"""The index of a new generation: an empty one, or a copy of another with the settings we rely on.

It is there when a node holds it; where none does, the cluster is asked why, and nothing is left.
"""

import time
from collections.abc import Mapping
from typing import Any

from sage.cluster import generations
from sage.cluster.connection import Conflict, Connection, DiskFull, soon
from sage.errors import Unavailable

_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_PLACES = ("index.routing.allocation.", "index.routing.rebalance.")
_OWN = "index.routing.allocation.initial_recovery."
"""Set by the cluster itself when it copies, and by nobody else."""
_FULL = ("index.blocks.read_only_allow_delete", "index.blocks.read_only")


def create(connection: Connection, name: str, body: Mapping[str, Any]) -> None:
    """Make an empty index.

    Raises:
        Unavailable: it is there already, or no node takes it.
    """
    try:
        connection.request("PUT", f"/{name}?wait_for_active_shards=0", body, soon(), again=False)
    except Conflict as error:
        raise Unavailable(generations.not_ours(name)) from error
    _wait(connection, name)


def copy(connection: Connection, original: str, name: str) -> None:
    """Make a copy of an index that can be written, whatever was set for the original since.

    Raises:
        DiskFull: the cluster has closed the original to all writes.
        Unavailable: it is there already, or no node takes it.
    """
    answer = connection.get(f"/{original}/_settings?flat_settings=true", soon())
    held: dict[str, Any] = answer[original]["settings"]
    for setting in _FULL:
        if held.get(setting) == "true":
            raise DiskFull(f"{original} has {setting}")
    places = [one for one in held if one.startswith(_PLACES) and not one.startswith(_OWN)]
    settings = {
        **dict.fromkeys(places),
        "index.blocks.write": None,
        "index.auto_expand_replicas": "0-1",
        "index.refresh_interval": "-1",
    }
    path = f"/{original}/_clone/{name}?wait_for_active_shards=0"
    try:
        connection.request("POST", path, {"settings": settings}, soon(), again=False)
    except Conflict as error:
        raise Unavailable(generations.not_ours(name)) from error
    _wait(connection, name)


def _wait(connection: Connection, name: str) -> None:
    """Wait until a node holds every part of it.

    A copy gets the mapping of its original only then: to describe it before would be its end.
    """
    until = time.monotonic() + _WAIT_SECONDS
    why = ""
    while not why and time.monotonic() < until:
        if generations.is_whole(connection, name, soon()):
            return
        why = _refused(connection, name)
        time.sleep(_PAUSE_SECONDS)
    generations.delete(connection, name, soon())
    raise Unavailable(
        f"no node takes the new index {name}: {why or 'it is not ready after a minute'}; "
        "what was served is served still; see to the nodes and their disks, then publish again"
    )


def _refused(connection: Connection, name: str) -> str:
    """Why no node takes the first part of an index; empty while one may."""
    part = {"index": name, "shard": 0, "primary": True}
    told = connection.request("POST", "/_cluster/allocation/explain", part, soon())
    if told.get("can_allocate") != "no":
        return ""
    reasons = [
        decider["explanation"]
        for node in told.get("node_allocation_decisions", ())
        for decider in node.get("deciders", ())
        if decider["decision"] == "NO"
    ]
    return "; ".join(dict.fromkeys(reasons))[:600] or str(told.get("allocate_explanation", ""))
