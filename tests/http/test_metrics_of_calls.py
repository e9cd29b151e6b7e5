"""Watching calls go by."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from sage.errors import CODES, SageError
from sage.http.metrics import Observation, observed_by


def observed(method: str, params: Any, outcome: Any) -> Observation | None:
    """What an observer sees of a request that ends like this."""
    seen: list[Observation] = []

    async def handle(_: Any) -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    ctx: Any = SimpleNamespace(method=method, params=params)
    observe = observed_by(seen.append, frozenset({"sage_search"}))
    if isinstance(outcome, BaseException):
        with pytest.raises(type(outcome)):
            asyncio.run(_run(observe, ctx, handle))
    else:
        assert asyncio.run(_run(observe, ctx, handle)) is outcome
    return seen[0] if seen else None


async def _run(observe: Any, ctx: Any, handle: Any) -> Any:
    return await observe(ctx, handle)


def error(text: str) -> dict[str, Any]:
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def test_an_answer_is_seen_with_its_question() -> None:
    params = {"name": "sage_search", "arguments": {"query": "x"}}
    seen = observed("tools/call", params, {"structuredContent": {"total": 1}, "content": []})
    assert seen is not None
    assert seen._replace(seconds=0) == ("sage_search", "ok", 0, {"query": "x"}, {"total": 1})
    assert seen.seconds > 0


def test_a_resource_is_seen_with_its_text() -> None:
    seen = observed("resources/read", {"uri": "x"}, {"contents": [{"text": "a"}, {"text": "b"}]})
    assert seen is not None
    assert (seen.tool, seen.outcome, seen.answer) == ("resource", "ok", {"content": "a\n\nb"})


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (error("NOT_FOUND: nothing"), "NOT_FOUND"),
        (error("TIMEOUT: late"), "TIMEOUT"),
        (error("UNAVAILABLE: the cluster is gone"), "UNAVAILABLE"),
        (error("something else"), "INTERNAL"),
        (None, "INTERNAL"),
        (MCPError(-32602, "INVALID_INPUT: no"), "INVALID_INPUT"),
        (MCPError(-32603, "broken"), "INTERNAL"),
        (ValueError("bug"), "INTERNAL"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)
def test_an_end_is_named_by_its_code(outcome: Any, code: str) -> None:
    seen = observed("tools/call", {"name": "sage_search"}, outcome)
    assert seen is not None
    assert (seen.outcome, seen.answer) == (code, None)


def test_every_code_of_an_error_is_an_end() -> None:
    errors: list[type[SageError]] = [SageError, *SageError.__subclasses__()]
    for error in errors:
        assert error.code in CODES


@pytest.mark.parametrize("params", [None, {}, {"name": "made up"}, {"name": ["x"]}])
def test_a_tool_that_does_not_exist_has_one_name(params: Any) -> None:
    seen = observed("tools/call", params, error("NOT_FOUND: x"))
    assert seen is not None
    assert (seen.tool, seen.arguments) == ("unknown", {})


def test_other_requests_are_not_looked_at() -> None:
    assert observed("tools/list", {}, {"tools": []}) is None
