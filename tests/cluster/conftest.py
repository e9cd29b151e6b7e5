"""One node for all tests of a file; without one they are skipped loudly, and never in CI."""

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from sage.answers import ReplicaInfo
from sage.cluster.backend import open_cluster
from sage.cluster.connection import ClusterOptions, Connection
from sage.cluster.generations import all_of
from sage.cluster.options import cluster_options
from sage.cluster.replica import LOOK_SECONDS
from sage.cluster.schema import MAPPING, Name
from sage.deadline import Deadline
from sage.knowledge import KnowledgeBase
from sage.publish.lock import PublishLock
from sage.publish.plan import Published
from sage.publish.publisher import Publisher, PublishOptions
from sage.settings import rootless_settings
from sage.values import OWN
from tests.cluster.nodes import Node, missing, running
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS, give_up


@contextmanager
def started(count: int) -> Iterator[Sequence[Node]]:
    """A cluster of so many nodes."""
    lacks = missing()
    if lacks:
        give_up(lacks)
    with running(count) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with started(1) as nodes:
        yield nodes[0]


class Later:
    """A clock that runs, and can be told that a moment has passed."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._skipped

    def skip(self, seconds: float) -> None:
        self._skipped += seconds


class Team:
    """A repository that publishes, and replicas that serve what it published."""

    def __init__(self, base: Base, url: str) -> None:
        self.base = base
        self.clock = Later()
        self.options: ClusterOptions = cluster_options([url], f"t{secrets.token_hex(4)}", {})
        self.connection = Connection(self.options)

    def publish(
        self, files: Mapping[str, str] | None = None, *gone: str, **options: object
    ) -> Published:
        """Publish the repository after writing files and removing others.

        A moment passes after it, so that a replica looks again when it is asked next.
        """
        self.base.write(files or {})
        for path in gone:
            self.base.path(path).unlink()
        self.base.clock.tick(60)
        knowledge = self.base.open()
        done = Publisher(knowledge, self.connection, PublishOptions(**options)).publish()  # type: ignore[arg-type]
        self.clock.skip(LOOK_SECONDS)
        return done

    def replica(self, layers: Collection[str] | None = None) -> KnowledgeBase:
        """A base that is answered from the cluster."""
        settings = rootless_settings(environment=self.base.environment)
        knowledge = open_cluster(self.connection, settings, Deadline(60_000), self.clock)
        return knowledge if layers is None else narrowed(knowledge, layers)

    @property
    def indexes(self) -> list[str]:
        found = self.connection.get(f"/{self.options.base}-v*/_alias", Deadline(30_000))
        return sorted(found)

    @property
    def served(self) -> list[str]:
        return sorted(self.connection.get(f"/_alias/{self.options.base}", Deadline(30_000)))


def narrowed(knowledge: KnowledgeBase, layers: Collection[str]) -> KnowledgeBase:
    from dataclasses import replace

    kept = tuple(layer for layer in knowledge.settings.layers if layer in layers)
    return knowledge.narrowed(replace(knowledge.settings, is_narrowed=True, layers=kept))


def beside(team: Team, folder: Path) -> Team:
    """Another repository that publishes into the same base."""
    base = Base(folder / "repo", folder / "cache", team.base.open().light_counter)
    other = Team(base, team.options.urls[0])
    other.connection.close()
    other.connection, other.options, other.clock = team.connection, team.options, team.clock
    return other


def told(replica: KnowledgeBase) -> ReplicaInfo:
    """What a replica says of itself."""
    return cast("ReplicaInfo", replica.info())


def name_in_alias(team: Team, source: str, mapping: int = MAPPING + 1) -> str:
    """Let the alias name an index of a source that no replica of this version can load."""
    base, connection = team.options.base, team.connection
    new = str(Name(base, source, "0123456789abcdef", mapping))
    old = [name for name in team.served if f"-{source}-" in name]
    said = all_of(connection, source, Deadline(30_000))[old[0]]
    body = {"mappings": {"_meta": said.to_json()}}
    connection.request("PUT", f"/{new}", body, Deadline(30_000))
    actions = [{"remove": {"index": name, "alias": base}} for name in old]
    actions.append({"add": {"index": new, "alias": base}})
    connection.request("POST", "/_aliases", {"actions": actions}, Deadline(30_000))
    team.clock.skip(LOOK_SECONDS)
    return old[0]


class Died(BaseException):
    """In place of a signal: nothing that follows is done."""


def die(*_: object) -> None:
    raise Died


def free_the_lock(team: Team, source: str = OWN) -> None:
    """As a minute after its owner died."""
    lock = PublishLock(team.connection, source, now=lambda: 9e9)
    lock.acquire(Deadline(30_000))
    lock.release(Deadline(30_000))


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait as long as a busy machine needs."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < until, f"there were no {what}"
        time.sleep(0.05)


@pytest.fixture
def team(base: Base, node: Node) -> Iterator[Team]:
    team = Team(base, node.url)
    with team.connection:
        yield team
