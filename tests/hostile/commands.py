"""Runs one command of `sage` after another in a process that a witness watches.

`python -P commands.py LOG REPORT ROOT`: the commands are read from stdin as JSON, and for each one
its exit code, the processor seconds it took and what it printed that steers a terminal are written
to the report.
"""

import contextlib
import io
import json
import os
import sys
import time
import traceback
from pathlib import Path
from urllib.parse import parse_qs

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.hostile.recorder import Witness

ADDRESSES = (
    *("/", "/?q=quokka", "/why?q=quokka&topic=core/healthy", "/choices", "/read/core", "/live"),
    *(
        "/read/core/healthy",
        "/raw/core/healthy",
        "/history/core/healthy",
        "/health",
        "/health/care",
    ),
    *("/read/../../outside/secret", "/read/%2e%2e/%2e%2e/outside/secret.md", "/health/findings"),
    "/context?task=rinse%20the%20axolotl&task_type=coding",
)
"""What a browser asks the page for."""


def run(words: list[str], root: str) -> tuple[object, str]:
    """The exit code of a command, and the traceback of one that did not end as it should."""
    try:
        if words[0] == "hook":
            send_events(words[1:], root)
        elif words[0] == "page":
            look_at_pages(root)
        elif words[0] == "serve":
            ask_a_server(root)
        elif words[0] == "token" and words[1] != "create":
            run_command(words)  # about the operator's own file, whatever the repository
        else:
            run_command([*words, "--root", root])
    except SystemExit as ended:
        return ended.code or 0, ""
    except Exception as error:
        from sage.errors import SageError

        if isinstance(error, SageError):  # what the settings of the page's server say is wrong
            return 4, ""
        return "raised", traceback.format_exc()
    return 0, ""


def steering(printed: str) -> str:
    """What a terminal would obey or hide, with its surroundings; empty when there is nothing."""
    from sage.sanitize import clean

    if clean(printed) == printed:
        return ""
    at = next(at for at, character in enumerate(printed) if clean(character) != character)
    return ascii(printed[max(0, at - 60) : at + 20])


def run_command(words: list[str]) -> None:
    from sage.cli.main import main

    sys.argv = ["sage", *words]
    main()


def send_events(words: list[str], root: str) -> None:
    """The command `hook` ends its process: here it answers three events and stays."""
    from sage.hooks.command import run as answer

    touched = {"tool_name": "Edit", "tool_input": {"file_path": f"{root}/src/../../outside/x.py"}}
    for name, more in (
        ("SessionStart", {}),
        ("UserPromptSubmit", {"prompt": "how does the axolotl rinse the quokka"}),
        ("PostToolUse", touched),
    ):
        event = {"session_id": "../../x", "cwd": root, "hook_event_name": name, **more}
        answer([*words, "--root", root], json.dumps(event).encode(), dict(os.environ), Path(root))


def look_at_pages(root: str) -> None:
    """Every address of the page, over the same knowledge base that the server would open."""
    from sage.knowledge import open_knowledge
    from sage.page.site import PageRequest, Site
    from sage.settings import load_settings

    knowledge = open_knowledge(load_settings({"root": root}, dict(os.environ), Path(root)))
    site = Site(knowledge)
    for address in ADDRESSES:
        path, _, query = address.partition("?")
        site.answer(PageRequest(path, parse_qs(query)))
    knowledge.close()


def ask_a_server(root: str) -> None:
    """What a server answers its client with, in this process: every tool, resource and prompt."""
    import asyncio

    from sage.errors import SageError
    from sage.knowledge import open_knowledge
    from sage.server.async_knowledge import AsyncKnowledge
    from sage.server.resource_uris import ResourceUri
    from sage.settings import load_settings

    knowledge = open_knowledge(load_settings({"root": root}, dict(os.environ), Path(root)))
    server = AsyncKnowledge(knowledge)
    topic = "../../outside/secret"

    async def ask() -> None:
        for work in (
            server.call("sage_info", {}),
            server.call("sage_search", {"query": "quokka", "layer": "all"}),
            server.call("sage_get_knowledge", {"layer": "all", "topic": topic}),
            server.call("sage_get_context", {"task_type": "coding", "task": topic}),
            server.read(ResourceUri("core", "healthy")),
            server.read(ResourceUri("all", topic)),
            server.read(ResourceUri("core", "healthy", is_related=True)),
            server.page(0, 50),
            server.skills(0, 50),
            server.skill("skill://../../outside/SKILL.md"),
            *(server.prompt(name, {"context": topic}) for name in server.prompts),
            server.suggestions("topic", "core"),
        ):
            with contextlib.suppress(SageError):
                await work

    asyncio.run(ask())
    server.close()
    knowledge.close()


if __name__ == "__main__":
    commands = json.load(sys.stdin)
    root = sys.argv[3]
    sys.stdin = io.TextIOWrapper(io.BytesIO())
    report = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    Witness(sys.argv[1]).watch()
    for command in commands:
        start = time.process_time()
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code, trace = run(command, root)
        seconds = time.process_time() - start
        out.seek(0)
        line = [command, code, seconds, trace, steering(out.read())]
        os.write(report, json.dumps(line).encode() + b"\n")
