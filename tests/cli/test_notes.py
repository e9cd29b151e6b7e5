"""What a person sees of a note; what is written is tried in tests/notes."""

import io
import sys

import pytest

from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]
LEARNED = "Retry the label call only with its idempotency key. The carrier bills twice."


class Keyboard(io.StringIO):
    """Somebody sits there."""

    def isatty(self) -> bool:
        return True


def test_a_note_says_where_it_is_and_what_comes_next(run: Run) -> None:
    code, out, err = run("note", LEARNED)
    assert code == 0
    assert "written: .knowledge/practices/inbox/" in out
    assert "sage accept" in err


def test_a_second_note_of_the_same_shows_the_first(run: Run) -> None:
    run("note", LEARNED)
    code, out, _ = run("note", LEARNED)
    assert code == 0
    assert "What is known already" in out
    assert "alike 100%" in out


def test_a_dry_run_prints_the_page_and_writes_nothing(base: Base, run: Run) -> None:
    code, out, _ = run("note", LEARNED, "--dry-run")
    assert code == 0
    assert "status: draft" in out
    assert not list(base.root.rglob("inbox"))


def test_an_editor_is_opened_for_whoever_says_nothing(
    base: Base, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", """sh -c 'printf "Ask the okapi first." > "$1"' sh""")
    assert run("note")[0] == 0
    (page,) = base.root.rglob("inbox/*.md")
    assert "Ask the okapi first." in page.read_text("utf-8")


def test_without_an_editor_it_says_how_a_note_is_given(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    code, _, err = run("note")
    assert code == 2
    assert "EDITOR" in err


def test_a_status_that_changed_is_said_in_words(base: Base, run: Run) -> None:
    run("note", LEARNED)
    (page,) = base.root.rglob("inbox/*.md")
    code, out, _ = run("accept", page.stem)
    assert code == 0
    assert page.name in out
