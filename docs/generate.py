"""Writes the reference pages that come from the code: settings, tools and commands.

`python -m docs.generate` writes them; `--check` fails when one has drifted.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from sage.cli.help import default_of
from sage.cli.main import app
from sage.context.recipes import BUILT_IN
from sage.server.schemas import answer_schema, input_schema
from sage.server.tools import Tool, all_tools, draft_tool
from sage.settings import declared_settings
from sage.settings_schema import Setting

FOLDER = Path(__file__).parent
NOTICE = "<!-- Written by `make docs` from the code. Edit the code, not this page. -->\n"
DEFAULT_LAYERS = ("core", "guidelines", "frameworks", "practices")


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    return {
        "configuration.md": configuration(),
        "tools.md": tools(),
        "cli.md": commands(),
    }


def configuration() -> str:
    """The reference of settings and environment variables."""
    lines = [
        "# Configuration",
        "",
        NOTICE,
        "SAGE works without configuration. What a team wants different goes into",
        "`.knowledge/sage.yaml`; what one machine or one run wants different goes into a file of",
        "the operator's, the environment or a flag. Flags win over the environment, that over the",
        "operator's file, that over `sage.yaml`, and `sage.yaml` over the defaults. An",
        "unknown key or a wrong value is an error that names the file, the key and the allowed",
        "values.",
        "",
        "Settings are read at the start: a server over files takes up an edited file (layers,",
        "synonyms, recipes, …) when it is started again. Pages are followed without that, and a",
        "replica of a cluster follows the settings that are published too.",
        "",
        "## Who decides what",
        "",
        "A repository may be anybody's, so its `sage.yaml` decides only what its pages are and how",
        "they are found. What is logged, what a file or a call may cost and whether warnings about",
        "safety count is for the operator: whoever runs the server or the command. The operator's",
        "file is `config.yaml` in the user's configuration folder (`~/.config/sage` on Linux), or",
        "the file that `--config` or `SAGE_CONFIG` names, which then replaces",
        "`sage.yaml`; it may hold every setting.",
        "",
        "| decided by the repository | decided by the operator only |",
        "|---|---|",
        *_deciders(),
        "",
        "## The root",
        "",
        "The root is the folder that holds `.knowledge`. The first of these that is set is used:",
        "",
        "1. `--root PATH`",
        "2. `SAGE_ROOT`",
        "3. `CLAUDE_PROJECT_DIR`, and upward from it",
        "4. the working directory, and upward from it",
        "",
        "## Settings",
        "",
    ]
    for setting in declared_settings():
        lines += _setting(setting)
    lines += [
        "## Environment",
        "",
        "| variable | meaning |",
        "|---|---|",
        "| `SAGE_ROOT` | The repository to serve. |",
        "| `SAGE_CONFIG` | A file of the operator's in place of `.knowledge/sage.yaml`. |",
        "| `SAGE_CACHE_DIR` | Where the index is kept; by default the user's cache folder. |",
        "| `NO_COLOR` | No colours on a terminal. |",
        "",
        "Every setting with a variable below its name can be set by it too; a list is separated",
        "by commas.",
        "",
    ]
    return "\n".join(lines)


def _deciders() -> Iterator[str]:
    settings = declared_settings()
    theirs = [f"`{one.key}`" for one in settings if not one.is_operators]
    own = [f"`{one.key}`" for one in settings if one.is_operators]
    yield f"| {', '.join(theirs)} | {', '.join(own)} |"


def _setting(setting: Setting) -> Iterator[str]:
    yield f"### `{setting.key}`"
    yield ""
    yield setting.doc
    yield ""
    yield f"- Values: {setting.values.expected}"
    yield f"- Default: `{json.dumps(setting.default, ensure_ascii=False)}`"
    if setting.variable:
        yield f"- Variable: `{setting.variable}`"
    if setting.is_operators:
        yield "- Decided by the operator: not in a repository's `sage.yaml`"
    yield ""


def tools() -> str:
    """The reference of the tools, with the schemas a client is given."""
    lines = ["# Tools", "", NOTICE]
    for tool in all_tools(DEFAULT_LAYERS, tuple(recipe.name for recipe in BUILT_IN)):
        lines += _tool(tool)
    lines += [
        "The next tool is there only where the operator set `notes.draft_tool`; it writes nothing.",
        "",
        *_tool(draft_tool()),
    ]
    lines += [
        "## Errors",
        "",
        "A tool error is one line of text that begins with a code: `INVALID_INPUT`, `NOT_FOUND`,",
        "`TIMEOUT`, `UNAVAILABLE` (a replica cannot reach what it answers from) or `INTERNAL`;",
        "then what was wrong, the valid or nearest values, and the next call to make.",
        "",
    ]
    return "\n".join(lines)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"## {tool.name}"
    yield ""
    yield tool.description
    yield ""
    yield "Input:"
    yield ""
    yield from _fenced(input_schema(tool.arguments))
    yield "Output:"
    yield ""
    yield from _fenced(answer_schema(tool.answer, tool.described))


def _fenced(schema: dict[str, Any]) -> Iterator[str]:
    yield "```json"
    yield json.dumps(schema, indent=2, ensure_ascii=False)
    yield "```"
    yield ""


_EVERYWHERE = """\
On a terminal answers have colours, tables and a pager; in a pipe they are plain text, and with
`--json` one object, for `get`, `search`, `context` and `info` exactly what the tool answers.
`NO_COLOR=1` switches colours off. `--quiet` leaves out everything but the answer, `--verbose` says
on stderr what was used and found; both may come before or after the command. Errors are one line on
stderr.

`sage --install-completion` lets your shell complete commands, options, layers, topics, task types
and clients; it takes effect in a new shell.""".splitlines()


_UNAVAILABLE = (
    "out of time, or not to be had now: a cluster does not answer or is not well, nothing is "
    "published there, or another publish holds the lock"
)


def commands() -> str:
    """The reference of the command line, from the help of each command."""
    lines = ["# Command line", "", NOTICE, *_EVERYWHERE, ""]
    group = typer.main.get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError("the command line is a group of commands")
    for name, command in group.commands.items():
        lines += _command(name, command)
    lines += [
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | success |",
        "| 1 | an error, or something that was looked for is not there |",
        "| 2 | wrong arguments |",
        f"| 3 | {_UNAVAILABLE} |",
        "| 4 | the configuration is wrong |",
        "",
    ]
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## sage {name}"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    yield "```text"
    inner = getattr(command, "commands", {})
    words = ["COMMAND"] if inner else command.collect_usage_pieces(None)
    yield " ".join([f"sage {name}", *words])
    yield from (command.epilog or "").removeprefix("\b").splitlines()
    yield "```"
    yield ""
    if command.params:
        yield "| parameter | meaning | default |"
        yield "|---|---|---|"
        for parameter in command.params:
            yield _parameter(parameter)
        yield ""
    for inner_name, inner_command in inner.items():
        yield from _command(f"{name} {inner_name}", inner_command)


def _parameter(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    name = parameter.metavar if argument else ", ".join(parameter.opts)
    value = "" if argument or not parameter.metavar else f" {parameter.metavar}"
    default = default_of(parameter)
    shown = default if isinstance(parameter.show_default, str) or not default else f"`{default}`"
    return f"| `{name}{value}` | {(parameter.help or '').replace('|', chr(92) + '|')} | {shown} |"


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` say which are not what the code says."""
    drifted = []
    for name, text in pages().items():
        page = FOLDER / name
        if "--check" not in arguments:
            page.write_text(text, "utf-8")
        elif not page.exists() or page.read_text("utf-8") != text:
            drifted.append(name)
    for name in drifted:
        sys.stderr.write(f"docs/{name} is not what the code says; run: make docs\n")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
