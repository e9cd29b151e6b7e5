import multiprocessing
import os
import signal
from collections.abc import Iterator

import pytest

from sage.cluster import describing
from sage.cluster.describing import PagesForCluster, PageToPublish, described
from sage.documents.document import parse_document
from sage.errors import SageError


def pages(count: int) -> list[PageToPublish]:
    texts = [
        f"# Page {n}\n\nRetry {n} times, 数据.\n\n## Limits\n\nA limit.\n" for n in range(count)
    ]
    return [
        PageToPublish(
            parse_document(text, f"s/core/{n}.md", "core", f"core/s/{n}", "s"),
            text.encode(),
            f"hash{n}",
        )
        for n, text in enumerate(texts)
    ]


def told(made: Iterator[PagesForCluster]) -> tuple[list[object], dict[int, str]]:
    documents: list[object] = []
    words = None
    for part in made:
        documents += part.documents
        if words is None:
            words = part.words["core"]
        else:
            words.join(part.words["core"])
    return documents, words.chunks() if words else {}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describing, "MANY_BYTES", 0)
    monkeypatch.setattr(describing, "_cores", lambda: 2)
    monkeypatch.setattr(describing, "_TOGETHER", 3)


def test_other_processes_describe_the_same(request: pytest.FixtureRequest) -> None:
    given = pages(20)
    alone = told(described(given, frozenset(), 4))
    request.getfixturevalue("processes")
    assert told(described(given, frozenset(), 4)) == alone
    assert len(alone[0]) == 20


@pytest.mark.usefixtures("processes")
def test_a_process_that_is_killed_is_an_error_and_no_wait_for_ever() -> None:
    made = described(pages(100), frozenset(), 0)
    next(made)
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    with pytest.raises(SageError, match="publish again"):
        list(made)
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("processes")
def test_whoever_stops_early_leaves_no_process() -> None:
    made = described(pages(100), frozenset(), 0)
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()
