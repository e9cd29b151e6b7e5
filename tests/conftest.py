"""What the tests share: a knowledge base on disk, and a clock that only the test moves."""

import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from sage.deadline import Clocks
from sage.knowledge import KnowledgeBase
from sage.server.process import isolate_fastmcp
from sage.settings import Settings, load_settings
from sage.token_counter import BundledVocabulary, LightCounter, TokenCounter

isolate_fastmcp()

# The same examples in every run: a failure is the change's, never the day's.
hypothesis_settings.register_profile("sage", deadline=None, max_examples=80, derandomize=True)
hypothesis_settings.load_profile("sage")
# For a search after new ones: pytest --hypothesis-profile=deep
hypothesis_settings.register_profile("deep", deadline=None, max_examples=5_000)


# What starts processes or servers; the rest stays in this process and is over in a minute.
_STARTS = re.compile(
    r"^(?:import|from) "
    r"(?:subprocess|multiprocessing|pty|playwright|uvicorn|tests\.(?:processes|httpkit))\b",
    re.MULTILINE,
)
_LONG_FOLDERS = {"clients", "cluster", "faults", "fuzzing", "hostile"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that stay in this process")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick"):
        return None
    if collection_path.is_dir():
        return True if collection_path.name in _LONG_FOLDERS else None
    is_module = collection_path.suffix == ".py"
    return True if is_module and _STARTS.search(collection_path.read_text("utf-8")) else None


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer to tell its state than a host waits for it."""
    monkeypatch.setattr("sage.server.async_knowledge.QUICK_MS", 60_000)
    monkeypatch.setattr("sage.server.async_knowledge.COUNT_MS", 60_000)


def loaded_counter() -> LightCounter:
    """What counts in many bases, with all its vocabulary loaded."""
    counter = LightCounter(TokenCounter(), BundledVocabulary())
    counter.counter.count("")
    counter.vocabulary.count("")
    return counter


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

    def __init__(self, root: Path, cache_dir: Path, counter: LightCounter) -> None:
        self.root = root
        self.clock = Clock()
        self._counter = counter
        self.environment = {
            "SAGE_CACHE_DIR": str(cache_dir),
            "XDG_CONFIG_HOME": str(cache_dir.parent / "config"),
            # The same answers whether or not the extra is installed; its own tests say otherwise.
            "SAGE_SEARCH_SEMANTIC": "off",
            # A busy machine may need longer than a person waits; what is about time sets its own.
            "SAGE_HOOKS_TIMEOUT_MS": "30000",
            "SAGE_HOOKS_SESSION_TIMEOUT_MS": "60000",
        }
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
    def clocks(self) -> Clocks:
        return Clocks(monotonic=self.clock, now=self.clock, sleep=self.clock.tick)

    def open(
        self,
        files: Mapping[str, str | bytes] | None = None,
        clocks: Clocks | None = None,
        **flags: object,
    ) -> KnowledgeBase:
        """Write files and open the knowledge base, with the clock of the test."""
        self.write(files or {})
        # Half a second of every test would be the loading of the same vocabulary.
        return KnowledgeBase(self.settings(**flags), clocks or self.clocks, counter=self._counter)


@pytest.fixture(scope="session")
def light_counter() -> LightCounter:
    """Exact counts, with the vocabulary loaded."""
    return loaded_counter()


@pytest.fixture(scope="session")
def counter(light_counter: LightCounter) -> TokenCounter:
    """The same, of tiktoken."""
    return light_counter.counter


@pytest.fixture
def base(tmp_path: Path, light_counter: LightCounter) -> Base:
    return Base(tmp_path / "repo", tmp_path / "cache", light_counter)


@pytest.fixture
def clock() -> Clock:
    return Clock()
