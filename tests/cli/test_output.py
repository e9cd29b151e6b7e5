import contextlib
import io
import json
import sys
from pathlib import Path

import pytest

from sage.answers import (
    ContextAnswer,
    InfoAnswer,
    KnowledgeAnswer,
    KnowledgeMetadata,
    PublishedInfo,
    ReplicaInfo,
    SearchAnswer,
)
from sage.cli import output
from sage.cli import terminal as console
from sage.errors import counted


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 by 25, with colours."""
    terminal = Terminal()
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "25")
    return terminal


def knowledge_answer(content: str, complete: bool = True) -> KnowledgeAnswer:
    return KnowledgeAnswer(
        content=content,
        metadata=KnowledgeMetadata(
            layer="core",
            topic=None,
            files_loaded=1,
            load_time_ms=1.0,
            from_cache=False,
            token_count=3,
            complete=complete,
            omitted=[],
        ),
    )


SEARCH: SearchAnswer = {
    "results": [
        {
            "path": ".knowledge/core/a.md",
            "title": "Retries",
            "snippet": "Retry with [care], never blindly.",
            "score": 0.75,
            "topic": "core/a#when",
            "lines": [3, 9],
            "tokens": 40,
        }
    ],
    "total": 4,
    "query_time_ms": 1.5,
    "found": "yes",
    "note": "spelling corrected",
}
CONTEXT: ContextAnswer = {
    "context": "# A",
    "sections": ["A"],
    "token_count": 12,
    "load_time_ms": 1.0,
    "sources": [{"topic": "core/a", "lines": "1-2", "why": "principles"}],
    "omitted": ["core/b"],
    "note": "left out: core/c (draft)",
}
INFO: InfoAnswer = {
    "version": "1.2.3",
    "status": "degraded",
    "knowledge_base": {
        "content_files": 2,
        "total_size_kb": 1_234.5,
        "layers": [
            {"name": "core", "files": 2, "sections": 5, "tokens": 1_000},
            {"name": "practices", "files": 0},
        ],
    },
    "cache": {"enabled": True, "hit_rate": 0.5},
    "uptime_seconds": 1.0,
    "reasons": ["something is not served"],
    "index": {
        "state": "building",
        "where": "memory",
        "documents": 2,
        "sections": 5,
        "size_kb": 0.0,
        "message": "almost done",
    },
    "problems": {"count": 1, "first": [{"path": "core/b.md", "what": "left out \x1b[31m"}]},
    "encoding": "cl100k_base",
}


def test_json_keeps_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"text": "设计 é"})
    printed = capsys.readouterr().out
    assert "设计 é" in printed
    assert json.loads(printed) == {"text": "设计 é"}


def test_error_is_one_clean_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_error("two\nlines \x1b[31mred\u202e")
    assert capsys.readouterr().err == "sage: two lines red\n"


def test_content_goes_into_a_pipe_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_knowledge(knowledge_answer("# A\n\n*b* [bold]c[/bold]"))
    printed = capsys.readouterr()
    assert printed.out == "# A\n\n*b* [bold]c[/bold]\n"
    assert printed.err == ""


def test_incomplete_content_is_announced_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.begin_notes()
    output.print_knowledge(knowledge_answer("# A", complete=False))
    assert "--max-tokens" in capsys.readouterr().err


def test_content_is_rendered_on_a_terminal(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        console.print_content("# Title\n\nSome **bold** words.")
    shown = terminal.getvalue()
    assert "\x1b[1m" in shown
    assert "**" not in shown


def test_long_content_on_a_terminal_is_paged(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with contextlib.redirect_stdout(terminal):
        console.print_content("word\n\n" * 100)
    assert terminal.getvalue().count("word") == 100


def test_no_color_is_obeyed_on_a_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stdout(terminal):
        output.print_results("retry", SEARCH)
    assert "\x1b[1;33m" not in terminal.getvalue()


def test_results_say_where_each_lies(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_results("retry", SEARCH)
    assert capsys.readouterr().out == (
        "Retries  0.75\n  .knowledge/core/a.md:3-9  core/a#when (40 tokens)\n"
        "  Retry with [care], never blindly.\n\n1 of 4 documents; spelling corrected\n"
    )


def test_results_on_a_terminal_mark_the_words_of_the_query(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        output.print_results("to retry", SEARCH)
    assert "\x1b[1;33mRetry\x1b[0m with [care]" in terminal.getvalue()


def test_nothing_found_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_results("kafka", {**SEARCH, "found": "no", "missing": ["kafka"]})
    assert capsys.readouterr().out.endswith(
        'nothing found; the nearest are above; in no document: "kafka"; spelling corrected\n'
    )


def test_an_empty_base_is_called_empty(capsys: pytest.CaptureFixture[str]) -> None:
    answer: SearchAnswer = {"results": [], "total": 0, "query_time_ms": 1.0, "found": "no"}
    output.print_results("retry", answer, is_empty=True)
    assert "no pages yet; sage init" in capsys.readouterr().out


def test_a_page_that_is_not_in_force_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    old = {**SEARCH["results"][0], "status": "superseded", "superseded_by": "core/b", "copies": 2}
    output.print_results("retry", {**SEARCH, "results": [old]})  # type: ignore[list-item]
    assert "superseded: read core/b, 2 other pages the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 pages"), (1, "1 page"), (1_200, "1,200 pages")]
)
def test_one_thing_is_no_plural(number: int, words: str) -> None:
    assert counted(number, "page") == words


def test_choices_are_a_table_of_what_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_choices(CONTEXT)
    assert capsys.readouterr().out == (
        "lines  included  why\n1-2    core/a    principles\n\n"
        "next, did not fit\ncore/b\n\nleft out: core/c (draft)\n\n12 tokens\n"
    )


def test_choices_that_all_fit_show_one_table(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        output.print_choices({**CONTEXT, "omitted": []})
    assert "did not fit" not in terminal.getvalue()
    assert "principles" in terminal.getvalue()


def test_info_is_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_info(INFO, Path("/repos/team"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["version", "1.2.3"]
    assert "  core       2 documents, 1,000 tokens" in lines
    assert "root         /repos/team" in lines
    assert "  practices  0 documents" in lines
    assert "index        building, 5 sections, in memory" in lines
    assert "             almost done" in lines
    assert "             core/b.md: left out" in lines


@pytest.mark.parametrize(
    ("commit", "shown"),
    [
        ("4f1c" * 10, "commit 4f1c4f1c4f1c, since"),
        ("4f1c" * 10 + "-dirty", "commit 4f1c4f1c4f1c-dirty, since"),
        ("", "commit unknown, since"),
    ],
)
def test_the_commit_that_is_served_says_whether_the_pages_are_as_it_is(
    capsys: pytest.CaptureFixture[str], commit: str, shown: str
) -> None:
    one = PublishedInfo(source="own", commit=commit, generation="sage-v5-own-1", since="2026")
    output.print_info(ReplicaInfo(**INFO, published=[one], behind_seconds=0.1), "a cluster")
    assert shown in capsys.readouterr().out


def test_info_on_a_terminal_holds_the_same(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        output.print_info(INFO, Path("/repos/team"))
    for words in ("1.2.3", "degraded", "something is not served", "core/b.md: left out"):
        assert words in terminal.getvalue()


def test_progress_is_shown_only_to_somebody_watching(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    assert console.index_progress() is None
    watched = Terminal()
    monkeypatch.setattr(sys, "stderr", watched)
    show = console.index_progress()
    assert show is not None
    show(1, 10)
    assert watched.getvalue() == ""
    for done in (1, 250, 500):
        show(done, 500)
    assert "indexing" in watched.getvalue()
