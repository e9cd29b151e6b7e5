"""FastMCP's home: a server over a ready knowledge base, whatever the transport.

Turns tools, documents and prompts into MCP, and errors into the lines a client reads. The
work is done elsewhere: `tools` says what there is, `async_knowledge` does it, `sanitize` decides
what leaves. FastMCP reads its settings when it is imported: see `process.isolate_fastmcp`.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

# ruff: noqa: ARG002 - FastMCP passes call_next by name
import anyio
import mcp_types
from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.prompts.base import PromptArgument, PromptResult
from fastmcp.resources import ResourceContent, ResourceResult, ResourceTemplate
from fastmcp.server.completions import CompletionHandler, CompletionReference
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.skills.models import (
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
    Skill,
    SkillFrontmatter,
    SkillResource,
)
from fastmcp.tools.base import Tool as FastMCPTool
from fastmcp.tools.base import ToolResult
from mcp.server.context import CallNext as RawNext
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from sage import __version__
from sage.errors import InvalidInput, NotFound
from sage.knowledge import KnowledgeBase
from sage.sanitize import clean, clean_value
from sage.server.async_knowledge import AsyncKnowledge, error_line, matching
from sage.server.background import background_tasks
from sage.server.process import is_isolated
from sage.server.prompts import Prompt as PromptWords
from sage.server.prompts import instructions
from sage.server.resource_list import ListedPage
from sage.server.resource_uris import (
    LAYER_TEMPLATE,
    RELATED_TEMPLATE,
    SKILL,
    TOPIC_TEMPLATE,
    parse_uri,
    uri_of,
)
from sage.server.schemas import answer_schema, input_schema
from sage.server.stdio_transport import StdioTransport
from sage.server.subscriptions import Subscribers
from sage.server.tools import Tool
from sage.values import ALL_LAYERS

if TYPE_CHECKING:
    from sage.server.skills import PageSkill

Context = MiddlewareContext[Any]
Next = CallNext[Any, Any]
ListResources = Callable[
    [Any, mcp_types.PaginatedRequestParams], Awaitable[mcp_types.ListResourcesResult]
]

MARKDOWN = "text/markdown"
PAGE_SIZE = 1_000


def create_server(
    knowledge: KnowledgeBase, async_knowledge: AsyncKnowledge | None = None
) -> FastMCP:
    """A server of the tools, the resources and the prompts, ready for any transport.

    Args:
        async_knowledge: the same knowledge base, where others ask it beside the server.
    """
    if not is_isolated():
        raise RuntimeError(
            "call sage.server.process.isolate_fastmcp before this module is imported"
        )
    async_knowledge = async_knowledge or AsyncKnowledge(knowledge)
    subscribers = Subscribers(lambda uri: _check_uri(uri, async_knowledge))
    greeted = asyncio.Event()
    server: FastMCP = FastMCP(
        name="sage",
        instructions=instructions(async_knowledge.layers, None),
        version=__version__,
        lifespan=lambda _: background_tasks(async_knowledge, subscribers, greeted),
        middleware=[_KnowledgeMiddleware(async_knowledge, greeted)],
        mask_error_details=True,
        dereference_schemas=False,
    )
    server.add_completion_handler(_completions(async_knowledge))
    server.add_extension(_Skills(async_knowledge))
    lowlevel = server._mcp_server
    lowlevel.notification_options = NotificationOptions(resources_changed=True)
    lowlevel.add_request_handler(
        "resources/list", mcp_types.PaginatedRequestParams, _list_resources(async_knowledge)
    )
    lowlevel.middleware.insert(0, _sanitize)
    subscribers.attach(lowlevel)
    return server


async def serve_transport(server: FastMCP, transport: StdioTransport) -> None:
    """Serve the one client of a transport until either is done.

    FastMCP's own stdio transport reads in threads that cannot be cancelled: a signal does not
    end it, and the end of input waits for whatever runs.
    """
    lowlevel = lowlevel_of(server)
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage]()
    token = set_transport("stdio")
    try:
        async with server._lifespan_manager(), anyio.create_task_group() as tasks:
            tasks.start_soon(transport.carry, to_server, to_client)
            await lowlevel.run(incoming, outgoing, lowlevel.create_initialization_options())
    finally:
        reset_transport(token)


class _KnowledgeMiddleware(Middleware):
    """Answers every request itself, before FastMCP looks for components of its own.

    That search consults visibility rules of the session, which we do not have, in a store whose
    import alone would take a seventh of a cold start.
    """

    def __init__(self, async_knowledge: AsyncKnowledge, greeted: asyncio.Event) -> None:
        self._knowledge = async_knowledge
        self._has_greeted = greeted

    async def on_initialize(self, context: Context, call_next: Next) -> Any:
        return await self._greeted(await call_next(context))

    async def on_discover(self, context: Context, call_next: Next) -> Any:
        return await self._greeted(await call_next(context))

    async def on_list_tools(self, context: Context, call_next: Next) -> Sequence[FastMCPTool]:
        return [_shown_tool(tool) for tool in self._knowledge.tools.values()]

    async def on_call_tool(self, context: Context, call_next: Next) -> ToolResult:
        name = context.message.name
        try:
            given = context.message.arguments or {}
            answer, text = await self._knowledge.call_and(name, given, lambda *both: both)
        except Exception as error:  # the edge: a bug becomes INTERNAL and a line in the log
            text = error_line(error, name)
            return ToolResult(content=[_text(text)], is_error=True)
        # Hosts show a model the one or the other: both are the same complete object.
        return ToolResult(content=[_text(text)], structured_content=answer)

    async def on_list_resource_templates(
        self, context: Context, call_next: Next
    ) -> Sequence[ResourceTemplate]:
        return [
            _shown_template(LAYER_TEMPLATE, "layer", "A layer, in reading order."),
            _shown_template(TOPIC_TEMPLATE, "topic", "A page, a folder, or a heading of a page."),
            _shown_template(RELATED_TEMPLATE, "related", "Pages that belong to a page, and why."),
        ]

    async def on_read_resource(self, context: Context, call_next: Next) -> ResourceResult:
        uri = str(context.message.uri)
        with _protocol_errors({"uri": uri}):
            if uri.startswith(SKILL):
                text = (await self._knowledge.skill(uri)).text
                return ResourceResult([ResourceContent(text, mime_type=MARKDOWN)])
            text = await self._knowledge.read(parse_uri(uri, self._knowledge.layers))
            return ResourceResult([ResourceContent(text, mime_type=MARKDOWN)])

    async def on_list_prompts(self, context: Context, call_next: Next) -> Sequence[Prompt]:
        return [_shown_prompt(prompt) for prompt in self._knowledge.prompts.values()]

    async def on_get_prompt(self, context: Context, call_next: Next) -> PromptResult:
        with _protocol_errors():
            asked = context.message
            return PromptResult(await self._knowledge.prompt(asked.name, asked.arguments or {}))

    async def _greeted(self, result: Any) -> Any:
        self._has_greeted.set()
        text = instructions(self._knowledge.layers, await self._knowledge.counts())
        return result.model_copy(update={"instructions": text})


class _Skills(ServerExtension):
    """Skills that a host lists and fetches (SEP-2640), made from the pages.

    FastMCP's own extension serves folders of files from the disk; its place for other sources is
    private.
    """

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, async_knowledge: AsyncKnowledge) -> None:
        self._knowledge = async_knowledge

    def methods(self) -> Sequence[MethodBinding]:
        # The versions in which a host can say that it knows skills.
        versions = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("skills/list", ListSkillsParams, self._list, versions),
            MethodBinding("skills/get", GetSkillParams, self._get, versions),
        )

    async def _list(self, _: Any, params: ListSkillsParams) -> ListSkillsResult:
        with _protocol_errors():
            start = _position(params.cursor)
            skills, more = await self._knowledge.skills(start, PAGE_SIZE)
            return ListSkillsResult(
                skills=[_shown_skill(skill) for skill in skills],
                next_cursor=str(start + PAGE_SIZE) if more else None,
            )

    async def _get(self, _: Any, params: GetSkillParams) -> GetSkillResult:
        with _protocol_errors({"uri": params.uri}):
            return GetSkillResult(skill=_shown_skill(await self._knowledge.skill(params.uri)))


def _shown_skill(skill: "PageSkill") -> Skill:
    text = SkillResource(uri=skill.uri, digest=skill.digest, size=skill.size)
    return Skill(uri=skill.uri, frontmatter=SkillFrontmatter(skill.front_matter), resources=[text])


def _list_resources(async_knowledge: AsyncKnowledge) -> ListResources:
    """Lists documents page by page; a base of a hundred thousand is never loaded for a list."""

    async def listed(
        _: Any, params: mcp_types.PaginatedRequestParams
    ) -> mcp_types.ListResourcesResult:
        with _protocol_errors():
            start = _position(params.cursor)
            pages, more = await async_knowledge.page(start, PAGE_SIZE)
            return mcp_types.ListResourcesResult(
                resources=[_shown_page(page) for page in pages],
                next_cursor=str(start + PAGE_SIZE) if more else None,
            )

    return listed


def _completions(async_knowledge: AsyncKnowledge) -> CompletionHandler:
    async def complete(
        _: CompletionReference,
        argument: mcp_types.CompletionArgument,
        context: mcp_types.CompletionContext | None,
    ) -> list[str]:
        given = (context and context.arguments) or {}
        with _protocol_errors():
            layer = given.get("layer", ALL_LAYERS)
            values = await async_knowledge.suggestions(argument.name, layer)
        return matching(values, argument.value)

    return complete


async def _sanitize(ctx: ServerRequestContext[Any, Any], call_next: RawNext) -> HandlerResult:
    """The outermost layer: no string leaves that breaks or deceives a client."""
    try:
        result = await call_next(ctx)
    except MCPError as error:
        raise MCPError(error.code, clean(error.message), clean_value(error.data)) from error
    if isinstance(result, dict) and "structuredContent" not in result:
        cleaned: dict[str, Any] = clean_value(result)
        return cleaned
    # The answer of a tool was cleaned before its text was written; a greeting is ours.
    return result


@contextlib.contextmanager
def _protocol_errors(data: Mapping[str, str] | None = None) -> Iterator[None]:
    """Errors where the protocol has no place for a refusal in the answer.

    Args:
        data: what was asked for, which the protocol wants back with a refusal.
    """
    try:
        yield
    except (NotFound, InvalidInput) as error:
        raise MCPError(mcp_types.INVALID_PARAMS, error_line(error), data) from error
    except Exception as error:  # the edge: what FastMCP words itself would tell paths
        raise MCPError(mcp_types.INTERNAL_ERROR, error_line(error)) from error


class _Unmarked:
    """A component without the metadata that FastMCP adds of its own accord."""

    meta: dict[str, Any] | None

    def get_meta(self) -> Any:
        return self.meta


class _UnmarkedTool(_Unmarked, FastMCPTool):
    pass


class _UnmarkedTemplate(_Unmarked, ResourceTemplate):
    pass


class _UnmarkedPrompt(_Unmarked, Prompt):
    pass


def _shown_tool(tool: Tool) -> FastMCPTool:
    return _UnmarkedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=input_schema(tool.arguments),
        output_schema=answer_schema(tool.answer, tool.described),
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, open_world_hint=False
        ),
        meta={"anthropic/alwaysLoad": True},
    )


def _shown_page(page: ListedPage) -> mcp_types.Resource:
    return mcp_types.Resource(
        uri=uri_of(page.topic).uri,
        name=page.topic,
        title=page.title,
        description=page.summary or None,
        mime_type=MARKDOWN,
        size=page.size,
    )


def _check_uri(uri: str, async_knowledge: AsyncKnowledge) -> None:
    with _protocol_errors({"uri": uri}):
        if parse_uri(uri, async_knowledge.layers).is_related:
            raise InvalidInput(
                "there are no notifications for related pages; subscribe to the page"
            )


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InvalidInput("this cursor is not one of ours; list again without a cursor")
    return int(cursor)


def _shown_template(uri: str, name: str, description: str) -> ResourceTemplate:
    return _UnmarkedTemplate(
        uri_template=uri, name=name, description=description, mime_type=MARKDOWN, parameters={}
    )


def _shown_prompt(prompt: PromptWords) -> Prompt:
    return _UnmarkedPrompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            PromptArgument(name=one.name, description=one.doc, required=one.required)
            for one in prompt.arguments
        ],
    )


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)


def lowlevel_of(server: FastMCP) -> Server[Any]:
    """The protocol's own server below, for a transport that FastMCP does not have."""
    return server._mcp_server
