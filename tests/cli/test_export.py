"""`sage export` as a person types it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sage.cli.main import app
from sage.errors import InvalidInput


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repo"
    (root / ".knowledge/core").mkdir(parents=True)
    (root / ".knowledge/core/values.md").write_text("# Values\n\nShip small.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("SAGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return root


def run(line: str) -> Result:
    return CliRunner().invoke(app, line.split())


def test_export_edit_check_and_export_again(root: Path) -> None:
    (root / "AGENTS.md").write_text("# Mine\n")
    assert "updated     AGENTS.md" in run("export agents --layer core --budget 500").stdout
    assert run("export --check").exit_code == 0
    page = root / ".knowledge/core/values.md"
    page.write_text("# Values\n\nShip smaller.\n")
    checked = run("export --check")
    assert (checked.exit_code, checked.stdout) == (1, "not updated AGENTS.md\n")
    assert "export-drift" in run("check").stdout
    assert run("export").exit_code == 0
    text = (root / "AGENTS.md").read_text()
    assert text.startswith("# Mine\n\n<!-- sage:export:begin budget=500 layer=core -->\n")
    assert "Ship smaller." in text
    assert "export-drift" not in run("check").stdout
    assert (
        "budget=500 -->" in (run("export agents --layer all"), (root / "AGENTS.md").read_text())[1]
    )


def test_programs_are_told_what_changed(root: Path) -> None:
    answer = json.loads(run("export cursor skills --json").stdout)
    assert [one["host"] for one in answer] == ["cursor", "skills"]
    assert answer[0]["changes"] == [{"path": ".cursor/rules/sage/index.mdc", "action": "written"}]
    assert answer[1] == {"host": "skills", "files": [], "changes": []}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("export", "nothing is exported yet; name one of agents"),
        ("export cursr", "did you mean cursor"),
        ("export agents --layer cor", "there is no layer 'cor'"),
        ("export agents --budget 5", "200 to 50,000"),
        ("export skills --folder src", "use .agents/skills or .claude/skills"),
    ],
)
def test_wrong_words_are_refused_with_the_right_ones(root: Path, line: str, words: str) -> None:
    error = run(line).exception
    assert isinstance(error, InvalidInput)
    assert words in str(error)
    assert sorted(path.name for path in root.iterdir()) == [".knowledge"]
