"""Bases that are hostile as a whole: their settings, what lies beside the pages, their size."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sage.errors import ConfigError, InvalidInput
from sage.install.entries import server_for
from sage.knowledge import KnowledgeBase
from sage.search.evaluation import read_golden_file
from sage.settings import load_settings
from tests import httpkit, processes
from tests.hostile.cases import CANARY, LONG, Place
from tests.hostile.configs import ACCEPTED, GOLDEN, REFUSED, wrong_values
from tests.hostile.servers import serving_http, serving_stdio
from tests.processes import PATIENCE_SECONDS, clean_environment

FILES = 100_000 if LONG else 300
BOTH = pytest.mark.parametrize("serving", [serving_stdio, serving_http], ids=["stdio", "http"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.made_in(tmp_path.resolve())


@pytest.mark.parametrize(
    "text",
    [*REFUSED.values(), *(text for _, text in wrong_values())],
    ids=[*REFUSED, *(name for name, _ in wrong_values())],
)
def test_settings_that_are_wrong_are_refused_in_one_line(place: Place, text: str | bytes) -> None:
    place.write("sage.yaml", text)
    with pytest.raises(ConfigError) as raised:
        open_all(place)
    said = str(raised.value)
    assert "\n" not in said
    assert said.isprintable()
    assert len(said) < 1_000
    assert CANARY not in said


def open_all(place: Place) -> None:
    """Settings, and the parts of them that are looked at when the first call needs them."""
    knowledge = KnowledgeBase(load_settings({"root": place.root}, {}, place.root))
    assert knowledge.task_types
    knowledge.context("coding")


@pytest.mark.parametrize("kind", ["link", "sparse"])
def test_settings_from_outside_or_without_end_are_refused(place: Place, kind: str) -> None:
    plant_odd(place.root / ".knowledge" / "sage.yaml", kind, place)
    with pytest.raises(ConfigError, match=r"leaves the repository|more than") as raised:
        load_settings({"root": place.root}, {}, place.root)
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("kind", ["folder-link", "pipe", "device"])
def test_settings_that_are_no_file_are_not_read(place: Place, kind: str) -> None:
    plant_odd(place.root / ".knowledge" / "sage.yaml", kind, place)
    assert load_settings({"root": place.root}, {}, place.root).config_path is None


def plant_odd(file: Path, kind: str, place: Place) -> None:
    """Something that only has the name of a file."""
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "sparse":
        file.touch()
        os.truncate(file, 1 << 40)
    else:
        targets = {"link": place.outside / "secret.md", "folder-link": place.outside}
        file.symlink_to(targets.get(kind, Path("/dev/zero")))


@pytest.mark.parametrize(
    ("name", "flags"),
    [("brackets", []), ("alias-bomb", ["--http"]), ("layer-far-up", ["--http"])],
    ids=["stdio-brackets", "http-alias-bomb", "http-layer-far-up"],
)
def test_server_with_wrong_settings_ends_with_one_line(
    place: Place, name: str, flags: list[str]
) -> None:
    place.write("sage.yaml", REFUSED[name])
    command = [*processes.serve_command(place.root), *flags]
    environment = clean_environment(place.root)
    done = subprocess.run(
        command, capture_output=True, env=environment, input=b"", timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"sage.yaml" in done.stderr


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_queries_that_are_wrong_are_refused(place: Place, name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_golden_file(place.write("eval.yaml", GOLDEN[name]))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "folder-link"])
def test_golden_queries_that_never_end_are_not_read(place: Place, kind: str) -> None:
    plant_odd(place.root / ".knowledge" / "eval.yaml", kind, place)
    with pytest.raises(InvalidInput):
        read_golden_file(place.root / ".knowledge" / "eval.yaml")


class Trap:
    """Whoever unpickles this leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.trace),)


def plant_traps(place: Place, trace: Path) -> None:
    """What a repository may hold so that whoever opens or imports it runs its code."""
    module = f"import os\nos.mkdir({str(trace)!r})\n"
    for name in ("sage/__init__.py", "yaml.py", "fastmcp.py", "json.py", "sitecustomize.py"):
        place.write_beside(name, module)
    index = pickle.dumps(Trap(trace))
    for folder in (".knowledge/index", ".knowledge/.index", "cache/index", ".sage", ".whoosh"):
        for name in ("_MAIN_1.toc", "MAIN_1.seg", "index.sage", "MAIN_WRITELOCK"):
            place.write_beside(f"{folder}/{name}", index)
    place.write_beside(".gitignore", "*\n!../..\n")
    place.write_beside(".knowledge/.sageignore", "*\n")
    place.write_beside(".mcp.json", '{"mcpServers": {"evil": {"command": "sh"}}}')
    place.write("sage.yaml", ACCEPTED)


DOTENVS = {
    "settings": b"FASTMCP_TRANSPORT=http\nFASTMCP_HOST=0.0.0.0\nFASTMCP_LOG_LEVEL=DEBUG\n"
    b"FASTMCP_STATELESS_HTTP=nonsense\nSAGE_ROOT=/etc\nSAGE_CACHE_DIR=/etc\nPYTHONPATH=.\n",
    "bytes": b"\xff\xfe\x00FASTMCP_PORT=\x00",
}


@pytest.mark.parametrize(
    ("dotenv", "serving"),
    [("settings", serving_stdio), ("settings", serving_http), ("bytes", serving_stdio)],
    ids=["stdio-settings", "http-settings", "stdio-bytes"],
)
def test_nothing_that_lies_in_the_repository_is_run_or_obeyed(
    place: Place, serving: Any, dotenv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = place.outside / "trace"
    plant_traps(place, trace)
    place.write_beside(".env", DOTENVS[dotenv])
    monkeypatch.chdir(place.root)
    start_as_registered(monkeypatch)
    with serving(place.root, place.outside / "cache", FASTMCP_TRANSPORT="sse") as server:
        server.check_healthy()
        assert server.info_of_all()["status"] == "healthy"
        assert CANARY not in server.call("sage_get_context", task_type="evil")["context"]
    assert not trace.exists()


def start_as_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start servers by the command that `sage install` writes for clients."""

    def words(root: Path, *flags: str) -> list[str]:
        return [*server_for(root, interpreter=sys.executable).words, *flags]

    monkeypatch.setattr(processes, "serve_command", words)
    monkeypatch.setattr(httpkit, "command", lambda *given: [*words(*given), "--http", "--port=0"])


@pytest.mark.parametrize(
    ("target", "serving"),
    [("outside", serving_stdio), ("outside", serving_http), ("/etc", serving_stdio)],
    ids=["stdio-outside", "http-outside", "stdio-etc"],
)
def test_knowledge_folder_that_leads_outside_serves_nothing(
    place: Place, serving: Any, target: str
) -> None:
    os.rename(place.root / ".knowledge", place.root / "away")
    (place.root / ".knowledge").symlink_to(place.outside if target == "outside" else target)
    (place.outside / "core").mkdir()
    (place.outside / "core" / "secret.md").write_text(CANARY)
    with serving(place.root, place.root.parent / "cache") as server:
        info = server.call("sage_info")
        assert info["knowledge_base"]["content_files"] == 0
        assert info["status"] == "degraded"
        assert server.call("sage_search", query="canary")["results"] == []


@BOTH
def test_very_many_files_are_served(place: Place, serving: Any) -> None:
    folder = place.core / "many"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"# Number {number}\n")
    with serving(place.root, place.root.parent / "cache") as server:
        server.wait_for_index()
        server.check_found()
        assert f"# Number {FILES - 1}" in server.read(f"core/many/{FILES - 1}")
        info, context = server.call("sage_info"), {"name": "sage_get_context"}
        packed = server.result("tools/call", context | {"arguments": {"task_type": "coding"}})
        # A hundred thousand pages take longer than a call may: it is refused with a code.
        refused = LONG and packed["content"][0]["text"].startswith("TIMEOUT: ")
        assert refused or not packed.get("isError")
        assert LONG or info["knowledge_base"]["content_files"] == FILES + 2


@pytest.mark.parametrize("kind", ["file", "pipe", "nothing"])
def test_root_without_a_knowledge_folder_is_refused(tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / ".knowledge")
    elif kind == "file":
        (tmp_path / ".knowledge").write_text("x")
    with pytest.raises(ConfigError, match=r"holds no \.knowledge folder"):
        load_settings({"root": tmp_path}, {}, tmp_path)
