"""FastMCP's home: a server over a ready knowledge base, whatever the transport.

Turns tools, documents and the prompt into MCP, and errors into the lines a client reads. The
work is done elsewhere: `tools` says what there is, `desk` does it, `scrub` decides what leaves.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# FastMCP reads its settings when it is imported. Left alone, a `.env` in whatever directory a host
# starts us in, or a stray variable, turns the server into another one or keeps it from starting.
for _name in [name for name in os.environ if name.startswith("FASTMCP_")]:
    del os.environ[_name]
os.environ["FASTMCP_ENV_FILE"] = os.devnull
os.environ["FASTMCP_LOG_ENABLED"] = "false"
os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"
# It also wants a home folder to exist, which the user of a container may not have.
try:
    Path.home()
except RuntimeError:
    os.environ["HOME"] = os.sep

# ruff: noqa: ARG002, E402 - FastMCP passes call_next by name; imports must follow the lines above
import anyio
import mcp_types
from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.prompts.base import PromptArgument, PromptResult
from fastmcp.resources import ResourceContent, ResourceResult, ResourceTemplate
from fastmcp.server.completions import CompletionHandler, CompletionReference
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool as FastMCPTool
from fastmcp.tools.base import ToolResult
from mcp.server.context import CallNext as RawNext
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from sage import __version__
from sage.addresses import LAYER_TEMPLATE, TOPIC_TEMPLATE, address_of, parse_address
from sage.arguments import input_schema
from sage.bounds import ALL_LAYERS
from sage.desk import Desk, error_line, matching
from sage.documents import Document
from sage.errors import ConfigError, InvalidInput, NotFound
from sage.knowledge import KnowledgeBase
from sage.notifications import Audience
from sage.outputs import answer_schema
from sage.prompts import TASK_PROMPT, instructions, prompt_arguments
from sage.scrub import clean, clean_value
from sage.tools import Tool
from sage.upkeep import upkeep
from sage.wire import Wire

Context = MiddlewareContext[Any]
Next = CallNext[Any, Any]
ListResources = Callable[
    [Any, mcp_types.PaginatedRequestParams], Awaitable[mcp_types.ListResourcesResult]
]

MARKDOWN = "text/markdown"
PAGE_SIZE = 1_000


def create_server(knowledge: KnowledgeBase) -> FastMCP:
    """A server of the four tools, the resources and the prompt, ready for any transport."""
    desk = Desk(knowledge)
    audience = Audience(lambda uri: _check_uri(uri, desk))
    met = asyncio.Event()
    server: FastMCP = FastMCP(
        name="sage",
        instructions=instructions(desk.layers, None),
        version=__version__,
        lifespan=lambda _: upkeep(desk, audience, met),
        middleware=[_Answers(desk, met)],
        mask_error_details=True,
        dereference_schemas=False,
    )
    server.add_completion_handler(_completions(desk))
    lowlevel = server._mcp_server
    lowlevel.notification_options = NotificationOptions(resources_changed=True)
    lowlevel.add_request_handler(
        "resources/list", mcp_types.PaginatedRequestParams, _list_resources(desk)
    )
    lowlevel.middleware.insert(0, _scrub)
    audience.attach(lowlevel)
    return server


async def serve_wire(server: FastMCP, wire: Wire) -> None:
    """Serve the one client at the end of a wire until either is done.

    FastMCP's own stdio transport reads in threads that cannot be cancelled: a signal does not
    end it, and the end of input waits for whatever runs.
    """
    lowlevel = lowlevel_of(server)
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage]()
    token = set_transport("stdio")
    try:
        async with server._lifespan_manager(), anyio.create_task_group() as tasks:
            tasks.start_soon(wire.carry, to_server, to_client)
            await lowlevel.run(incoming, outgoing, lowlevel.create_initialization_options())
    finally:
        reset_transport(token)


class _Answers(Middleware):
    """Answers every request from the desk, before FastMCP looks for components of its own.

    That search consults visibility rules of the session, which we do not have, in a store whose
    import alone would take a seventh of a cold start.
    """

    def __init__(self, desk: Desk, met: asyncio.Event) -> None:
        self._desk = desk
        self._met = met

    async def on_initialize(self, context: Context, call_next: Next) -> Any:
        return await self._greeted(await call_next(context))

    async def on_discover(self, context: Context, call_next: Next) -> Any:
        return await self._greeted(await call_next(context))

    async def on_list_tools(self, context: Context, call_next: Next) -> Sequence[FastMCPTool]:
        return [_shown_tool(tool) for tool in self._desk.tools.values()]

    async def on_call_tool(self, context: Context, call_next: Next) -> ToolResult:
        name = context.message.name
        try:
            answer = await self._desk.call(name, context.message.arguments or {})
        except Exception as error:  # the edge: a bug becomes INTERNAL and a line in the log
            text = error_line(error, name)
            return ToolResult(content=[_text(text)], is_error=True)
        # Hosts show a model the one or the other: both are the same complete object.
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return ToolResult(content=[_text(text)], structured_content=answer)

    async def on_list_resource_templates(
        self, context: Context, call_next: Next
    ) -> Sequence[ResourceTemplate]:
        return [
            _shown_template(LAYER_TEMPLATE, "layer", "A layer, in reading order."),
            _shown_template(TOPIC_TEMPLATE, "topic", "A page, a folder, or a heading of a page."),
        ]

    async def on_read_resource(self, context: Context, call_next: Next) -> ResourceResult:
        uri = str(context.message.uri)
        with _protocol_errors({"uri": uri}):
            address = parse_address(uri, self._desk.layers)
            text = await self._desk.read(address)
            return ResourceResult([ResourceContent(text, mime_type=MARKDOWN)])

    async def on_list_prompts(self, context: Context, call_next: Next) -> Sequence[Prompt]:
        return [_shown_prompt(self._desk.task_types)]

    async def on_get_prompt(self, context: Context, call_next: Next) -> PromptResult:
        with _protocol_errors():
            if context.message.name != TASK_PROMPT:
                raise NotFound(f"there is no such prompt; the prompt is {TASK_PROMPT}")
            return PromptResult(await self._desk.prompt(context.message.arguments or {}))

    async def _greeted(self, result: Any) -> Any:
        self._met.set()
        text = instructions(self._desk.layers, await self._desk.counts())
        return result.model_copy(update={"instructions": text})


def _list_resources(desk: Desk) -> ListResources:
    """Lists documents page by page; a base of a hundred thousand is never loaded for a list."""

    async def listed(
        _: Any, params: mcp_types.PaginatedRequestParams
    ) -> mcp_types.ListResourcesResult:
        with _protocol_errors():
            start = _position(params.cursor)
            documents, more = await desk.page(start, PAGE_SIZE)
            return mcp_types.ListResourcesResult(
                resources=[_shown_page(document) for document in documents],
                next_cursor=str(start + PAGE_SIZE) if more else None,
            )

    return listed


def _completions(desk: Desk) -> CompletionHandler:
    async def complete(
        _: CompletionReference,
        argument: mcp_types.CompletionArgument,
        context: mcp_types.CompletionContext | None,
    ) -> list[str]:
        given = (context and context.arguments) or {}
        with _protocol_errors():
            values = await desk.suggestions(argument.name, given.get("layer", ALL_LAYERS))
        return matching(values, argument.value)

    return complete


async def _scrub(ctx: ServerRequestContext[Any, Any], call_next: RawNext) -> HandlerResult:
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


class _Tool(_Unmarked, FastMCPTool):
    pass


class _Template(_Unmarked, ResourceTemplate):
    pass


class _Prompt(_Unmarked, Prompt):
    pass


def _shown_tool(tool: Tool) -> FastMCPTool:
    return _Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=input_schema(tool.arguments),
        output_schema=answer_schema(tool.answer),
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, open_world_hint=False
        ),
        meta={"anthropic/alwaysLoad": True},
    )


def _shown_page(document: Document) -> mcp_types.Resource:
    return mcp_types.Resource(
        uri=address_of(document.topic).uri,
        name=document.topic,
        title=document.title,
        description=document.summary or None,
        mime_type=MARKDOWN,
        size=len(document.body.encode("utf-8", "replace")),
    )


def _check_uri(uri: str, desk: Desk) -> None:
    with _protocol_errors({"uri": uri}):
        parse_address(uri, desk.layers)


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InvalidInput("this cursor is not one of ours; list again without a cursor")
    return int(cursor)


def _shown_template(uri: str, name: str, description: str) -> ResourceTemplate:
    return _Template(
        uri_template=uri, name=name, description=description, mime_type=MARKDOWN, parameters={}
    )


def _shown_prompt(task_types: tuple[str, ...]) -> Prompt:
    return _Prompt(
        name=TASK_PROMPT,
        title="Start a task with team knowledge",
        description="The team's knowledge for a kind of task, ready to work from.",
        arguments=[
            PromptArgument(name=one.name, description=one.doc, required=one.required)
            for one in prompt_arguments(task_types)
        ],
    )


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)


def lowlevel_of(server: FastMCP) -> Server[Any]:
    """The protocol's own server below, for a transport that FastMCP does not have."""
    return server._mcp_server


def jwt_claims(
    *, issuer: str, audience: str, jwks_uri: str | None, public_key: str | None, algorithm: str
) -> Callable[[str], Awaitable[Mapping[str, object] | None]]:
    """A check of tokens that an issuer signed for an audience: their claims, or None."""
    # Only a server behind single sign-on pays for the import of its cryptography.
    from fastmcp.server.auth.providers.jwt import JWTVerifier

    try:
        verifier = JWTVerifier(
            issuer=issuer,
            audience=audience,
            jwks_uri=jwks_uri,
            public_key=public_key,
            algorithm=algorithm,
        )
    except ValueError as error:
        raise ConfigError(f"single sign-on: {error}") from error

    async def claims(token: str) -> Mapping[str, object] | None:
        access = await verifier.verify_token(token)
        # A token without an end would be good for ever, whatever becomes of its bearer.
        return access.claims if access is not None and "exp" in access.claims else None

    return claims
