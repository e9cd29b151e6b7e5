"""Which generations a base has in its cluster: how one is made, which is served, when one goes.

A new one is there when a node holds it; where none does, the cluster is asked why, and nothing is
left. An old one stays for a while after the alias left it, for calls that still read it. It says
itself when the alias left; where it does not, because the publish that moved the alias died,
whoever finds it says so: nothing is removed too early, and nothing stays for ever.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sage.cluster.connection import Connection, soon, taken_apart
from sage.cluster.exchange import from_json
from sage.cluster.node_errors import Conflict, DiskFull, NotThere
from sage.cluster.schema import MAPPING, PAGE, Name, parse_name, pattern
from sage.deadline import Deadline
from sage.errors import ConfigError, NotFound, Unavailable, did_you_mean

logger = logging.getLogger("sage.cluster")

STARTING_SECONDS = 20
_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_PLACES = ("index.routing.allocation.", "index.routing.rebalance.")
_OWN = "index.routing.allocation.initial_recovery."
"""Set by the cluster itself when it copies, and by nobody else."""
_FULL = ("index.blocks.read_only_allow_delete", "index.blocks.read_only")
_MOST_ANCESTORS = 100
"""A replica that misses more generations in a row loads all."""
MOVED_SECONDS = 300.0
"""Longer than it can take from the time that a generation says to the move of the alias to it."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What a generation says of itself."""

    source: str
    generation: int
    """One more than that of the generation that it was copied from."""
    key: str
    """Of this generation alone: another one may get the same name when this one is gone."""
    ancestors: Sequence[str] = ()
    """The keys of those that it descends from by copying, the nearest first: of these alone is
    known that what has a higher number than theirs is all that changed since."""
    commit: str = ""
    published: float = 0.0
    """When the alias moved to it, in seconds since 1970; 0 while it is being written."""
    documents: int = 0
    sections: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What replicas need of the settings of the repository."""
    retired: float = 0.0
    """When the alias left it."""
    model: str = ""
    """What made the vectors of its pages; empty without any."""
    content: str = ""
    """The hash of all that it holds. A copy that nobody finished says that of its original."""

    @property
    def lineage(self) -> Sequence[str]:
        """The ancestors of a copy of it."""
        return (self.key, *self.ancestors)[:_MOST_ANCESTORS]

    @property
    def counts(self) -> tuple[int, int]:
        """The pages and sections that it holds."""
        return self.documents, self.sections

    def to_json(self) -> dict[str, Any]:
        # As text: a mapping's own objects would be merged with those before.
        return {"sage": json.dumps(asdict(self), ensure_ascii=False)}


_IS_RED = {"green": False, "yellow": False, "red": True}
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("source", "key", "commit", "model", "content"), str),
    **dict.fromkeys(("generation", "documents", "sections"), int),
    **dict.fromkeys(("published", "retired"), (int, float)),
    "ancestors": list,
    "settings": dict,
}


def meta_from(name: str, mapping: Mapping[str, Any]) -> Meta:
    """What the mapping of an index says.

    Raises:
        Unavailable: it says nothing that SAGE wrote.
    """
    try:
        said = from_json(mapping["mappings"]["_meta"]["sage"])
        is_ours = isinstance(said["source"], str)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable(not_ours(name)) from error
    if not is_ours:
        raise Unavailable(not_ours(name))
    # Another version may say more, or less: what it has no key for goes by its name.
    known = {key: said[key] for key, kind in _KINDS.items() if isinstance(said.get(key), kind)}
    return Meta(**{"generation": 0, "key": name, **known})


def not_ours(name: str) -> str:
    """What to do about an index in a place of ours."""
    return (
        f"the index {name} was not written by SAGE and stands where a generation would; "
        "remove it, or take it out of the alias, if nobody needs it"
    )


@taken_apart("the question for the health of an index")
def is_red(connection: Connection, name: str, deadline: Deadline) -> bool:
    """Whether a part of an index is gone; a cluster that has just started gets a moment."""
    wait = f"wait_for_status=yellow&timeout={STARTING_SECONDS}s"
    return _IS_RED[connection.get(f"/_cluster/health/{name}?{wait}", deadline)["status"]]


@taken_apart("the question for the health of an index")
def is_whole(connection: Connection, name: str, deadline: Deadline) -> bool:
    """Whether a node holds every part of an index and can write into it."""
    answer = connection.get(f"/_cluster/health/{name}?level=indices", deadline)
    held = answer["indices"].get(name, {"number_of_shards": 1, "active_primary_shards": 0})
    return bool(held["active_primary_shards"] == held["number_of_shards"])


@taken_apart("the question for the alias")
def served(connection: Connection, deadline: Deadline) -> tuple[str, ...]:
    """The indexes that the alias knows, in order."""
    base = connection.options.base
    try:
        found = connection.get(f"/_alias/{base}", deadline)
    except NotThere:
        return ()
    if not found or not all(base in one["aliases"] for one in found.values()):
        raise LookupError("an alias that leads nowhere is not there")
    return tuple(sorted(found))


def refuse_unknown(connection: Connection, source: str, deadline: Deadline) -> None:
    """See that something of a source lies in the cluster.

    Raises:
        NotFound: nothing does; it names the sources that are served.
    """
    if all_of(connection, source, deadline):
        return
    base = connection.options.base
    names = [parts.source for parts in map(parse_name, served(connection, deadline)) if parts]
    there = f"its sources are {', '.join(names)}{did_you_mean(source, names)}"
    nothing = "nothing at all is; look at --base and --url"
    raise NotFound(
        f"nothing is published as --source {source} in the base {base}: "
        f"{there if names else nothing}"
    )


def refuse_index(connection: Connection, deadline: Deadline) -> None:
    """See that the name of the base can be that of an alias, before anything is written.

    Raises:
        ConfigError: an index has that name.
    """
    base = connection.options.base
    try:
        found = connection.get(f"/{base}/_settings/index.uuid", deadline)
    except NotThere:
        return
    if base in found:
        raise ConfigError(f"--base {base}: the cluster has an index of that name; use another one")


def metas(
    connection: Connection, names: Iterable[str], deadline: Deadline
) -> Iterator[tuple[str, Meta]]:
    """What each of some indexes says of itself."""
    for name in names:
        answer = connection.get(f"/{name}/_mapping", deadline)
        parts = parse_name(name)
        if parts is None:
            raise Unavailable(not_ours(name))
        if parts.mapping != MAPPING:
            raise Unavailable(
                f"{name} was published by another version of SAGE; publish again with this one"
            )
        with taken_apart("the question for an index"):
            meta = meta_from(name, answer[name])
        yield name, meta


def all_of(connection: Connection, source: str, deadline: Deadline) -> dict[str, Meta]:
    """Every generation of a source that lies in the cluster, finished or not, of any version."""
    base = connection.options.base
    found = connection.get(
        f"/{pattern(base, source)}/_mapping?ignore_unavailable=true&allow_no_indices=true", deadline
    )
    held: dict[str, Meta] = {}
    for name, mapping in found.items():
        parts = parse_name(name)
        if parts is None or (parts.base, parts.source) != (base, source):
            continue
        try:
            held[name] = meta_from(name, mapping)
        except Unavailable as error:
            logger.warning("%s", error)  # it is not ours to touch
    return held


def write_meta(connection: Connection, name: str, meta: Meta, deadline: Deadline) -> None:
    """Let an index say something else of itself."""
    connection.change("PUT", f"/{name}/_mapping", {"_meta": meta.to_json()}, deadline)


@taken_apart("the question for an index")
def write_retired(connection: Connection, name: str, when: float, deadline: Deadline) -> None:
    """Let an index say when the alias left it, and all that another version says besides."""
    mapping = connection.get(f"/{name}/_mapping", deadline)[name]
    said = from_json(mapping["mappings"]["_meta"]["sage"])
    meta = {"sage": json.dumps({**said, "retired": when}, ensure_ascii=False)}
    connection.change("PUT", f"/{name}/_mapping", {"_meta": meta}, deadline)


@taken_apart("the question for what was written")
def check_counts(connection: Connection, name: str, meta: Meta, deadline: Deadline) -> None:
    """See that an index holds what it says; one that does not is removed.

    Raises:
        Unavailable: it does not.
    """
    query = {"term": {"kind": PAGE}}
    sums = {"sections": {"sum": {"field": "sections"}}}
    body = {"size": 0, "query": query, "track_total_hits": True, "aggs": sums}
    answer = connection.request("POST", f"/{name}/_search", body, deadline)
    found = answer["hits"]["total"]["value"], int(answer["aggregations"]["sections"]["value"])
    if found != meta.counts:
        delete(connection, name, soon())
        raise Unavailable(
            f"the cluster holds {found[0]:,} pages and {found[1]:,} sections where "
            f"{meta.documents:,} and {meta.sections:,} were written; "
            "what was served is served still; publish again"
        )


def move_alias(connection: Connection, new: Name, old: Iterable[str], deadline: Deadline) -> None:
    """Serve a generation in place of others, all at once."""
    alias = connection.options.base
    actions: list[dict[str, Any]] = [{"add": {"index": str(new), "alias": alias}}]
    actions += [{"remove": {"index": name, "alias": alias}} for name in old]
    connection.change("POST", "/_aliases", {"actions": actions}, deadline)


def delete(connection: Connection, name: str, deadline: Deadline) -> None:
    """Remove an index; that it is gone already is as good."""
    try:
        connection.change("DELETE", f"/{name}", None, deadline)
    except NotThere:
        return


def create(connection: Connection, name: str, body: Mapping[str, Any]) -> None:
    """Make an empty index.

    Raises:
        Unavailable: it is there already, or no node takes it.
    """
    try:
        connection.change("PUT", f"/{name}?wait_for_active_shards=0", body, soon(), again=False)
    except Conflict as error:
        raise Unavailable(not_ours(name)) from error
    _wait(connection, name)


def copy(connection: Connection, original: str, name: str) -> None:
    """Make a copy of an index that can be written, whatever was set for the original since.

    Raises:
        DiskFull: the cluster has closed the original to all writes.
        Unavailable: it is there already, or no node takes it.
    """
    answer = connection.get(f"/{original}/_settings?flat_settings=true", soon())
    with taken_apart("the question for the settings of an index"):
        held: dict[str, Any] = answer[original]["settings"]
        full = [setting for setting in _FULL if held.get(setting) == "true"]
        places = [one for one in held if one.startswith(_PLACES) and not one.startswith(_OWN)]
    if full:
        raise DiskFull(f"{original} has {full[0]}")
    settings = {
        **dict.fromkeys(places),
        "index.blocks.write": None,
        "index.auto_expand_replicas": "0-1",
        "index.refresh_interval": "-1",
    }
    path = f"/{original}/_clone/{name}?wait_for_active_shards=0"
    try:
        connection.change("POST", path, {"settings": settings}, soon(), again=False)
    except Conflict as error:
        raise Unavailable(not_ours(name)) from error
    _wait(connection, name)


def _wait(connection: Connection, name: str) -> None:
    """Wait until a node holds every part of it.

    A copy gets the mapping of its original only then: to describe it before would be its end.
    """
    until = time.monotonic() + _WAIT_SECONDS
    why = ""
    while not why and time.monotonic() < until:
        if is_whole(connection, name, soon()):
            return
        why = _refused(connection, name)
        time.sleep(_PAUSE_SECONDS)
    delete(connection, name, soon())
    raise Unavailable(
        f"no node takes the new index {name}: {why or 'it is not ready after a minute'}; "
        "what was served is served still; see to the nodes and their disks, then publish again"
    )


@taken_apart("the question why no node takes an index")
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


def remove_unread(
    connection: Connection,
    source: str,
    grace_seconds: float,
    make_certain: Callable[[], None],
    now: Callable[[], float] = time.time,
) -> tuple[str, ...]:
    """Remove generations that nobody reads any more; the names of those removed.

    Args:
        make_certain: called before each is removed, to see that nobody else publishes.
    """
    alias = served(connection, soon())
    held = all_of(connection, source, soon())
    left = _left(held, alias, now())
    gone = [name for name, since in left.items() if now() - since >= grace_seconds]
    for name in gone:
        make_certain()
        delete(connection, name, soon())
    for name, since in left.items():
        if name not in gone and not held[name].retired:
            try:
                write_retired(connection, name, since, soon())
            except DiskFull as error:  # it goes as well by the time at which the alias moved
                logger.warning("%s does not say since when it is not served: %s", name, error)
    return tuple(gone)


def unread(
    connection: Connection,
    source: str,
    grace_seconds: float,
    is_publishing: Callable[[Deadline], bool],
    now: Callable[[], float] = time.time,
) -> tuple[str, ...]:
    """The names of those that would be removed now; nothing is changed.

    Args:
        is_publishing: whether what is not finished may be what somebody writes.
    """
    alias = served(connection, soon())
    held = all_of(connection, source, soon())
    may_be_written = is_publishing(soon())
    return tuple(
        name
        for name, left in _left(held, alias, now()).items()
        if now() - left >= grace_seconds and (held[name].published or not may_be_written)
    )


def _left(held: Mapping[str, Meta], alias: tuple[str, ...], now: float) -> dict[str, float]:
    """Since when each generation that the alias does not know is not served, at the latest."""
    moved = max((meta.published for name, meta in held.items() if name in alias), default=0.0)
    # No later than the alias moved to the one that is served.
    latest = min(now, moved + MOVED_SECONDS) if moved else now
    return {
        name: (meta.retired or latest) if meta.published else float("-inf")
        for name, meta in held.items()
        if name not in alias
    }
