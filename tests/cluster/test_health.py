"""A server says what is wrong with its cluster while it is, and needs no restart afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sage.cluster.conformance import PAGES
from sage.errors import Unavailable
from tests import httpkit
from tests.cluster.conftest import Team, eventually, told
from tests.cluster.nodes import Node


@contextmanager
def red(team: Team, node: Node) -> Iterator[None]:
    """The index that is served has lost its part: its list of segments cannot be found."""
    (index,) = team.served
    node.ask("POST", f"/{index}/_close")
    number = node.ask("GET", f"/{index}/_settings")[index]["settings"]["index"]["uuid"]
    lists = list(node.data.glob(f"nodes/*/indices/{number}/*/index/segments_*"))
    assert lists
    for path in lists:
        path.rename(path.parent.parent / path.name)
    node.ask("POST", f"/{index}/_open?wait_for_active_shards=0")
    lost = f"/_cluster/health/{index}"
    eventually(lambda: node.ask("GET", lost)["status"] == "red", "signs of the lost part")
    yield
    for path in lists:
        (path.parent.parent / path.name).rename(path)
    found = {"index": index, "shard": 0, "node": node.name, "accept_data_loss": True}
    node.ask("POST", "/_cluster/reroute", {"commands": [{"allocate_stale_primary": found}]})


def test_a_lost_part_of_the_index_is_told_until_it_is_back(team: Team, node: Node) -> None:
    team.publish(PAGES)
    with httpkit.serving(team.base.root, lambda _: team.replica()) as client:
        replica = client.knowledge
        with red(team, node):
            with pytest.raises(Unavailable, match="red, a part of the index is gone"):
                replica.search("rollback")
            info = told(replica)
            assert info["status"] == "unhealthy"
            assert "red, a part of the index is gone" in info["reasons"][0]
            eventually(lambda: client.get("/readyz").status == 503, "signs that it is not ready")
        eventually(lambda: client.get("/readyz").status == 200, "signs that it is ready again")
        assert told(replica)["status"] == "healthy"
        assert replica.search("rollback")["results"]
