"""Files and folders swapped for links while a server reads them: never a byte from outside.

SAGE_HOSTILE_SECONDS says how long; a minute is the long version.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import swapper
from tests.hostile.calls import ordinary_requests
from tests.hostile.cases import CANARY, KNOWLEDGE, MAPPED, SECONDS, SOURCE, Place
from tests.hostile.servers import Served, serving_http, serving_stdio

WORDS = ("page", "folder", "inner", "linked", "secret", "canary", "quokka")


def write_both(place: Place) -> None:
    """Pages inside, and the same names outside with the canary in them."""
    for name in ("core/page.md", "core/folder/inner.md", "practices/page.md", "core/real.md"):
        place.write(name, f"# Inside\n\nThe page {name} lies inside.\n")
        secret = place.outside / place.folder / name
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text(f"# Outside\n\n{CANARY}\n")
    place.link("core/linked.md", "real.md")
    (place.outside / place.folder / "core/linked.md").symlink_to("real.md")


@contextmanager
def swapping(place: Place) -> Iterator[list[int]]:
    """A process that swaps, and how often it did."""
    swaps: list[int] = []
    words = [sys.executable, swapper.__file__, str(place.root), str(place.outside), place.folder]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield swaps
        swaps.append(int(process.communicate()[0]))


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to a page, again and again, never the same twice."""
    number = 0
    while True:
        for method, params in ordinary_requests():
            yield method, dict(params)
        for word in WORDS:
            number += 1
            for tool, given in (
                ("sage_get_knowledge", {"layer": "all", "topic": word, "timeout_ms": 5_000}),
                ("sage_search", {"query": f"{word} lies inside nobody {number}"}),
                ("sage_get_context", {"task_type": "coding", "task": f"{word} {number}"}),
            ):
                yield "tools/call", {"name": tool, "arguments": given}
            yield "resources/read", {"uri": f"knowledge://core/{word}"}


@pytest.mark.parametrize(
    ("serving", "kind"),
    [
        (serving_stdio, KNOWLEDGE),
        (serving_http, KNOWLEDGE),
        (serving_stdio, MAPPED),
        (serving_stdio, SOURCE),
    ],
    ids=["stdio", "http", "stdio-mapped", "stdio-source"],
)
def test_no_swap_lets_a_byte_in_from_outside(tmp_path: Path, serving: Any, kind: str) -> None:
    place = Place.made_in(tmp_path, kind)
    write_both(place)
    with serving(place.served, tmp_path / "cache", **place.environment) as server:
        with swapping(place) as swaps:
            asked, leaks = ask_for(server, SECONDS)
        assert not leaks
        assert asked
        assert swaps[0] > 10
        server.check_healthy()
        assert "The page core/page.md lies inside." in server.read("core/page")
    print(f"{asked} answers during {swaps[0]} swaps")


def ask_for(server: Served, seconds: float) -> tuple[int, list[str]]:
    """How many requests were answered in that time, and the answers that hold the canary."""
    until, asked, leaks = time.monotonic() + seconds, 0, list[str]()
    for method, params in requests():
        told = json.dumps(server.ask(method, params), ensure_ascii=False)
        asked += 1
        if CANARY in told:
            leaks.append(told[:500])
        if time.monotonic() > until:
            return asked, leaks
    return asked, leaks
