"""What was read and looked for."""

import json
import stat
from pathlib import Path
from typing import Any

from sage.care.usage import read_usage, summarise
from sage.http.metrics import OK, Observation
from sage.http.usage_log import UsageLog

A, B, C = (f".knowledge/core/{name}.md" for name in "abc")


def search(query: str, *paths: str) -> Observation:
    answer = {"results": [{"path": path} for path in paths], "total": len(paths)}
    return Observation("sage_search", OK, 0.01, {"query": query}, answer)


def reading(content: str, tool: str = "sage_get_knowledge") -> Observation:
    return Observation(tool, OK, 0.01, {"layer": "all"}, {"content": content})


def context(*paths: str) -> Observation:
    text = "\n\n".join(f"# Title > Section ({path}:1-9,12-20)\n\nText." for path in paths)
    return Observation("sage_get_context", OK, 0.01, {"task": "secret plan"}, {"context": text})


def noted(path: Path, *calls: Observation, **options: Any) -> list[dict[str, Any]]:
    log = UsageLog(path, now=lambda: 0.0, **options)
    for call in calls:
        log.note(call)
    log.close(60)
    return [dict(line) for line in read_usage(path)]


def test_a_search_is_noted_without_its_text(tmp_path: Path) -> None:
    lines = noted(tmp_path / "usage.jsonl", search("how to fire somebody", A, A, B))
    assert lines == [
        {"time": "1970-01-01T00:00:00Z", "tool": "sage_search", "pages": [A, B], "found": 3}
    ]


def test_the_text_of_a_search_is_noted_when_asked_for(tmp_path: Path) -> None:
    [line] = noted(tmp_path / "u", search("x" * 500), with_queries=True)
    assert line["query"] == "x" * 200


def test_the_pages_of_a_reading_are_those_it_is_marked_with(tmp_path: Path) -> None:
    content = f"<!-- {A} -->\n\ntext\n\n<!-- {B}:10-20 -->\n\nmore <!-- not a mark --> text"
    [line] = noted(tmp_path / "u", reading(content))
    assert line["pages"] == [A, B]


def test_a_task_is_never_noted(tmp_path: Path) -> None:
    noted(tmp_path / "u", context(A, B), with_queries=True)
    assert "secret plan" not in (tmp_path / "u").read_text()
    assert json.loads((tmp_path / "u").read_text())["pages"] == [A, B]


def test_calls_that_failed_and_calls_about_no_page_are_not_noted(tmp_path: Path) -> None:
    failed = Observation("sage_search", "TIMEOUT", 1.0, {"query": "x"}, None)
    info = Observation("sage_info", OK, 0.01, {}, {"version": "1"})
    assert noted(tmp_path / "u", failed, info) == []


def test_the_summary_names_most_used_missing_and_unread(tmp_path: Path) -> None:
    mark = f"<!-- {A} -->\n"
    lines = noted(
        tmp_path / "u",
        reading(mark),
        reading(mark, "resource"),
        context(A),
        search("thing", A, B),
        search("nothing"),
        search("nothing"),
        search("void"),
        with_queries=True,
    )
    summary = summarise(lines, [A, B, C], top=5)
    assert [(page.path, page.read, page.shown) for page in summary.most_used] == [
        (A, 3, 1),
        (B, 0, 1),
    ]
    assert summary.empty_searches == 3
    assert summary.empty_queries == [("nothing", 2), ("void", 1)]
    assert summary.never_read == [B, C]
    assert summary.calls["sage_search"] == 4


def test_a_page_that_is_gone_is_not_in_the_summary() -> None:
    summary = summarise([{"tool": "resource", "pages": [A]}], [B], top=5)
    assert summary.most_used == []
    assert summary.never_read == [B]


def test_a_full_log_is_put_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "u"
    lines = noted(path, *[search(str(number)) for number in range(6)], max_bytes=200)
    assert (tmp_path / "u.1").stat().st_size > 200
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) < 700
    assert 0 < len(lines) <= 6


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "u"
    path.write_text(
        '{"tool": "resource"}\n{"tool": \n[1]\n\xff\n{"tool": "sage_search", "pages": 7}\n'
    )
    assert [line["tool"] for line in read_usage(path)] == ["resource", "sage_search"]
    assert summarise(read_usage(path), [], 5).since == ""


def test_a_log_that_cannot_be_written_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert noted(tmp_path / "file" / "u", search("x")) == []


def test_the_log_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    path.touch(0o644)
    noted(path, search("x", A), max_bytes=1)
    noted(path, search("x", A))
    modes = {stat.S_IMODE(part.stat().st_mode) for part in tmp_path.iterdir()}
    assert modes == {0o600}
