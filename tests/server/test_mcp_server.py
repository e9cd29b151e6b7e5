"""The server as a client sees it, over FastMCP's in-memory transport."""

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from fastmcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from sage import __version__
from sage.deadline import Deadline
from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.source_roots import Listing
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.server.mcp_server import create_server
from sage.server.resource_list import list_pages
from sage.settings import load_settings
from tests.processes import PATIENCE_SECONDS, write_base

GOLDEN = Path(__file__).parent.parent / "golden" / "tools.json"
CALLS: dict[str, dict[str, Any]] = {
    "sage_get_knowledge": {"layer": "core"},
    "sage_search": {"query": "fixtures"},
    "sage_get_context": {"task_type": "coding", "task": "write a test"},
    "sage_info": {},
}

CANCELLING: tuple[str, ...] = ("auto", "legacy")
"""The modes in which a client can take a call back."""
AGAIN = "; fix it and call {} again"


@pytest.fixture
def knowledge(tmp_path: Path) -> KnowledgeBase:
    root = write_base(tmp_path)
    environment = {"SAGE_CACHE_DIR": str(tmp_path / "cache")}
    return open_knowledge(load_settings({"root": root}, environment))


def ask(
    knowledge: KnowledgeBase,
    question: Callable[[Any], Awaitable[Any]],
    mode: str = "auto",
    connect: Callable[[KnowledgeBase], Any] = create_server,
) -> Any:
    async def scenario() -> Any:
        client: Any = Client(connect(knowledge), mode=mode)
        async with client:
            return await question(client)

    return asyncio.run(scenario())


def call(knowledge: KnowledgeBase, tool: str, arguments: dict[str, Any]) -> Any:
    return ask(knowledge, lambda client: client.call_tool_mcp(tool, arguments))


def refused(knowledge: KnowledgeBase, tool: str, arguments: dict[str, Any]) -> str:
    result = call(knowledge, tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    text: str = block.text
    return text


def wire_form(result: Any) -> Any:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def test_the_tools_are_those_of_the_golden_file(knowledge: KnowledgeBase) -> None:
    tools = wire_form(ask(knowledge, lambda client: client.list_tools_mcp()))["tools"]
    if os.environ.get("SAGE_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(tools, indent=2, ensure_ascii=False) + "\n", "utf-8")
    assert tools == json.loads(GOLDEN.read_text("utf-8"))


def test_the_list_of_tools_is_small_and_every_description_short(knowledge: KnowledgeBase) -> None:
    listed = ask(knowledge, lambda client: client.list_tools_mcp())
    text = json.dumps(wire_form(listed), ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) < 8_000
    assert all(len(tool.description) < 1_200 for tool in listed.tools)


def test_every_tool_is_marked_as_reading_only(knowledge: KnowledgeBase) -> None:
    for tool in ask(knowledge, lambda client: client.list_tools()):
        hints = tool.annotations
        assert (hints.read_only_hint, hints.idempotent_hint) == (True, True)
        assert hints.open_world_hint is False
        assert tool.title


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("tool", CALLS)
def test_an_answer_fits_its_schema_and_its_text_is_the_same_object(
    knowledge: KnowledgeBase, tool: str, mode: str
) -> None:
    async def question(client: Any) -> None:
        tools = {one.name: one for one in await client.list_tools()}
        result = await client.call_tool_mcp(tool, CALLS[tool])
        assert not result.is_error
        jsonschema.validate(result.structured_content, tools[tool].output_schema)
        (block,) = result.content
        assert json.loads(block.text) == result.structured_content

    ask(knowledge, question, mode)


def test_layers_and_task_types_of_the_settings_are_the_choices(tmp_path: Path) -> None:
    root = write_base(tmp_path)
    (root / ".knowledge" / "sage.yaml").write_text("layers: [practices, core]\n")
    knowledge = open_knowledge(load_settings({"root": root}, {}))
    tools = {one.name: one for one in ask(knowledge, lambda client: client.list_tools())}
    schema = tools["sage_search"].input_schema["properties"]["layer"]
    assert schema["enum"] == ["practices", "core", "all"]
    assert schema["default"] == "all"


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        (
            "sage_search",
            {"query": "x", "limit": "3"},
            'INVALID_INPUT: limit must be a whole number from 1 to 50, not "3"'
            + AGAIN.format("sage_search"),
        ),
        (
            "sage_search",
            {},
            "INVALID_INPUT: query is missing; it must be text" + AGAIN.format("sage_search"),
        ),
        (
            "sage_get_knowledge",
            {"layer": "core", "tpic": "x"},
            'INVALID_INPUT: there is no argument "tpic"; did you mean topic? (it takes layer,'
            " topic, timeout_ms, max_tokens)" + AGAIN.format("sage_get_knowledge"),
        ),
        (
            "sage_nothing",
            {},
            "NOT_FOUND: there is no such tool; the tools are " + ", ".join(CALLS),
        ),
    ],
)
def test_a_wrong_call_is_refused_in_one_line_with_what_would_be_right(
    knowledge: KnowledgeBase, tool: str, arguments: dict[str, Any], line: str
) -> None:
    assert refused(knowledge, tool, arguments) == line


def test_an_unknown_topic_is_not_found_with_the_nearest(knowledge: KnowledgeBase) -> None:
    asked = {"layer": "all", "topic": "testin", "timeout_ms": 30_000}
    line = refused(knowledge, "sage_get_knowledge", asked)
    assert line.startswith("NOT_FOUND: ")
    assert "practices/testing" in line


class Failing(KnowledgeBase):
    """A knowledge base with a bug."""

    def get(self, *arguments: Any, **more: Any) -> Any:
        raise OSError(5, "Input/output error", "/srv/secret/path")


def test_a_bug_is_an_internal_error_that_leaks_nothing(
    knowledge: KnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing(knowledge.settings)
    line = refused(failing, "sage_get_knowledge", {"layer": "core"})
    assert line.startswith("INTERNAL: ")
    assert "secret" not in line
    assert "\n" not in line
    assert "/srv/secret/path" in caplog.text


class Stuck(KnowledgeBase):
    """A knowledge base whose file system does not answer until the test is over."""

    queue: threading.Event
    seen: list[Deadline]

    def get(self, *arguments: Any, **more: Any) -> Any:
        self.seen.append(more["deadline"])
        self.queue.wait(PATIENCE_SECONDS)

    def info(self, deadline: Deadline | None = None) -> Any:
        if self.seen:
            self.queue.wait(PATIENCE_SECONDS)
        return super().info(deadline)


@pytest.fixture
def stuck(knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    monkeypatch.setattr("sage.server.async_knowledge.GRACE_SECONDS", 0.0)
    monkeypatch.setattr("sage.server.async_knowledge.QUICK_MS", 20_000)
    monkeypatch.setattr("sage.server.async_knowledge.COUNT_MS", 50)
    stuck = Stuck(knowledge.settings)
    stuck.queue, stuck.seen = threading.Event(), []
    yield stuck
    stuck.queue.set()


def test_a_stuck_call_times_out_and_the_last_state_is_still_told(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def question(client: Any) -> Any:
        await client.call_tool_mcp("sage_info", {})
        monkeypatch.setattr("sage.server.async_knowledge.QUICK_MS", 50)
        arguments = {"layer": "core", "timeout_ms": 50}
        calls = [client.call_tool_mcp("sage_get_knowledge", arguments) for _ in range(20)]
        for result in await asyncio.gather(*calls):
            assert result.content[0].text.startswith("TIMEOUT: no answer within 50 ms")
        return await client.call_tool_mcp("sage_info", {})

    state = ask(stuck, question).structured_content
    assert state["status"] == "unhealthy"
    assert "did not answer" in state["reasons"][0]
    assert state["knowledge_base"]["content_files"] == 4


def test_a_state_never_known_is_told_as_unhealthy(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.server.async_knowledge.QUICK_MS", 50)
    stuck.seen.append(Deadline())
    state = call(stuck, "sage_info", {}).structured_content
    assert state["status"] == "unhealthy"
    assert "content_files" not in state["knowledge_base"]


def test_a_single_stuck_call_leaves_the_others_served(stuck: Stuck) -> None:
    async def question(client: Any) -> int:
        arguments = {"layer": "core", "timeout_ms": 50}
        await client.call_tool_mcp("sage_get_knowledge", arguments)
        return len(await client.list_resources())

    assert ask(stuck, question) == 4


def test_a_cancelled_call_stops_its_work(stuck: Stuck) -> None:
    async def question(client: Any) -> None:
        call = asyncio.create_task(client.call_tool_mcp("sage_get_knowledge", {"layer": "core"}))
        while not stuck.seen:
            await asyncio.sleep(0.01)
        call.cancel()
        while not stuck.seen[0].expired:
            await asyncio.sleep(0.01)

    for mode in CANCELLING:
        ask(stuck, lambda client: asyncio.wait_for(question(client), PATIENCE_SECONDS), mode)
        stuck.seen.clear()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_stuck_file_system_does_not_hold_up_the_greeting(stuck: Stuck, mode: str) -> None:
    def wait(layers: Sequence[str], deadline: Deadline) -> tuple[Listing, ...]:
        stuck.queue.wait(PATIENCE_SECONDS)
        return ()

    stuck.library.refresh = wait

    async def question(client: Any) -> None:
        assert "core, guidelines, frameworks, practices." in client.instructions
        assert len(await client.list_tools()) == 4

    ask(stuck, question, mode)


def test_what_a_page_hides_does_not_reach_the_client(knowledge: KnowledgeBase) -> None:
    page = knowledge.settings.knowledge_dir / "core" / "hostile.md"
    page.write_text("# Ti\u202etle\x1b[31m\n\nz\u200bero \U000e0068\x07 👩‍💻 日本\n", "utf-8")
    (page.parent / "bro\u202eken.md").write_bytes(b"\xff\xfe\xff")

    async def question(client: Any) -> str:
        arguments = {"layer": "core", "topic": "hostile", "timeout_ms": 30_000}
        answer = await client.call_tool_mcp("sage_get_knowledge", arguments)
        found = await client.call_tool_mcp("sage_search", {"query": "hostile 日本"})
        state = await client.call_tool_mcp("sage_info", {})
        (content,) = await client.read_resource("knowledge://core/hostile")
        listed = await client.list_resources()
        seen = [wire_form(one) for one in (answer, found, state, content, *listed)]
        return json.dumps(seen, ensure_ascii=False)

    seen = ask(knowledge, question)
    assert "zero" in seen
    assert "👩‍💻 日本" in seen
    for hidden in ("\u202e", "\\u001b", "\u200b", "\U000e0068", "\\u0007"):
        assert hidden not in seen


def test_the_token_count_is_that_of_the_text_that_leaves(knowledge: KnowledgeBase) -> None:
    page = knowledge.settings.knowledge_dir / "core" / "hostile.md"
    page.write_bytes("# T\r\n\r\nz\u200bero \u202etext\u202c \x1b[31mred\x1b[0m\r\n".encode())
    answer = call(
        knowledge, "sage_get_knowledge", {"layer": "core", "timeout_ms": 30_000}
    ).structured_content
    assert answer["metadata"]["token_count"] == knowledge.counter.count(answer["content"])


def test_documents_are_resources_with_title_description_and_size(
    knowledge: KnowledgeBase,
) -> None:
    listed = {str(one.uri): one for one in ask(knowledge, lambda client: client.list_resources())}
    page = listed["knowledge://practices/testing"]
    assert (page.title, page.description) == ("How we test", "Real files, no mocks.")
    assert page.mime_type == "text/markdown"
    file = knowledge.settings.knowledge_dir / "practices" / "testing.md"
    assert page.size == file.stat().st_size
    assert next(iter(listed)) == "knowledge://core/principles"


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("knowledge://core", "Clarity first."),
        ("knowledge://all", "Wrap them."),
        ("knowledge://practices/testing", "temporary folder"),
        ("knowledge://practices/TESTING.md", "temporary folder"),
        ("knowledge://practices/go/errors", "Wrap them."),
        ("knowledge://practices/How%20we%20test", "temporary folder"),
        ("knowledge://practices/testing#fixtures", "Fixtures build real files."),
    ],
)
def test_an_address_is_read_as_markdown(knowledge: KnowledgeBase, uri: str, found: str) -> None:
    (content,) = ask(knowledge, lambda client: client.read_resource(uri))
    assert content.mime_type == "text/markdown"
    assert found in content.text


def test_a_long_document_is_read_whole_and_a_long_layer_in_part(knowledge: KnowledgeBase) -> None:
    page = knowledge.settings.knowledge_dir / "core" / "long.md"
    page.write_text("# Long\n\n" + "several words of text\n" * 4_000 + "\nThe end.\n")

    async def question(client: Any) -> tuple[str, str]:
        (document,) = await client.read_resource("knowledge://core/long")
        (layer,) = await client.read_resource("knowledge://core")
        return document.text, layer.text

    document, layer = ask(knowledge, question)
    assert document.endswith("The end.")
    assert "sage_get_knowledge(" in layer.splitlines()[-1]


def test_a_list_reads_only_pages_that_are_not_indexed_as_they_are(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ask(knowledge, lambda client: client.list_resources())
    knowledge.search("fixtures")
    new = knowledge.settings.knowledge_dir / "core" / "new.md"
    new.write_text("---\norder: -1\n---\n# New\n\nJust written.\n")
    read: list[str] = []
    real = knowledge.library.load

    def load(source: SourceFile, deadline: Deadline) -> Document | None:
        read.append(source.topic)
        return real(source, deadline)

    monkeypatch.setattr(knowledge.library, "load", load)
    # Not through a server, whose preparation may have indexed the page by then.
    pages, more = list_pages(knowledge, 0, 100, Deadline())
    assert read == ["core/new"]
    assert not more
    assert (pages[0].title, pages[0].summary) == ("New", "Just written.")
    listed = [(one.topic, one.title, one.summary) for one in pages[1:]]
    assert listed == [(one.name, one.title, one.description or "") for one in before]


def test_a_long_list_of_documents_comes_in_pages(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.server.mcp_server.PAGE_SIZE", 3)

    async def question(client: Any) -> tuple[int, int]:
        first = await client.list_resources_mcp()
        assert first.next_cursor
        return len(first.resources), len(await client.list_resources())

    assert ask(knowledge, question) == (3, 4)


@pytest.mark.parametrize("cursor", ["x", "-1", "", "9" * 50, "²"])
def test_a_cursor_of_somebody_else_is_refused(knowledge: KnowledgeBase, cursor: str) -> None:
    with pytest.raises(MCPError, match="INVALID_INPUT: this cursor"):
        ask(knowledge, lambda client: client.list_resources_mcp(cursor=cursor))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    "uri", ["knowledge://core/nowhere", "knowledge://none", "file:///etc/passwd", "knowledge:x"]
)
def test_a_wrong_address_is_invalid_and_says_why(
    knowledge: KnowledgeBase, uri: str, mode: str
) -> None:
    with pytest.raises(MCPError, match=r"^NOT_FOUND: ") as error:
        ask(knowledge, lambda client: client.read_resource(uri), mode)
    assert error.value.code == -32602
    assert error.value.error.data == {"uri": uri}


def test_the_forms_of_addresses_are_listed(knowledge: KnowledgeBase) -> None:
    listed = ask(knowledge, lambda client: client.list_resource_templates())
    assert [one.uri_template for one in listed] == [
        "knowledge://{layer}",
        "knowledge://{layer}/{topic*}",
        "related://{layer}/{topic*}",
    ]


def test_the_prompt_starts_a_task_with_its_context(knowledge: KnowledgeBase) -> None:
    async def question(client: Any) -> str:
        prompt = (await client.list_prompts())[0]
        assert [one.name for one in prompt.arguments] == ["task_type", "context", "language"]
        arguments = {"task_type": "coding", "context": "write a test"}
        (message,) = (await client.get_prompt(prompt.name, arguments)).messages
        text: str = message.content.text
        return text

    text = ask(knowledge, question)
    assert "a coding task: write a test" in text
    assert "Fixtures build real files." in text


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("sage_summarise", {"topic": "fixtures"}, "cite the page behind each statement"),
        ("sage_find_contradictions", {"topic": "fixtures"}, "sage supersede OLD NEW"),
        ("sage_decision_record", {"decision": "fixtures over mocks"}, "--type decision"),
        ("sage_incident_note", {"incident": "a fixture leaked"}, "--type bug_fix"),
        ("sage_remember", {"learned": "fixtures leak", "file": "a.py"}, "--file 'a.py'"),
    ],
)
def test_a_prompt_gathers_the_pages_it_is_about(
    knowledge: KnowledgeBase, name: str, arguments: dict[str, str], words: str
) -> None:
    given = {**arguments, "token_budget": "600"}
    (message,) = ask(knowledge, lambda client: client.get_prompt(name, given)).messages
    text = message.content.text
    assert words in text
    assert "Fixtures build real files." in text
    assert len(text) < 6_000


def test_a_prompt_about_nothing_that_is_known_says_so(knowledge: KnowledgeBase) -> None:
    async def question(client: Any) -> tuple[str, str]:
        asked = {"topic": "quantum chromodynamics"}
        (nothing,) = (await client.get_prompt("sage_summarise", asked)).messages
        (plain,) = (await client.get_prompt("sage_remember", {})).messages
        return nothing.content.text, plain.content.text

    nothing, plain = ask(knowledge, question)
    assert nothing.endswith("Our knowledge base has nothing on this.")
    assert 'sage note "…" --type gotcha' in plain


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("sage_summarise", {}, "INVALID_INPUT: topic is missing"),
        (
            "sage_summarise",
            {"topic": "a", "token_budget": "1e9"},
            "INVALID_INPUT: token_budget is '1e9'; use a whole number from 100 to 100,000",
        ),
        ("sage_task_prompt", {"task_type": "dancing"}, "INVALID_INPUT: task_type must be one of"),
        ("nothing", {}, "NOT_FOUND: there is no such prompt; the prompts are sage_task_prompt, "),
    ],
)
def test_a_wrong_prompt_is_refused(
    knowledge: KnowledgeBase, name: str, arguments: dict[str, str], line: str
) -> None:
    with pytest.raises(MCPError, match=f"^{line}"):
        ask(knowledge, lambda client: client.get_prompt(name, arguments))


TOPICS = ResourceTemplateReference(type="ref/resource", uri="knowledge://{layer}/{topic*}")
PROMPT = PromptReference(type="ref/prompt", name="sage_task_prompt")


@pytest.mark.parametrize(
    ("reference", "name", "typed", "given", "values"),
    [
        (TOPICS, "layer", "pr", {}, ["practices"]),
        (TOPICS, "topic", "test", {"layer": "practices"}, ["testing"]),
        (TOPICS, "topic", "err", {"layer": "practices"}, ["go/errors"]),
        (TOPICS, "topic", "testing", {}, ["practices/testing"]),
        (PROMPT, "task_type", "re", {}, ["reviewing"]),
        (PROMPT, "language", "", {}, ["go", "python"]),
        (PROMPT, "context", "x", {}, []),
    ],
)
def test_what_was_typed_is_completed(
    knowledge: KnowledgeBase,
    reference: Any,
    name: str,
    typed: str,
    given: dict[str, str],
    values: list[str],
) -> None:
    argument = {"name": name, "value": typed}
    completed = ask(knowledge, lambda client: client.complete(reference, argument, given))
    assert completed.values == values


def test_the_server_names_itself_its_version_and_its_layers(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may not count within the moment that a client is kept waiting.
    monkeypatch.setattr("sage.server.async_knowledge.COUNT_MS", 60_000)

    async def question(client: Any) -> None:
        assert (client.server_info.name, client.server_info.version) == ("sage", __version__)
        assert "core (1), guidelines (1), frameworks (0), practices (2)" in client.instructions
        assert len(client.instructions.encode()) < 1_000

    for mode in ("auto", "legacy"):
        ask(knowledge, question, mode)
