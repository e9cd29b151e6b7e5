"""MCP over two descriptors."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCResponse

from sage.server import stdio_transport as transport
from sage.server.stdio_transport import StdioTransport, read_lines, refusal_of
from tests.processes import PATIENCE_SECONDS


@dataclass
class Ends:
    """The client's and the server's end of a transport."""

    transport: StdioTransport
    to_wire: int
    from_wire: int
    received: MemoryObjectReceiveStream[SessionMessage | Exception]
    answers: MemoryObjectSendStream[SessionMessage]
    ended: threading.Event

    def say(self, *lines: bytes) -> None:
        """Send lines as a client."""
        os.write(self.to_wire, b"".join(line + b"\n" for line in lines))

    def hang_up(self) -> None:
        """Close the client's sending end."""
        os.close(self.to_wire)

    async def hear(self) -> Any:
        """The next line that reaches the client."""
        return json.loads(await asyncio.to_thread(next, read_lines(self.from_wire)))

    async def answer(self, request: int, result: dict[str, Any]) -> None:
        """Answer as the server."""
        message = JSONRPCResponse(jsonrpc="2.0", id=request, result=result)
        await self.answers.send(SessionMessage(message))


@asynccontextmanager
async def connected() -> AsyncIterator[Ends]:
    client_out, wire_in = os.pipe()[::-1]
    client_in, wire_out = os.pipe()
    to_server, received = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    answers, to_client = anyio.create_memory_object_stream[SessionMessage](100)
    ended = threading.Event()
    ends = Ends(
        StdioTransport(wire_in, wire_out, ended.set),
        client_out,
        client_in,
        received,
        answers,
        ended,
    )
    async with received, anyio.create_task_group() as tasks:
        tasks.start_soon(ends.transport.carry, to_server, to_client)
        yield ends
        await answers.aclose()
    # The reader is a thread of its own: a descriptor must not be given away under it.
    assert ended.wait(PATIENCE_SECONDS)
    for descriptor in (client_in, wire_out, wire_in):
        os.close(descriptor)


def over(scenario: Callable[[Ends], Awaitable[None]]) -> None:
    async def run() -> None:
        async with connected() as ends:
            await scenario(ends)

    asyncio.run(asyncio.wait_for(run(), PATIENCE_SECONDS))


def request(number: int, method: str = "ping") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode()


def test_a_request_goes_in_and_its_answer_comes_out() -> None:
    async def scenario(ends: Ends) -> None:
        ends.say(request(7))
        got = await ends.received.receive()
        assert isinstance(got, SessionMessage)
        assert got.message.model_dump()["method"] == "ping"
        await ends.answer(7, {"text": "größe 🎉"})
        assert await ends.hear() == {"jsonrpc": "2.0", "id": 7, "result": {"text": "größe 🎉"}}
        ends.hang_up()

    over(scenario)


@pytest.mark.parametrize(
    ("line", "code", "answered"),
    [
        (b"{nonsense", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'"text"', -32600, None),
        (b'{"id": 5, "method": 4}', -32600, 5),
        (b'{"id": "five", "jsonrpc": "1.0"}', -32600, "five"),
        (b'{"id": true}', -32600, None),
        (b'{"id": {"a": 1}}', -32600, None),
    ],
)
def test_what_is_no_message_is_answered_under_its_id_if_it_has_one(
    line: bytes, code: int, answered: object
) -> None:
    refusal = refusal_of(line)
    assert (refusal.error.code, refusal.id) == (code, answered)


def test_nonsense_is_refused_and_the_next_request_served() -> None:
    async def scenario(ends: Ends) -> None:
        ends.say(b"nonsense", b"", b"   ", request(1))
        assert (await ends.hear())["error"]["code"] == -32700
        assert isinstance(await ends.received.receive(), SessionMessage)
        ends.hang_up()

    over(scenario)


def test_after_the_client_hangs_up_a_running_call_is_still_answered() -> None:
    async def scenario(ends: Ends) -> None:
        ends.say(request(1))
        ends.hang_up()
        await ends.received.receive()
        with anyio.move_on_after(0.05) as waiting:
            await ends.received.receive()
        assert waiting.cancelled_caught
        await ends.answer(1, {"late": True})
        assert (await ends.hear())["result"] == {"late": True}
        with pytest.raises(anyio.EndOfStream):
            await ends.received.receive()

    over(scenario)


def test_a_call_that_never_ends_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "DRAIN_SECONDS", 0.01)

    async def scenario(ends: Ends) -> None:
        ends.say(request(1))
        ends.hang_up()
        await ends.received.receive()
        with pytest.raises(anyio.EndOfStream):
            await ends.received.receive()

    over(scenario)


def test_a_subscription_and_a_cancelled_call_are_not_waited_for() -> None:
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 1},
    }

    async def scenario(ends: Ends) -> None:
        ends.say(request(1), request(2, "subscriptions/listen"), json.dumps(cancel).encode())
        ends.hang_up()
        for _ in range(3):
            await ends.received.receive()
        with pytest.raises(anyio.EndOfStream), anyio.fail_after(transport.DRAIN_SECONDS / 2):
            await ends.received.receive()

    over(scenario)


def test_no_more_requests_are_taken_in_than_can_be_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_PENDING", 2)

    async def scenario(ends: Ends) -> None:
        ends.say(*(request(number) for number in range(1, 4)))
        await ends.received.receive()
        await ends.received.receive()
        with anyio.move_on_after(0.05) as waiting:
            await ends.received.receive()
        assert waiting.cancelled_caught
        await ends.answer(1, {})
        await ends.hear()
        third = await ends.received.receive()
        assert isinstance(third, SessionMessage)
        assert third.message.model_dump()["id"] == 3
        ends.transport.finish()
        ends.hang_up()

    monkeypatch.setattr(transport, "DRAIN_SECONDS", 0.01)
    over(scenario)


def test_more_lines_pass_than_may_wait_unread() -> None:
    async def scenario(ends: Ends) -> None:
        for number in range(3 * transport.MAX_UNREAD_LINES):
            ends.say(request(number))
            await ends.received.receive()
            await ends.answer(number, {})
            assert (await ends.hear())["id"] == number
        ends.hang_up()

    over(scenario)


def test_a_client_that_no_longer_reads_ends_the_wire() -> None:
    async def scenario(ends: Ends) -> None:
        os.dup2(ends.to_wire, ends.from_wire)  # the reading end is gone
        notice = JSONRPCNotification(jsonrpc="2.0", method="notifications/x")
        await ends.answers.send(SessionMessage(notice))
        with pytest.raises(anyio.EndOfStream):
            await ends.received.receive()
        await ends.answers.send(SessionMessage(notice))
        os.dup2(os.open(os.devnull, os.O_RDONLY), ends.from_wire)
        ends.hang_up()

    over(scenario)


def test_an_answer_that_cannot_be_written_becomes_an_error() -> None:
    async def scenario(ends: Ends) -> None:
        await ends.answer(3, {"text": "\ud800"})
        assert (await ends.hear())["error"]["message"].startswith("INTERNAL")
        ends.hang_up()

    over(scenario)


def test_lines_are_cut_from_blocks_however_they_arrive(tmp_path: Any) -> None:
    stream = tmp_path / "lines"
    long = b"x" * 200_000
    stream.write_bytes(b"one\n\n" + long + b"\ntwo\nlast without an end")
    descriptor = os.open(stream, os.O_RDONLY)
    assert list(read_lines(descriptor)) == [b"one", b"", long, b"two", b"last without an end"]
    os.close(descriptor)


def test_a_line_beyond_the_limit_is_dropped_and_named(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_LINE_BYTES", 100_000)
    stream = tmp_path / "lines"
    stream.write_bytes(b"a\n" + b"x" * 300_000 + b"\nb\n" + b"y" * 300_000)
    descriptor = os.open(stream, os.O_RDONLY)
    lines = list(read_lines(descriptor))
    os.close(descriptor)
    assert lines == [b"a", b'"a message of more than 4 MB"', b"b"]
    assert refusal_of(lines[1]).error.code == -32600
