import json
import subprocess
from collections.abc import Iterator

import pytest

from sage.documents.files import SourceFile, Stamp
from sage.errors import SageError
from sage.publish import describing
from sage.publish.describing import Describing, PagesForCluster, PageToPublish

Processes = list[subprocess.Popen[bytes]]


def pages(count: int) -> list[PageToPublish]:
    texts = [
        f"# Page {n}\n\nRetry {n} times, 数据.\n\n## Limits\n\nA limit.\n" for n in range(count)
    ]
    stamp = Stamp(0, 0, 0, 0)
    return [
        PageToPublish(
            SourceFile(f"s/core/{n}.md", "core", stamp, f"core/s/{n}", "s"),
            text.encode(),
            f"hash{n}",
        )
        for n, text in enumerate(texts)
    ]


def told(made: Iterator[PagesForCluster]) -> tuple[list[bytes], int, dict[int, str]]:
    lines: list[bytes] = []
    sections = 0
    words = None
    for part in made:
        lines += part.lines
        sections += part.sections
        if words is None:
            words = part.words.get("core")
        elif part.words:
            words.join(part.words["core"])
    return lines, sections, words.chunks() if words else {}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """Those that were started; every base is large enough for them."""
    monkeypatch.setattr(describing, "MANY_BYTES", 0)
    monkeypatch.setattr(describing, "_cores", lambda: 2)
    monkeypatch.setattr(describing, "_TOGETHER_BYTES", 100)
    started: Processes = []

    class Noted(describing._Process):
        def __init__(self) -> None:
            super().__init__()
            started.append(self._process)

    monkeypatch.setattr(describing, "_Process", Noted)
    return started


def test_other_processes_describe_the_same(request: pytest.FixtureRequest) -> None:
    given = pages(20)
    lines, sections, words = told(Describing().described(given, {}, 4))
    processes: Processes = request.getfixturevalue("processes")
    assert told(Describing().described(given, {}, 4)) == (lines, sections, words)
    assert (len(lines), sections, len(processes)) == (20, 40, 2)
    assert json.loads(lines[7].splitlines()[1])["path"] == "s/core/7.md"
    assert any("limit\t20\t20\tlimit 20 limits 20\n" in chunk for chunk in words.values())


def test_a_process_that_is_killed_is_an_error_and_no_wait_for_ever(processes: Processes) -> None:
    made = Describing().described(pages(100), {}, 0)
    next(made)
    for process in processes:
        process.kill()
    with pytest.raises(SageError, match="publish again"):
        list(made)
    assert all(process.poll() is not None for process in processes)


@pytest.mark.parametrize("count", [0, 2])
def test_a_page_that_cannot_be_described_is_named(
    request: pytest.FixtureRequest, count: int
) -> None:
    processes: Processes = request.getfixturevalue("processes") if count else []
    given = [*pages(3), pages(1)[0]._replace(data=b"\xff\x00")]
    with pytest.raises(SageError, match=r"s/core/0\.md cannot be published \(ValueError: it was"):
        list(Describing().described(given, {}, 0))
    assert len(processes) == count


def test_whoever_stops_early_leaves_no_process(processes: Processes) -> None:
    made = Describing().described(pages(100), {}, 0)
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert [process.poll() for process in processes] == [0, 0]


def test_what_a_page_holds_is_put_together_however_large_it_is(processes: Processes) -> None:
    large = pages(3)[0]._replace(data=b"# Large\n\n" + b"a word " * 50_000)
    lines, _, _ = told(Describing().described([large], {}, 0))
    assert len(lines) == 1
    assert len(lines[0]) > len(large.data)
    assert len(processes) == 2


def test_processes_that_were_started_early_describe_and_end(processes: Processes) -> None:
    describing = Describing()
    describing.start(1)
    assert len(processes) == 2
    assert len(told(describing.described(pages(20), {}, 0))[0]) == 20
    assert [process.poll() for process in processes] == [0, 0]


def test_processes_that_get_nothing_to_describe_end(processes: Processes) -> None:
    describing = Describing()
    describing.start(1)
    describing.close()
    assert [process.poll() for process in processes] == [0, 0]
