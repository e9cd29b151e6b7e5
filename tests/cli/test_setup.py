"""The team's commands as a person types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sage.cli.main import app
from sage.errors import ConfigError, InvalidInput


class Shell:
    """A repository to type commands in, and a home of its own."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home

    def run(self, line: str, *words: str) -> Result:
        """Run a command; the one line on stderr and the exit code are the main program's."""
        return CliRunner().invoke(app, [*line.split(), *words])

    def out(self, line: str, *words: str) -> str:
        result = self.run(line, *words)
        assert result.exit_code == 0, result.output
        return result.stdout


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    root, home = tmp_path / "repo", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    monkeypatch.chdir(root)
    for name in ("SAGE_ROOT", "CLAUDE_PROJECT_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME",
                 "XDG_CONFIG_HOME", "APPDATA", "GITHUB_WORKSPACE"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SAGE_CACHE_DIR", str(tmp_path / "cache"))
    return Shell(root, home)


def test_from_nothing_to_a_registered_server(shell: Shell) -> None:
    out = shell.out("init --agents")
    assert "written  .knowledge/core/how-we-work.md" in out
    assert out.splitlines()[-2:] == [
        '  sage search "how do we decide"',
        "  sage install claude-code --write",
    ]
    assert "0 errors" in shell.out("check")
    assert "Registered" in shell.out("install claude-code --write")
    record = json.loads((shell.root / ".mcp.json").read_text())["mcpServers"]["sage"]
    assert record["command"] == sys.executable
    assert record["args"][-1] == str(shell.root)


def test_nothing_is_written_without_write(shell: Shell) -> None:
    shell.out("init")
    out = shell.out("install codex")
    assert '[mcp_servers.sage]\n  command = "' in out
    assert "To write it:  sage install codex --scope user --write" in out
    assert "codex mcp add sage -- " in out
    assert not (shell.home / ".codex").exists()


def test_other_servers_are_not_shown(shell: Shell) -> None:
    shell.out("init")
    file = shell.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"x": {"env": {"KEY": "topsecret"}}}}')
    assert "topsecret" not in shell.out("install cursor --scope user")


def test_a_second_install_says_so_and_an_uninstall_undoes_it(shell: Shell) -> None:
    shell.out("init")
    file = shell.home / ".claude.json"
    file.write_text('{"a": 1}\n')
    shell.out("install claude-code --scope user --write")
    assert "Already registered" in shell.out("install claude-code --scope user --write")
    assert "Would remove mcpServers.sage" in shell.out("uninstall claude-code")
    assert "Removed" in shell.out("uninstall claude-code --write")
    assert "Not registered" in shell.out("uninstall claude-code --write")
    assert "sage" not in file.read_text()
    assert file.read_text() == '{"a": 1}\n'
    assert [path.name for path in shell.home.iterdir()] == [".claude.json"]
    assert (
        len(list((shell.root.parent / "cache" / "backups").glob("servers/*/2*-claude.json"))) == 2
    )


def test_a_root_that_is_gone_can_be_unregistered(shell: Shell) -> None:
    shell.out("init")
    shell.out("install codex --write")
    (shell.root / ".knowledge").rename(shell.root / "moved")
    assert isinstance(shell.run("install codex").exception, ConfigError)
    assert "Removed" in shell.out("uninstall codex --write")


def test_wrong_words_are_refused_with_the_right_ones(shell: Shell) -> None:
    shell.out("init")
    for line, words in (
        ("install cursr", "did you mean cursor"),
        ("install zed --scope project", "no scope 'project'; use --scope user"),
        ("install zed --shared", "these do: claude-code, cursor, gemini, vscode"),
        ("install vscode --shared --scope user", "leave out --scope user"),
        ("install vscode --uvx x", "add --shared"),
        ("install zed --name a.b", "letters, digits"),
        ("check --level warn", "use one of note, warning, error"),
        ("check --fail-on warnings", "did you mean warning"),
        ("check --format xml", "use one of text, json, sarif, github"),
    ):
        error = shell.run(line).exception
        assert isinstance(error, InvalidInput), line
        assert words in str(error)


def test_a_project_file_warns_of_its_paths(shell: Shell) -> None:
    shell.out("init")
    assert "paths of this machine" in shell.run("install vscode").stderr
    assert "paths of this machine" not in shell.run("install zed").stderr


def test_an_entry_to_commit_is_the_same_for_everyone(shell: Shell) -> None:
    shell.out("init")
    assert "To write it:  sage install claude-code --shared --write" in shell.out(
        "install claude-code --shared"
    )
    result = shell.run("install claude-code --shared --write")
    assert "commit .mcp.json; everyone who uses it needs sage on the PATH" in result.stderr
    entry = json.loads((shell.root / ".mcp.json").read_text())["mcpServers"]["sage"]
    assert entry == {"type": "stdio", "command": "sage", "args": ["serve"]}
    shell.out("uninstall claude-code --write")
    assert not (shell.root / ".mcp.json").exists()


def test_a_second_repository_leaves_the_first_ones_entry(shell: Shell, tmp_path: Path) -> None:
    shell.out("init")
    shell.out("install codex --write")
    other = tmp_path / "other"
    other.mkdir()
    shell.out("init --root", str(other))
    result = shell.run("install codex --write --root", str(other))
    assert "this one is called sage-other" in result.stderr
    text = (shell.home / ".codex" / "config.toml").read_text()
    assert f'"{shell.root}"' in text
    assert f'"{other}"' in text
    shell.out("uninstall codex --write --root", str(other))
    assert "Already registered" in shell.out("install codex")


def test_check_fails_as_it_is_told(shell: Shell) -> None:
    shell.out("init")
    page = shell.root / ".knowledge" / "core" / "page.md"
    page.write_text("# Page\n\nText `core/gone.md`.\n")
    assert shell.run("check").exit_code == 0
    assert shell.run("check --fail-on warning").exit_code == 1
    page.write_text("# Page\n\nText [a](gone.md).\n")
    assert shell.run("check").exit_code == 1
    assert shell.run("check --fail-on never").exit_code == 0


def test_check_prints_every_form(shell: Shell) -> None:
    shell.out("init")
    (shell.root / ".knowledge" / "core" / "page.md").write_text("# Page\n\nText `core/gone.md`.\n")
    assert "core/page.md:3: warning: `core/gone.md` does not exist [dead-path]" in shell.out(
        "check"
    )
    assert json.loads(shell.out("check --json"))["warnings"] == 1
    assert shell.out("check --format github").startswith("::warning file=.knowledge/core/page.md")
    assert json.loads(shell.out("check --format sarif"))["version"] == "2.1.0"
    assert "[dead-path]" not in shell.out("check --level error")
    assert "dead-link" in shell.out("check --rules")


def test_limits_of_a_check_are_options(shell: Shell) -> None:
    shell.out("init")
    out = shell.out("check --max-section-tokens 20")
    assert "[large-section]" in out
    assert "[large-page]" in shell.out("check --max-page-tokens 20")


def test_limits_of_a_check_stand_in_the_settings_and_options_win(shell: Shell) -> None:
    shell.out("init")
    settings = shell.root / ".knowledge" / "sage.yaml"
    settings.write_text("check: {max_section_tokens: 20, fail_on: warning}\n")
    failed = shell.run("check")
    assert failed.exit_code == 1
    assert "[large-section]" in failed.stdout
    assert shell.run("check --fail-on error").exit_code == 0
    assert "[large-section]" not in shell.out("check --max-section-tokens 1000")


def test_the_doctor_answers_with_an_exit_code(shell: Shell) -> None:
    result = shell.run("doctor")
    assert result.exit_code == 1
    assert "PROBLEM root" in result.stdout
    shell.out("init")
    assert "ok      root" in shell.out("doctor")
    states = {
        finding["name"]: finding["state"] for finding in json.loads(shell.out("doctor --json"))
    }
    assert states["index"] == "ok"
    assert states["zed (user)"] == "absent"


def test_no_command_of_the_team_imports_the_server() -> None:
    modules = (
        "sage.check.run, sage.install.doctor, sage.install.registration, "
        "sage.install.scaffold, sage.cli.setup_output"
    )
    program = f"import sys, {modules}; sys.exit({{'fastmcp', 'mcp'}} & set(sys.modules) or 0)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
