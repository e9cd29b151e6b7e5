"""Watching calls go by: what was asked, how it ended and how long it took.

It changes no answer. Who watches decides what to do with it: count it, time it, note it.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError

OK = "ok"
RESOURCE = "resource"
UNKNOWN = "unknown"

_INTERNAL = "INTERNAL"
_CODE = re.compile(r"(INVALID_INPUT|NOT_FOUND|TIMEOUT|INTERNAL): ")


class Observation(NamedTuple):
    """One call of a tool, or one reading of a resource, that is over."""

    tool: str
    outcome: str
    """`ok`, the code of an error, or `cancelled`."""
    seconds: float
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    """What the tool answered, or the content of the resource."""


Observer = Callable[[Observation], None]


def observed_by(observer: Observer, tools: frozenset[str]) -> ServerMiddleware[Any]:
    """What a low-level server is given so that an observer sees its calls.

    Args:
        tools: the names that exist; a call of any other is observed as unknown.
    """

    async def observe(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in ("tools/call", "resources/read"):
            return await call_next(ctx)
        started, outcome, answer = time.perf_counter(), OK, None
        try:
            result = await call_next(ctx)
            outcome, answer = _read(result)
            return result
        except BaseException as error:
            outcome = _code_of(error)
            raise
        finally:
            seconds = time.perf_counter() - started
            name, arguments = _asked(ctx, tools)
            observer(Observation(name, outcome, seconds, arguments, answer))

    return observe


def _asked(
    ctx: ServerRequestContext[Any, Any], tools: frozenset[str]
) -> tuple[str, Mapping[str, Any]]:
    params = ctx.params or {}
    if ctx.method == "resources/read":
        return RESOURCE, {}
    name, arguments = params.get("name"), params.get("arguments")
    known = isinstance(name, str) and name in tools
    return str(name) if known else UNKNOWN, arguments if isinstance(arguments, dict) else {}


def _read(result: HandlerResult) -> tuple[str, Mapping[str, Any] | None]:
    """The outcome and the answer in what goes on the wire."""
    if not isinstance(result, dict):
        return _INTERNAL, None
    if result.get("isError"):
        return _code_in(result["content"][0].get("text", "")), None
    if "contents" in result:
        return OK, {"content": "\n\n".join(part.get("text", "") for part in result["contents"])}
    return OK, result.get("structuredContent")


def _code_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return _code_in(error.error.message) if isinstance(error, MCPError) else _INTERNAL


def _code_in(text: str) -> str:
    match = _CODE.match(text)
    return match[1] if match else _INTERNAL
