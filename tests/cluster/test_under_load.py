"""Clients ask on while a node dies, generations follow each other, or the cluster hangs."""

import itertools
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from sage.cluster.conformance import PAGES
from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from tests import httpkit
from tests.cluster.conftest import Team, eventually, started
from tests.cluster.nodes import Node
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS

_CLIENTS = 8
_PAGES = 20
_SEVERAL = 40


def marked(mark: str) -> dict[str, str]:
    """Pages that all say which generation they are of."""
    return {
        f"practices/page-{number}.md": f"# {mark} page {number}\n\nA marker of {mark}, w{number}.\n"
        for number in range(_PAGES)
    }


class Crowd:
    """Clients that ask replicas until they are told to stop, and what they were answered."""

    def __init__(self, replicas: Sequence[KnowledgeBase]) -> None:
        self.said: Counter[str] = Counter()
        self._replicas = itertools.cycle(replicas)
        self._done = threading.Event()

    @contextmanager
    def asking(self) -> Iterator["Crowd"]:
        threads = [
            threading.Thread(target=self._ask, args=(next(self._replicas), number))
            for number in range(_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._done.set()
            for thread in threads:
                thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until so many more questions were answered."""
        enough = self.said.total() + more
        eventually(lambda: self.said.total() >= enough, "answers to the clients")

    def has_heard(self, mark: str) -> bool:
        """Whether several answers came from that generation."""
        return self.said[mark] >= _SEVERAL

    def _ask(self, replica: KnowledgeBase, number: int) -> None:
        for turn in itertools.count():
            if self._done.is_set():
                return
            # Different questions: one that was asked before is answered without the cluster.
            words = f"marker w{turn % _PAGES} unknown{number}x{turn}"
            try:
                answer = replica.search(
                    words, limit=_PAGES, deadline=Deadline(PATIENCE_SECONDS * 1000)
                )
            except SageError as error:
                self.said[f"{error.code}: {error}"] += 1
                continue
            marks = {result["title"].split()[0] for result in answer["results"]}
            whole = len(marks) == 1 and answer["total"] == _PAGES
            self.said[marks.pop() if whole else f"WRONG: {answer['total']} {sorted(marks)}"] += 1


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Sequence[Node]]:
    with started(3) as nodes:
        yield nodes


def test_a_node_dies_and_a_generation_follows_while_clients_ask(
    base: Base, three_nodes: Sequence[Node]
) -> None:
    team = Team(base, three_nodes[0].url)
    team.connection.close()
    urls = [node.url for node in three_nodes]
    team.connection = Connection(cluster_options(urls, team.options.base, {}))
    with team.connection:
        team.publish(marked("alpha"))
        # A copy of every part lies on another node before one may die.
        three_nodes[1].ask("GET", "/_cluster/health?wait_for_status=green&timeout=60s")
        with Crowd([team.replica(), team.replica()]).asking() as crowd:
            crowd.wait_for(_SEVERAL)
            three_nodes[0].kill()
            crowd.wait_for(_SEVERAL)
            assert team.publish(marked("beta")).moved
            eventually(partial(crowd.has_heard, "beta"), "answers from the new generation")
    assert set(crowd.said) == {"alpha", "beta"}


def test_every_answer_is_of_one_generation_while_several_follow(team: Team) -> None:
    marks = ("alpha", "beta", "gamma", "delta")
    team.publish(marked(marks[0]))
    with Crowd([team.replica(), team.replica()]).asking() as crowd:
        for mark in marks[1:]:
            crowd.wait_for(_SEVERAL)
            assert team.publish(marked(mark), grace_seconds=0.0).moved
            eventually(partial(crowd.has_heard, mark), f"answers from {mark}")
    assert set(crowd.said) == set(marks)


def test_a_server_is_not_ready_while_its_cluster_hangs_and_needs_no_restart(
    team: Team, node: Node
) -> None:
    team.publish(PAGES)
    with httpkit.serving(team.base.root, lambda _: team.replica()) as client:
        assert client.get("/readyz").status == 200
        assert client.call("sage_info", {})["structuredContent"]["status"] == "healthy"
        node.kill(signal.SIGSTOP)
        try:
            eventually(
                lambda: client.get("/readyz").status == 503, "signs that the server is not ready"
            )
            told = client.call("sage_info", {})["structuredContent"]
            assert (told["status"], bool(told["reasons"])) == ("unhealthy", True)
        finally:
            node.kill(signal.SIGCONT)
        eventually(lambda: client.get("/readyz").status == 200, "signs that it is ready again")
        found = client.call("sage_search", {"query": "rollback"})["structuredContent"]
        assert found["results"]
