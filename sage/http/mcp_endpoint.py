"""MCP over HTTP: one message in, one answer out, nothing kept between two requests.

For versions before 2026-07-28 the protocol's package opens a connection with tasks and streams of
its own for every request, which costs as much again as the call. Here both eras take the short
way that it keeps for the new one. Who may ask, and how much, is decided before.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, PARSE_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

JSON = "application/json"
LISTEN = "subscriptions/listen"


CallTool = Callable[[str, Mapping[str, Any]], Awaitable[bytes]]
"""Answers a call of a tool with the result as JSON."""


@contextlib.asynccontextmanager
async def mcp_app(
    server: "Server[Any]", call_tool: CallTool | None = None
) -> AsyncIterator[ASGIApp]:
    """The application that answers the messages of any client, while the server runs.

    Args:
        call_tool: answers the calls of tools in versions before 2026-07-28, in place of the server.
    """
    # No argument of ours is mirrored in a header, so no call need list the tools to learn which.
    server.get_tool_input_schema = lambda _: None
    manager = _SessionManager(
        server,
        json_response=True,
        stateless=True,
        # Hosts, origins and sizes were checked before, for every path alike.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=2**31,
    )
    manager.call_tool = call_tool
    async with manager.run():
        yield manager.handle_request


@dataclass(frozen=True, slots=True)
class Message:
    """What a body says about itself, before it is looked at closely."""

    id: object = None
    method: str = ""
    tool: str = ""


def peek(body: bytes) -> Message:
    """The method and tool that a body names; nothing when it is no message."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return Message()
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return Message()
    params = value.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    is_call = value["method"] == "tools/call" and isinstance(name, str)
    return Message(value.get("id"), value["method"], str(name) if is_call else "")


class _SessionManager(StreamableHTTPSessionManager):
    """The protocol's own way for the new era, and a short one for those before."""

    call_tool: CallTool | None = None

    async def _handle_stateless_request(
        self, protocol_version_hint: str | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        request = Request(scope, receive)
        response = _misfit(request) or await self._answer(request, protocol_version_hint)
        await response(scope, receive, send)

    async def _answer(self, request: Request, version: str | None) -> Response:
        try:
            message = json.loads(await request.body())
        except (ValueError, RecursionError):
            return _error(PARSE_ERROR, "Parse error: the body must be one JSON value")
        if not _is_message(message):
            return _error(INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message")
        if "method" not in message or "id" not in message:
            # A notification or a response: without a session there is nothing it could belong to.
            return Response(status_code=202)
        version = version or _proposed(message)
        called = _plain_call(message) if version in HANDSHAKE_PROTOCOL_VERSIONS else None
        if called and self.call_tool:
            result = await self.call_tool(*called)
            head = _encoded({"jsonrpc": "2.0", "id": message["id"]})[:-1]
            return Response(head + b',"result":' + result + b"}", media_type=JSON)
        answer = await self._result(message, version, request)
        return Response(_encoded(answer), media_type=JSON)

    async def _result(
        self, message: Mapping[str, Any], version: str, request: Request
    ) -> dict[str, Any]:
        channel = _OneWay(
            TransportContext(
                kind="streamable-http", can_send_request=False, headers=request.headers
            ),
            message["id"],
            ServerMessageMetadata(request_context=request),
        )
        outcome: dict[str, Any]
        try:
            result = await serve_one(
                self.app,
                channel,
                message["method"],
                message.get("params"),
                connection=Connection.from_envelope(version, None, None),
                lifespan_state=self._lifespan_state,
            )
            outcome = {"result": result}
        except Exception as error:  # whatever it is, a request is answered with an error
            data = modern_error_data(error)
            outcome = {"error": data.model_dump(mode="json", by_alias=True, exclude_none=True)}
        return {"jsonrpc": "2.0", "id": message["id"], **outcome}


@dataclass
class _OneWay:
    """The side of a client that hears nothing but the answer."""

    transport: TransportContext
    request_id: Any
    message_metadata: MessageMetadata
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = field(default=False, init=False)

    async def send_raw_request(self, method: str, *_: Any, **__: Any) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, *_: Any, **__: Any) -> None:
        return None

    async def progress(self, *_: Any, **__: Any) -> None:
        return None


def _plain_call(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The tool and arguments of a call in which there is nothing else to be looked at."""
    params = message.get("params")
    if message["method"] != "tools/call" or not isinstance(params, dict):
        return None
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return (name, arguments) if params.keys() <= {"name", "arguments", "_meta"} else None


def tool_result(text: str, structured: str = "") -> bytes:
    """The result of a call as the protocol writes it, around an object that is JSON already."""
    content = json.dumps(text, ensure_ascii=False)
    if not structured:
        return f'{{"content":[{{"text":{content},"type":"text"}}],"isError":true}}'.encode()
    return (
        f'{{"content":[{{"text":{content},"type":"text"}}],"isError":false,'
        f'"structuredContent":{structured}}}'
    ).encode()


def _misfit(request: Request) -> Response | None:
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != JSON:
        return _error(INVALID_REQUEST, f"Content-Type must be {JSON}", 415)
    accepted = [part.split(";")[0].strip().lower() for part in _accept(request).split(",")]
    if not {JSON, "application/*", "*/*"}.intersection(accepted):
        return _error(INVALID_REQUEST, f"Accept must include {JSON}", 406)
    return None


def _accept(request: Request) -> str:
    return ",".join(request.headers.getlist("accept"))


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    if "method" not in value:
        return "result" in value or "error" in value
    request_id = value.get("id", 0)
    return (
        isinstance(value["method"], str)
        and isinstance(value.get("params", {}), dict)
        and isinstance(request_id, str | int)
        and not isinstance(request_id, bool)
    )


def _proposed(message: Mapping[str, Any]) -> str:
    """The version of a request without the header: the one that a greeting proposes, if any."""
    proposed = (message.get("params") or {}).get("protocolVersion")
    known = message["method"] == "initialize" and proposed in HANDSHAKE_PROTOCOL_VERSIONS
    return str(proposed) if known else DEFAULT_NEGOTIATED_VERSION


def _encoded(answer: Mapping[str, Any]) -> bytes:
    """The bytes that the same answer has on stdio.

    The id is the caller's: half a character in it goes back as the escape that it came as.
    """
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def _error(code: int, text: str, status: int = 400) -> Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
    return Response(json.dumps(error), status_code=status, media_type=JSON)
