"""Every example of the documentation is run, or loaded by what would read it.

Each block of code on a page is claimed by one test below; a block that none claims fails the last
one, so that an example cannot be written without being tried.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sage.documents.document import parse_document
from sage.knowledge import open_knowledge
from sage.safe_yaml import load_yaml
from sage.search.evaluation import read_golden_file
from sage.settings import load_settings
from tests.commands import Run, run
from tests.conftest import Base
from tests.findings import checked, found
from tests.processes import PATIENCE_SECONDS

__all__ = ["run"]
ROOT = Path(__file__).parent.parent
GENERATED = ("cli.md", "configuration.md", "tools.md")
TRIED_ELSEWHERE = {
    "tutorial.md": "test_docs runs it from the first command to the last",
    "python3 -m venv": "it needs a network; .ci/run installs the wheel in an empty environment",
    "claude mcp add": "it is the client's own command",
    "sage publish": "tests/cluster publishes to a real cluster",
    "sage serve --http --engine opensearch": "tests/cluster serves from a real cluster",
    "'.[semantic]'": "make semantic installs it",
    "sage eval --compare": "tests/semantic/test_commands.py runs it",
    "SAGE_SEARCH_MODEL=": "tests/semantic/test_onnx_folder.py makes such a folder and uses it",
    "sage page": "tests/page starts it and looks at it with a browser",
}
_BLOCK = re.compile(r"^(?P<fence>```+)(?P<kind>\w*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`(sage [^`]+)`(?!`)")


class Example(NamedTuple):
    """A block of code on a page."""

    page: str
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands: all lines, or in a dialogue those behind a prompt."""
        joined = self.text.replace("\\\n", " ")
        if self.kind == "console":
            return re.findall(r"^\$ (.+)$", joined, re.MULTILINE)
        return [line for line in joined.splitlines() if line.strip()]


def examples(page: str, kind: str) -> list[Example]:
    """The blocks of one kind on a page."""
    return [one for one in all_examples() if (one.page, one.kind) == (page, kind)]


def all_examples() -> Iterator[Example]:
    """Every block of every page that a person wrote."""
    for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]:
        if path.name not in (*GENERATED, "tutorial.md"):
            for block in _BLOCK.finditer(path.read_text("utf-8")):
                yield Example(path.name, block["kind"], block["text"])


def loaded(text: str) -> Any:
    """A text of YAML."""
    return load_yaml(text, 10_000)


def is_like(shown: str, printed: str) -> bool:
    """Whether a text was printed as it is shown; `...` and `…` stand for what was left out."""
    pattern = re.escape(shown.strip()).replace(r"\.\.\.", ".*?").replace("…", ".*?")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def shell(line: str, folder: Path, **more: str) -> "subprocess.Popen[str]":
    """A command of the documentation as a person types it."""
    bin_folder = Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if "SAGE_" not in name}
    environment |= {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "SAGE_CACHE_DIR": str(folder / "cache"),
        "SAGE_TOKENS": str(folder.parent / "tokens.json"),
        **more,
    }
    return subprocess.Popen(
        ["sh", "-c", f"exec {line}"],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("page", ["README.md", "context.md"])
def test_a_dialogue_prints_what_it_shows(
    page: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    dialogues = examples(page, "console")
    assert dialogues
    for part in re.split(r"^\$ ", dialogues[0].text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        _, *words = shlex.split(command)
        code, printed, _ = run(*words)
        assert code == 0
        assert is_like(shown, printed), printed


def test_the_check_of_the_guide_prints_what_it_shows(run: Run, base: Base) -> None:
    (dialogue,) = examples("ci.md", "console")
    page = "# {}\n\nWhat it says.\n"
    base.write({f"core/page-{number}.md": page.format(f"Page {number}") for number in range(34)})
    noted = "---\nreviewed: yes\n---\n# Noted {}\n\nWhat it says.\n"
    base.write({f"core/noted-{number}.md": noted.format(number) for number in range(3)})
    base.write({"practices/retries.md": page.format("Retries")})
    base.write(
        {"core/limits.md": page.format("Limits") + "\n" * 8 + "See [retries](retries.md).\n"}
    )
    for layer in ("guidelines", "frameworks"):
        base.path(layer).mkdir()
    code, printed, _ = run("check")
    assert code == 1
    assert f"$ sage check\n{printed}" == dialogue.text


def test_make_has_every_target_that_is_named() -> None:
    lines = [
        line for page in ("README.md", "contributing.md", "CONTRIBUTING.md") for line in _made(page)
    ]
    assert len(lines) >= 5
    for line in lines:
        done = subprocess.run(["make", "-n", line.split()[1]], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, line


def _made(page: str) -> list[str]:
    return [
        line for one in examples(page, "sh") for line in one.commands if line.startswith("make ")
    ]


def test_the_commands_of_the_readme_start_a_knowledge_base(tmp_path: Path) -> None:
    commands = [one for one in examples("README.md", "sh") if one.text.startswith("sage ")]
    assert len(commands) == 1
    for line in commands[0].commands:
        _, error = shell(line, tmp_path).communicate(timeout=PATIENCE_SECONDS)
        assert "Traceback" not in error
    assert (tmp_path / ".knowledge" / "core").is_dir()
    entry = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["sage"]
    assert entry["args"][-2:] == ["--root", str(tmp_path)]


@pytest.mark.parametrize("page", ["README.md", "clients.md"])
def test_an_entry_written_by_hand_starts_a_server_that_answers(page: str, base: Base) -> None:
    example = examples(page, "json")[-1]
    server = json.loads(example.text)["mcpServers"]["sage"]
    words = [
        word.replace(server["args"][-1], str(base.root))
        for word in (sys.executable, *server["args"])
    ]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    done = subprocess.run(
        words,
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        cwd="/",
    )
    assert json.loads(done.stdout)["result"] == {}


def test_the_entry_to_commit_is_the_one_that_is_written(run: Run, base: Base) -> None:
    shown = json.loads(examples("clients.md", "json")[0].text)
    assert run("install", "claude-code", "--shared", "--write")[0] == 0
    assert json.loads((base.root / ".mcp.json").read_text()) == shown


def test_the_workflow_runs_the_two_commands_on_every_python_that_is_named() -> None:
    workflow = loaded((ROOT / ".github/workflows/check.yml").read_text("utf-8"))
    job = workflow["jobs"]["check"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert job["strategy"]["matrix"]["python"] == named
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make lint", "make test"]


def test_the_hooks_of_developers_run_what_exists() -> None:
    hooks = loaded((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    for hook in hooks:
        program = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert (Path(sys.executable).parent / program).exists(), program


@pytest.mark.parametrize("command", ["install claude-code --hooks", "uninstall claude-code"])
def test_the_commands_of_the_guide_to_hooks_are_taken(run: Run, base: Base, command: str) -> None:
    lines = [line for one in examples("hooks.md", "sh") for line in one.commands]
    assert any(line.startswith(f"sage {command}") for line in lines)
    assert run(*command.split())[0] == 0


def test_the_front_matter_of_the_guide_is_read_without_a_problem() -> None:
    example, *_ = examples("authoring.md", "yaml")
    document = parse_document(f"{example.text}\n# T\n", "core/page.md", "core")
    assert document.problems == ()
    assert document.meta.extra == {}
    assert (document.title, document.meta.priority) == ("Pytest fixtures", 1)


def test_the_workflows_of_the_guide_run(base: Base) -> None:
    workflow, upload, *_ = examples("ci.md", "yaml")
    base.write({"core/page.md": "# Page\n\nT.\n"})
    steps = loaded(workflow.text)["jobs"]["check"]["steps"] + loaded(upload.text)
    lines = [step["run"] for step in steps if step.get("run", "").startswith("sage")]
    assert len(lines) == 2
    for line in lines:
        out, error = shell(line, base.root).communicate(timeout=PATIENCE_SECONDS)
        assert (out.strip(), error) == ("", "")
    assert json.loads((base.root / "sage.sarif").read_text())["version"] == "2.1.0"


def test_the_hook_of_the_guide_exists_and_takes_its_arguments(run: Run, base: Base) -> None:
    hooks = loaded((ROOT / ".pre-commit-hooks.yaml").read_text())
    wanted = loaded(examples("ci.md", "yaml")[2].text)["repos"][0]["hooks"][0]
    (hook,) = [hook for hook in hooks if hook["id"] == wanted["id"]]
    words = [*hook["entry"].split()[1:], *hook.get("args", []), *wanted["args"]]
    base.write({"guidelines/a.md": "# A\n\nT.\n", "frameworks/b.md": "# B\n\nT.\n"})
    assert run(*words)[0] == 0


def test_what_the_guide_lets_pass_passes(base: Base) -> None:
    (comment,) = examples("ci.md", "markdown")
    (page, everywhere) = (example.text for example in examples("ci.md", "yaml")[3:])
    text = f"# Page\n\nT.\n\n{comment.text}"
    assert found(base, "dead-path", text) == []
    assert found(base, "dead-path", text.replace("<!-- sage-ignore: dead-path -->", "")) == [6]
    old = f"---\nlast_updated: 2001-01-01\n{page}---\n# Page\n\nT.\n"
    assert checked(base, {"core/page.md": old, "sage.yaml": everywhere}).problems == ()


def test_the_address_of_the_guide_links_a_page_to_where_it_is_edited(base: Base) -> None:
    (example,) = examples("page.md", "yaml")
    knowledge = base.open({"sage.yaml": example.text})
    assert knowledge.settings.page.edit_url.endswith("/edit/main/{path}")


def test_the_note_of_the_guide_is_drafted(run: Run, base: Base) -> None:
    (example,) = examples("notes.md", "sh")
    (command,) = example.commands
    base.write({"core/principles.md": "# Principles\n\nBe kind.\n"})
    assert run(*shlex.split(command)[1:], "--yes")[0] == 0
    (page,) = base.path("").rglob("*idempotency*.md")
    assert "src/labels/**" in page.read_text("utf-8")


def test_the_recipes_of_the_guide_are_taken(base: Base) -> None:
    (example,) = examples("context.md", "yaml")
    base.write({"sage.yaml": example.text, "core/principles.md": "# P\n\n## Fail loudly\n\nDo.\n"})
    knowledge = open_knowledge(load_settings({"root": base.root}, base.environment, base.root))
    assert "onboarding" in knowledge.task_types
    assert knowledge.context("debugging")["sources"][0]["topic"] == "core/principles#fail-loudly"


def test_the_golden_queries_of_the_guide_are_read(tmp_path: Path) -> None:
    (example,) = examples("search.md", "yaml")
    (tmp_path / "eval.yaml").write_text(example.text)
    assert len(read_golden_file(tmp_path / "eval.yaml")) == 2


def test_the_scrape_configuration_is_yaml() -> None:
    (example,) = examples("deployment.md", "yaml")
    assert loaded(example.text)["scrape_configs"][0]["job_name"] == "sage"


def test_every_command_of_the_deployment_guide_works(base: Base) -> None:
    commands = [line for one in examples("deployment.md", "sh") for line in one.commands]
    ours = [line for line in commands if line.startswith("sage ")]
    assert len(ours) >= 7
    base.write({"core/page.md": "# Page\n\nT.\n"})
    for line in ours:
        if line.startswith("sage serve"):
            assert "listening" in _first_line(line.replace("--port 8000", "--port 0"), base.root)
        else:
            process = shell(re.sub(r"[\[\]]", "", line), base.root)
            _, error = process.communicate(timeout=PATIENCE_SECONDS)
            assert process.returncode == 0, error


def _first_line(line: str, folder: Path) -> str:
    """What a server says when it has started; it is stopped then."""
    process = shell(line, folder, SAGE_HTTP_PORT="0")
    giving_up = threading.Timer(120, process.kill)
    giving_up.start()
    assert process.stderr is not None
    said = ""
    while "listening" not in said and (one := process.stderr.readline()):
        said += one
    process.terminate()  # while the line is still being written: no signal may be lost then
    process.communicate(timeout=PATIENCE_SECONDS)
    giving_up.cancel()
    assert process.returncode == 0
    return said


def test_every_command_in_a_sentence_exists_with_its_options(run: Run) -> None:
    named = {
        command
        for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]
        for command in _INLINE.findall(_BLOCK.sub("", page.read_text("utf-8")))
    }
    assert len(named) >= 15
    helps: dict[str, str] = {}
    for command in sorted(named):
        words = command.split()[1:]
        name = " ".join(words[: 2 if words[0] in ("token", "tags") else 1])
        if name.startswith("-"):
            name = ""
        if name not in helps:
            code, helps[name], _ = run(*name.split(), "--help")
            assert code == 0, command
        for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", command):
            assert option in helps[name], command


def test_every_example_is_claimed_by_a_test() -> None:
    text = Path(__file__).read_text("utf-8")
    for example in all_examples():
        elsewhere = any(start in example.text for start in TRIED_ELSEWHERE)
        claimed = f'("{example.page}", "{example.kind}")' in text or (
            example.kind in ("sh", "console", "json") and f'"{example.page}"' in text
        )
        assert example.kind == "text" or elsewhere or claimed, example
