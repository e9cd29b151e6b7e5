"""What a body says about itself; the answers are tested over HTTP."""

import pytest

from sage.http.mcp_endpoint import Message, peek


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"id":1,"method":"ping"}', Message(1, "ping")),
        (
            b'{"id":"a","method":"tools/call","params":{"name":"sage_info"}}',
            Message("a", "tools/call", "sage_info"),
        ),
        (b'{"id":1,"method":"prompts/get","params":{"name":"x"}}', Message(1, "prompts/get")),
        (b'{"id":1,"method":"tools/call","params":{"name":7}}', Message(1, "tools/call")),
        (b'{"id":1,"method":"tools/call","params":[]}', Message(1, "tools/call")),
        (b'{"method":7}', Message()),
        (b"[]", Message()),
        (b"", Message()),
        (b"[" * 100_000, Message()),
        (b"\xff", Message()),
        (b"9" * 5_000, Message()),
    ],
)
def test_a_body_is_read_without_trusting_it(body: bytes, message: Message) -> None:
    assert peek(body) == message
