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

from sage.arguments import input_schema
from sage.cli import app
from sage.outputs import answer_schema
from sage.recipes import BUILT_IN
from sage.schema import Setting
from sage.settings import declared_settings
from sage.tools import Tool, all_tools

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
        "`.knowledge/sage.yaml`; what one machine or one run wants different goes into the",
        "environment or a flag. Flags win over the environment, the environment over the file, the",
        "file over the defaults. An unknown key or a wrong value is an error that names the file,",
        "the key and the allowed values.",
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
        "| `SAGE_CONFIG` | Another file in place of `.knowledge/sage.yaml`. |",
        "| `SAGE_CACHE_DIR` | Where the index is kept; by default the user's cache folder. |",
        "| `NO_COLOR` | No colours on a terminal. |",
        "| `TIKTOKEN_CACHE_DIR` | Where vocabularies other than `cl100k_base` lie. |",
        "",
        "Every setting with a variable below its name can be set by it too; a list is separated",
        "by commas.",
        "",
    ]
    return "\n".join(lines)


def _setting(setting: Setting) -> Iterator[str]:
    yield f"### `{setting.key}`"
    yield ""
    yield setting.doc
    yield ""
    yield f"- Values: {setting.expected}"
    yield f"- Default: `{json.dumps(setting.default, ensure_ascii=False)}`"
    if setting.variable:
        yield f"- Variable: `{setting.variable}`"
    yield ""


def tools() -> str:
    """The reference of the four tools, with the schemas a client is given."""
    lines = ["# Tools", "", NOTICE]
    for tool in all_tools(DEFAULT_LAYERS, tuple(recipe.name for recipe in BUILT_IN)):
        lines += _tool(tool)
    lines += [
        "## Errors",
        "",
        "A tool error is one line of text that begins with a code: `INVALID_INPUT`, `NOT_FOUND`,",
        "`TIMEOUT` or `INTERNAL`; then what was wrong, the valid or nearest values, and the next",
        "call to make.",
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
    yield from _fenced(answer_schema(tool.answer))


def _fenced(schema: dict[str, Any]) -> Iterator[str]:
    yield "```json"
    yield json.dumps(schema, indent=2, ensure_ascii=False)
    yield "```"
    yield ""


_EVERYWHERE = """\
On a terminal answers have colours, tables and a pager; in a pipe they are plain text, and with
`--json` one object, for `get`, `search`, `context` and `info` exactly what the tool answers.
`NO_COLOR=1` switches colours off. `--quiet` leaves out everything but the answer, `--verbose` says
on stderr what was used and found; both stand before or behind the command. Errors are one line on
stderr.

`sage --install-completion` lets your shell complete commands, options, layers, topics, task types
and clients; it takes effect in a new shell.""".splitlines()


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
        "| 3 | out of time |",
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
    yield f"sage {name} " + " ".join(_usage(command.params))
    yield "```"
    yield ""
    if command.params:
        yield "| parameter | meaning | default |"
        yield "|---|---|---|"
        for parameter in command.params:
            yield _parameter(parameter)
        yield ""
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {inner_name}", inner)


def _usage(parameters: list[Any]) -> Iterator[str]:
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            word = parameter.name.upper()
            yield word if parameter.required else f"[{word}]"
    if any(parameter.param_type_name == "option" for parameter in parameters):
        yield "[OPTIONS]"


def _parameter(parameter: Any) -> str:
    argument = parameter.param_type_name == "argument"
    name = parameter.name.upper() if argument else ", ".join(parameter.opts)
    default = parameter.default
    shown = "" if default is None or default is False or callable(default) else f"`{default}`"
    if not argument and isinstance(parameter.show_default, str):
        shown = parameter.show_default
    return f"| `{name}` | {(parameter.help or '').replace('|', chr(92) + '|')} | {shown} |"


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
