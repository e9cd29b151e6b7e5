"""A team's server that is sent anything still answers; the messages are those that stdio gets.

SAGE_FUZZ_CALLS sets how many messages are sent; SAGE_FUZZ_SEED another course of events.
"""

import json
import os
import random
import re
from pathlib import Path

import pytest

from tests.httpkit import NEW, OLD, Client, Reply, serving, write_base
from tests.processes import ENVELOPE
from tests.server.test_fuzz_stdio import a_message

CALLS = int(os.environ.get("SAGE_FUZZ_CALLS", "600"))
SEED = int(os.environ.get("SAGE_FUZZ_SEED", "1"))
STATUSES = {200, 202, 400, 404, 413}
_METHOD = re.compile(rb'"method": "([a-zA-Z/]+)", "params": (?:\{"name": "(\w*)")?')


def send(client: Client, body: bytes, era: str) -> Reply:
    headers = ["Content-Type: application/json", "Accept: application/json"]
    headers.append(f"Mcp-Protocol-Version: {era}")
    if era == NEW and (found := _METHOD.search(body)):
        headers += [f"Mcp-Method: {found[1].decode()}", f"Mcp-Name: {(found[2] or b'').decode()}"]
    return client.send("POST", "/mcp", *headers, body=body)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_the_server_survives_whatever_it_is_sent(tmp_path: Path, era: str) -> None:
    chance = random.Random(SEED)
    meta = ENVELOPE if era == NEW else {}
    with serving(write_base(tmp_path / "repo")) as client:
        for number in range(CALLS):
            body = a_message(chance, number, meta)
            reply = send(client, body, era)
            assert reply.status in STATUSES, body[:500]
            assert not reply.body or json.loads(reply.body)["jsonrpc"] == "2.0"
            for secret in (str(tmp_path).encode(), b"Traceback", b"pydantic", b"root:x:"):
                assert secret not in reply.body, body[:500]
        assert client.call("sage_info", {})["structuredContent"]["status"] == "healthy"
