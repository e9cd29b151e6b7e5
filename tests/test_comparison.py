"""Every row of the comparison is run: what a newcomer is told to call answers as it is told."""

import ast
import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastmcp import Client

from sage.knowledge import open_knowledge
from sage.server.mcp_server import create_server
from sage.settings import load_settings
from tests.commands import Run, run
from tests.conftest import Base
from tests.repositories import git, repository

__all__ = ["run"]
PAGE = Path(__file__).parent.parent / "docs" / "comparison.md"
NONE = "no counterpart"

OAK = ("oak_search", "oak_remember", "oak_context", "oak_resolve_memory")
LANONASIS = (
    *("create_memory", "get_memory", "update_memory", "delete_memory", "list_memories"),
    *("search_memories", "bulk_delete_memories"),
    *("create_api_key", "list_api_keys", "get_api_key", "rotate_api_key", "revoke_api_key"),
    *("health_check", "get_stats", "list_topics"),
    *("intelligence_health_check", "intelligence_suggest_tags", "intelligence_find_related"),
    *("intelligence_detect_duplicates", "intelligence_extract_insights"),
    *("intelligence_analyze_patterns", "get_config", "set_config"),
    *("create_project", "list_projects", "get_organization_info", "search_lanonasis_docs"),
)
PARAMETERS = {
    "oak_search": ("search_type", "limit"),
    "oak_remember": ("memory_type", "context"),
    "oak_context": ("current_files", "max_tokens"),
    "oak_resolve_memory": ("id", "status", "reason"),
    "create_memory": (
        *("title", "content", "memory_type", "tags"),
        *("topic_id", "project_ref", "metadata", "summary"),
    ),
    "update_memory": (
        *("title", "content", "memory_type", "tags", "topic_id"),
        *("project_ref", "status", "metadata", "summary"),
    ),
    "list_memories": (
        *("page", "limit", "memory_type", "topic_id", "project_ref"),
        *("status", "tags", "sort", "order"),
    ),
    "search_memories": (
        *("memory_types", "tags", "topic_id", "project_ref", "status", "threshold"),
    ),
}

_RETRIES = (
    "Retry a payment three times at most, with a growing pause between the calls, and give up "
    "when the bank answers that the card is blocked, because a fourth call is billed to us."
)
_CARDS = (
    "Keep no number of a card anywhere, neither in a log nor in a test: the bank gives a name "
    "for each of them, and that name is all that our tables, our logs and our mails may hold."
)
PAGES = {
    "core/principles.md": "# Principles\n\nSay why a payment failed.\n",
    "practices/retries.md": (
        "---\ntype: guide\ntags: [payments, calls]\nstatus: published\nsummary: How often.\n"
        f"owner: pay\n---\n# Retries\n\n{_RETRIES}\n\nSee [timeouts](timeouts.md).\n"
    ),
    "practices/timeouts.md": (
        "---\ntype: guide\ntags: [calls]\nlast_updated: 2020-01-01\n---\n# Timeouts\n\n"
        "A payment ends after three seconds; the bank answers calls within one. "
        "See [retries](retries.md).\n"
    ),
    "practices/repeated.md": (
        f"---\nid: n3x8q4\ntype: discovery\ntags: [payments]\n---\n# Repeated calls\n\n{_RETRIES}\n"
    ),
    "practices/polling.md": (
        "---\nid: n7k2m9\ntype: gotcha\napplies_to: [src/pay.py]\n---\n# Polling\n\n"
        "The polling interval of the bank is two minutes; retry no sooner.\n"
    ),
    "practices/inbox/limits-n5d1r2.md": (
        "---\nid: n5d1r2\ntype: gotcha\nstatus: draft\n---\n# Limits\n\nForty calls a minute.\n"
    ),
    "practices/plans/queue.md": "---\ntype: plan\n---\n# Queue\n\nMove payments to a queue.\n",
    "practices/webhooks.md": "# Webhooks\n\nThey come twice.\n",
    "practices/sandbox.md": "# Sandbox\n\nIt is closed at night.\n",
    "practices/fax.md": "# Fax\n\nOrders by fax are typed in.\n",
    "practices/telex.md": "# Telex\n\nNobody sends one.\n",
    "practices/cards.md": f"# Cards\n\n{_CARDS}\n",
    "practices/plastic.md": f"# Plastic\n\n{_CARDS}\n",
    "sage.yaml": "sources: {company: vendor/company}\n",
}
ELSEWHERE = {
    "src/pay.py": "def pay() -> None: ...\n",
    "vendor/company/.knowledge/core/naming.md": "# Naming\n\nNames are verbs.\n",
    "usage.jsonl": "",
}

SHOWN: dict[str, tuple[str, ...]] = {
    "oak_search": ("practices/retries", '"found": "yes"'),
    "oak_search: search_type all": ("practices/retries", "practices/polling"),
    "oak_search: search_type memory": ("practices/polling", '"type": "gotcha"'),
    "oak_search: search_type plans": ("practices/plans/queue", '"total": 1'),
    "oak_search: search_type code": ("practices/polling",),
    "oak_search: limit": ("practices/retries",),
    "oak_remember": ("practices/inbox", "sandbox-bank"),
    "oak_remember: memory_type": ("practices/inbox", "refunds"),
    "oak_remember: context": ("practices/inbox", "webhooks"),
    "oak_remember in a conversation": ("sage note",),
    "oak_context": ("practices/retries", '"token_count"'),
    "oak_context: current_files": ("practices/polling",),
    "oak_context: max_tokens": ("practices/retries",),
    "oak_resolve_memory: id, status resolved, reason": ("practices/polling", "resolved"),
    "oak_resolve_memory: status superseded": ("practices/repeated", "practices/retries"),
    "oak_resolve_memory: where an id comes from": ('"id": "n7k2m9"',),
    "create_memory: title, content, memory_type, tags": ("practices/inbox", "ledger-calls"),
    "create_memory, update_memory: topic_id": (),
    "create_memory, update_memory: project_ref": ("practices/inbox", "ledger-ids"),
    "create_memory: metadata, summary": ("practices/inbox", "transfers"),
    "get_memory": ("polling interval",),
    "update_memory: title, content, memory_type, tags, metadata, summary": ("1 file changed",),
    "update_memory: status": ("practices/inbox/limits", "published"),
    "delete_memory": ("rm '.knowledge/practices/sandbox.md'",),
    "bulk_delete_memories": ("practices/fax.md", "practices/telex.md"),
    "list_memories": ('"total": 14', '"next_offset": 10'),
    "list_memories: page": ('"next_offset": 6',),
    "list_memories: limit": ('"next_offset": 2',),
    "list_memories: memory_type": ('"total": 1', "practices/plans/queue"),
    "list_memories: topic_id": ("Move payments to a queue",),
    "list_memories: project_ref": ('"total": 1', "core/naming"),
    "list_memories: status": ('"total": 1', "practices/inbox/limits"),
    "list_memories: tags": ('"total": 2', "practices/repeated"),
    "list_memories: sort": ('"total": 14',),
    "list_memories: order asc": ("practices/retries",),
    "list_memories: order desc": ("practices/retries",),
    "search_memories": ("practices/retries",),
    "search_memories: memory_types, tags, status": ('"total": 1', "practices/retries"),
    "search_memories: topic_id": ("practices/retries",),
    "search_memories: project_ref": ("core/naming",),
    "search_memories: threshold": ('"found": "no"', "astronauts"),
    "create_api_key": ("sage_",),
    "list_api_keys": ("ci", "core"),
    "get_api_key": ('"ci"',),
    "rotate_api_key": ("sage_",),
    "revoke_api_key": ("ci",),
    "health_check": ('"status": "healthy"',),
    "get_stats": ("practices", "guide"),
    "list_topics": ("plans",),
    "intelligence_health_check": ('"index"',),
    "intelligence_suggest_tags": ("payments",),
    "intelligence_find_related": ("practices/timeouts",),
    "intelligence_detect_duplicates": ("practices/cards", "practices/plastic"),
    "intelligence_extract_insights": ("Retry a payment three times",),
    "intelligence_analyze_patterns": ("practices",),
    "get_config": ("sources: {company",),
    "set_config": ("1 file changed",),
    "create_project": ("Initialized", ".knowledge"),
    "list_projects": ('"sources"', "company"),
    "get_organization_info": (),
    "search_lanonasis_docs": ("core/naming",),
}
"""For each row what its calls must answer; every row has its own line."""


class Row(NamedTuple):
    """A line of the tables: whose tool it is about, and the calls that stand in its place."""

    theirs: str
    here: str
    calls: list[str]


def rows() -> list[Row]:
    """All lines of all tables."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    return [
        Row(theirs.replace("`", ""), here, re.findall("`([^`]+)`", here))
        for theirs, here, _ in cells
    ]


def test_every_tool_and_parameter_of_theirs_has_a_row() -> None:
    named = [row.theirs for row in rows()]
    assert {re.split("[:, ]", name)[0] for name in named} == {*OAK, *LANONASIS}
    for tool, parameters in PARAMETERS.items():
        about = {word for name in named if tool in name for word in re.findall(r"\w+", name)}
        assert about >= set(parameters), tool


def test_every_row_has_a_call_that_a_test_runs_or_says_that_there_is_none() -> None:
    assert [row.theirs for row in rows()] == list(SHOWN)
    for row in rows():
        assert row.calls or row.here == NONE, row
        plain = re.sub("`[^`]+`", "", row.here).strip(" ,")
        assert plain in ("", NONE, f"{NONE}; nearest:"), row


def test_every_row_does_what_it_says(
    run: Run, base: Base, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prepare(base)
    monkeypatch.setenv("SAGE_TOKENS", str(tmp_path / "tokens.json"))
    monkeypatch.setenv("SAGE_SEARCH_SEMANTIC", "off")
    answers = asyncio.run(asked(base))
    said: dict[str, str] = {}
    for row in rows():
        said[row.theirs] = "".join(
            answers[call] if is_tool(call) else typed(call, run, base) for call in row.calls
        )
        missing = [text for text in SHOWN[row.theirs] if text not in said[row.theirs]]
        assert not missing, f"{row.theirs}: {missing} is not in {said[row.theirs]}"
    old, new = "practices/timeouts", "practices/retries"
    oldest, newest = said["list_memories: order asc"], said["list_memories: order desc"]
    assert oldest.index(old) < oldest.index(new)
    assert newest.index(new) < newest.index(old)
    assert old not in said["list_memories: sort"], "the oldest of 14 is not among ten"
    assert "status: resolved" in base.path("practices/polling.md").read_text("utf-8")
    assert "status: superseded" in base.path("practices/repeated.md").read_text("utf-8")
    (draft,) = base.path("practices/inbox").glob("*transfers*")
    assert "owner: pay-team" in draft.read_text("utf-8")
    assert base.path("practices/plans/webhooks.md").is_file()
    assert not base.path("practices/sandbox.md").exists()


def prepare(base: Base) -> None:
    """A repository with one commit, and two edits that are not committed yet."""
    base.path("practices/testing.md").unlink()
    pages = {f".knowledge/{path}": text for path, text in PAGES.items()}
    repository(base.root, {**pages, **ELSEWHERE})
    base.write(
        {
            "practices/retries.md": PAGES["practices/retries.md"] + "\nStop at a blocked card.\n",
            "sage.yaml": PAGES["sage.yaml"] + "check: {stale_months: 6}\n",
        }
    )


def is_tool(call: str) -> bool:
    """Whether a call goes to the server."""
    return call.startswith("sage_")


async def asked(base: Base) -> dict[str, str]:
    """What a client of the server is answered, for every call that goes there."""
    settings = load_settings({"root": base.root}, base.environment, base.root)
    client: Any = Client(create_server(open_knowledge(settings)))
    async with client:
        prompts = {one.name for one in await client.list_prompts()}
        calls = [call for row in rows() for call in row.calls if is_tool(call)]
        return {call: await answer(client, prompts, call) for call in calls}


async def answer(client: Any, prompts: set[str], call: str) -> str:
    """What a tool or a prompt answers, as text."""
    name, arguments = parsed(call)
    if name in prompts:
        (message,) = (await client.get_prompt(name, arguments)).messages
        return str(message.content.text)
    result = await client.call_tool_mcp(name, arguments)
    assert not result.is_error, (call, result.content)
    return json.dumps(result.structured_content)


def parsed(call: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call as it stands on the page."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    assert not node.args
    return node.func.id, {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}


def typed(call: str, run: Run, base: Base) -> str:
    """What a command prints."""
    program, *words = shlex.split(call)
    if program == "git":
        return git(base.root, *words)
    assert program == "sage", call
    code, printed, error = run(*words)
    assert code == 0, (call, printed, error)
    return printed + error
