"""What the tests share: a knowledge base on disk, and a clock that only the test moves."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from sage.knowledge import KnowledgeBase
from sage.library import Time
from sage.settings import Settings, load_settings
from sage.tokens import TokenCounter

# The same examples in every run: a failure is the change's, never the day's.
hypothesis_settings.register_profile("sage", deadline=None, max_examples=80, derandomize=True)
hypothesis_settings.load_profile("sage")
# For a search after new ones: pytest --hypothesis-profile=deep
hypothesis_settings.register_profile("deep", deadline=None, max_examples=5_000)


class Clock:
    """Stands still until it is told to tick; it starts late enough for every file to be quiet."""

    def __init__(self) -> None:
        self.seconds = time.time() + 60

    def __call__(self) -> float:
        return self.seconds

    def tick(self, seconds: float) -> None:
        self.seconds += seconds


class Base:
    """A repository with a knowledge base in a temporary folder."""

    def __init__(self, root: Path, cache_dir: Path, counter: TokenCounter) -> None:
        self.root = root
        self.clock = Clock()
        self._counter = counter
        self.environment = {"SAGE_CACHE_DIR": str(cache_dir)}
        (root / ".knowledge").mkdir(parents=True)

    def path(self, relative: str) -> Path:
        """A path below `.knowledge`."""
        return self.root / ".knowledge" / relative

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files below `.knowledge`, exactly."""
        for relative, text in files.items():
            path = self.path(relative)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def settings(self, **flags: object) -> Settings:
        """Its settings; `cache__ttl_seconds=1` stands for the key `cache.ttl_seconds`."""
        keys = {name.replace("__", "."): value for name, value in flags.items()}
        return load_settings({"root": self.root, **keys}, self.environment, self.root)

    @property
    def clocks(self) -> Time:
        return Time(monotonic=self.clock, now=self.clock, sleep=self.clock.tick)

    def open(
        self,
        files: Mapping[str, str | bytes] | None = None,
        clocks: Time | None = None,
        **flags: object,
    ) -> KnowledgeBase:
        """Write files and open the knowledge base, with the clock of the test."""
        self.write(files or {})
        knowledge = KnowledgeBase(self.settings(**flags), clocks or self.clocks)
        # Half a second of every test would be the loading of the same vocabulary.
        knowledge.counter = self._counter
        return knowledge


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    """Exact counts, with the vocabulary loaded."""
    counter = TokenCounter(environment={})
    counter.count("")
    return counter


@pytest.fixture
def base(tmp_path: Path, counter: TokenCounter) -> Base:
    return Base(tmp_path / "repo", tmp_path / "cache", counter)


@pytest.fixture
def clock() -> Clock:
    return Clock()
