"""A server that is sent anything still answers, and stdout still holds only the protocol.

SAGE_FUZZ_CALLS sets how many messages are sent; SAGE_FUZZ_SEED another course of events.
"""

import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ENVELOPE, Process, serving, write_base

CALLS = int(os.environ.get("SAGE_FUZZ_CALLS", "2000"))
SEED = int(os.environ.get("SAGE_FUZZ_SEED", "1"))
TOOLS = ["sage_get_knowledge", "sage_search", "sage_get_context", "sage_info", "nothing", ""]
NAMES = ["layer", "topic", "query", "limit", "task_type", "timeout_ms", "max_tokens", "task", "x"]
METHODS = [
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "prompts/get",
    "completion/complete",
    "ping",
    "logging/setLevel",
    "server/discover",
    "initialize",
    "notifications/cancelled",
    "notifications/progress",
    "no/such/method",
]
TEXTS = [
    "",
    " ",
    "core",
    "all",
    "coding",
    "testing",
    "../../etc/passwd",
    "/etc/passwd",
    "knowledge://core/principles",
    "knowledge://%00",
    "file:///etc/passwd",
    "\x00",
    "\x1b[31m",
    "\u202e\u200b\U000e0041",
    "日本語 🎉",
    '"unbalanced -x (((( OR AND NOT *',
    "a*" * 300,
    "x" * 50_000,
]


def anything(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, of any size up to some kilobytes."""
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return chance.choice(TEXTS)
    if kind == 3:
        return chance.choice([0, 1, -1, 3, 50, 10**9, -(10**30), 1.5, 1e308, True, False])
    if kind in (4, 5):
        return chance.choice([None, [], {}])
    if kind == 6:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {
        chance.choice([*NAMES, "_meta", "id"]): anything(chance, depth + 1)
        for _ in range(chance.randrange(5))
    }


def a_call(chance: random.Random) -> Any:
    arguments = {chance.choice(NAMES): anything(chance) for _ in range(chance.randrange(5))}
    return {"name": chance.choice(TOOLS), "arguments": arguments}


def a_message(chance: random.Random, number: int, meta: dict[str, Any]) -> bytes:
    """A line: most often a call, else another request, else nonsense."""
    kind = chance.randrange(10)
    if kind < 6:
        message: Any = {"method": "tools/call", "params": a_call(chance)}
    elif kind < 8:
        message = {"method": chance.choice(METHODS), "params": anything(chance)}
    elif kind == 8:
        return json.dumps(anything(chance)).encode()
    else:
        return chance.randbytes(chance.randrange(200)).replace(b"\n", b"")
    if meta and isinstance(message["params"], dict) and chance.randrange(20):
        message["params"]["_meta"] = meta
    return json.dumps({"jsonrpc": "2.0", "id": 1000 + number, **message}).encode()


def send_all(server: Process, lines: list[bytes]) -> None:
    for line in lines:
        server.send_line(line)
    params = {"_meta": server.meta} if server.meta else {}
    server.send({"jsonrpc": "2.0", "id": "last", "method": "tools/list", "params": params})


@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["2025", "2026"])
def test_the_server_survives_whatever_it_is_sent(tmp_path: Path, meta: dict[str, Any]) -> None:
    chance = random.Random(SEED)
    root = write_base(tmp_path)
    lines = [a_message(chance, number, meta) for number in range(CALLS)]
    with serving(root) as server:
        server.meta = meta
        server.request("server/discover", {}) if meta else server.greet()
        sender = threading.Thread(target=send_all, args=(server, lines), daemon=True)
        sender.start()
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1].get("id") != "last":
            seen.append(server.receive())
        sender.join()
        assert server.call("sage_info", {})["structuredContent"]["version"]
        assert server.hang_up() == 0
        errors = server.errors()
    told = json.dumps(seen, ensure_ascii=False)
    assert str(tmp_path) not in told
    assert "Traceback" not in told
    assert "pydantic" not in told
    assert "root:x:" not in told
    assert "Traceback" not in errors


@pytest.mark.parametrize("payload", [b"[" * 100_000, b'{"a":' * 50_000, b"\xff" * 10_000])
def test_deep_and_undecodable_lines_are_refused(tmp_path: Path, payload: bytes) -> None:
    with serving(write_base(tmp_path)) as server:
        server.greet()
        server.send_line(payload)
        assert server.receive()["error"]["code"] == -32700
        assert not server.call("sage_info", {}).get("isError")
