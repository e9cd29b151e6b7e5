import pytest

from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]
CUT = "not complete"


def test_quiet_prints_the_answer_and_nothing_beside_it(run: Run) -> None:
    code, out, err = run("get", "core", "--max-tokens", "5", "--quiet")
    assert (code, err) == (0, "")
    assert out
    assert CUT in run("get", "core", "--max-tokens", "5")[2]
    assert "1 of 1 document" not in run("search", "fixtures", "-q")[1]
    assert run("check", "-q")[1] == ""


def test_quiet_does_not_hide_an_error_or_a_problem(run: Run, base: Base) -> None:
    code, _, err = run("-q", "get", "core", "nowhere")
    assert code == 1
    assert "nowhere" in err
    base.write({"core/page.md": "# Page\n\nSee [x](gone.md).\n"})
    code, out, _ = run("check", "--quiet")
    assert code == 1
    assert out.endswith("[dead-link]\n")


@pytest.mark.parametrize("line", ["-v search fixtures", "search fixtures --verbose"])
def test_verbose_says_what_was_used_and_found(run: Run, base: Base, line: str) -> None:
    code, out, err = run(*line.split())
    assert code == 0
    assert out == run("search", "fixtures")[1]
    assert f"sage: root {base.root}, found by " in err
    assert "there is no sage.yaml" in err
    assert "sage: 2 documents, 0 problems\n" in err
    assert "sage: index ready, 3 sections, kept on disk" in err


@pytest.mark.parametrize("line", ["info -q -v", "-v info -q", "-q -v info"])
def test_quiet_and_verbose_together_are_refused(run: Run, line: str) -> None:
    code, _, err = run(*line.split())
    assert code == 2
    assert "--quiet and --verbose exclude each other" in err


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("get ", "core guidelines frameworks practices all"),
        ("get p", "practices"),
        ("get core ", "principles"),
        ("get all pr", "practices/testing"),
        ("search x --layer g", "guidelines"),
        ("context pl", "planning"),
        ("install cl", "claude-code claude-desktop"),
    ],
)
def test_a_shell_completes_layers_topics_task_types_and_clients(
    run: Run, monkeypatch: pytest.MonkeyPatch, line: str, offered: str
) -> None:
    words = f"sage {line}"
    monkeypatch.setenv("_SAGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert sorted(run()[1].split()) == sorted(offered.split())


def test_away_from_a_knowledge_base_a_shell_completes_nothing(
    run: Run, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base.root.parent)
    monkeypatch.setenv("_SAGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sage get ")
    monkeypatch.setenv("COMP_CWORD", "2")
    code, out, err = run()
    assert (code, out.strip(), err) == (0, "", "")
