"""What the schemas allow is answered as they say; what they do not allow is refused by its code.

On stdio and over HTTP, in both eras of the protocol. SAGE_FUZZ_CALLS sets how many calls each
gets, SAGE_FUZZ_SEED makes others.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests import httpkit
from tests.fuzzing.schema_calls import Call, calls
from tests.processes import ENVELOPE, serving, write_base

CALLS = int(os.environ.get("SAGE_FUZZ_CALLS", "300"))
SEED = int(os.environ.get("SAGE_FUZZ_SEED", "1"))

Ask = Callable[[str, dict[str, Any]], Any]


@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["2025", "2026"])
def test_calls_made_up_from_the_schemas_on_stdio(tmp_path: Path, meta: dict[str, Any]) -> None:
    with serving(write_base(tmp_path)) as server:
        server.meta = meta
        server.request("server/discover", {}) if meta else server.greet()

        def ask(method: str, params: dict[str, Any]) -> Any:
            return server.request(method, params)["result"]

        check_all(ask, CALLS // 2)
        assert server.hang_up() == 0
        assert "Traceback" not in server.errors()


@pytest.mark.parametrize("era", [httpkit.OLD, httpkit.NEW])
def test_calls_made_up_from_the_schemas_over_http(tmp_path: Path, era: str) -> None:
    with httpkit.serving(write_base(tmp_path)) as client:
        check_all(lambda method, params: client.ask(method, params, era=era), CALLS // 2)


def check_all(ask: Ask, count: int) -> None:
    tools = {tool["name"]: tool for tool in ask("tools/list", {})["tools"]}
    outcomes: Counter[str] = Counter()
    for call in calls(list(tools.values()), SEED, count):
        result = ask("tools/call", {"name": call.tool, "arguments": call.arguments})
        outcomes[check(call, result, tools[call.tool])] += 1
    print(dict(outcomes))
    assert sum(outcomes.values()) == count
    assert outcomes["answered"] > count / 4
    assert outcomes["INVALID_INPUT"] > count / 4


def check(call: Call, result: dict[str, Any], tool: dict[str, Any]) -> str:
    """What became of a call: answered, or the code of its error."""
    (block,) = result["content"]
    schema = tool["inputSchema"]
    required = schema.get("required", ())
    # Hosts write null for what a model leaves out.
    given = {k: v for k, v in call.arguments.items() if v is not None or k in required}
    valid = jsonschema.Draft202012Validator(schema).is_valid(given)
    if not result.get("isError"):
        assert valid, f"{call} should be refused"
        assert json.loads(block["text"]) == result["structuredContent"]
        jsonschema.validate(result["structuredContent"], tool["outputSchema"])
        return "answered"
    code, _, reason = block["text"].partition(": ")
    assert code in ("INVALID_INPUT", "NOT_FOUND", "TIMEOUT"), f"{call}: {block['text']}"
    assert valid or code == "INVALID_INPUT", f"{call}: {block['text']}"
    assert "\n" not in reason
    assert "pydantic" not in reason
    return str(code)
