"""Who is answered what: every row of the guide's tables, on every path, with every method."""

import re
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import pytest

from sage.access.token_file import TokenFile
from tests.httpkit import Client, Reply, serving, write_base

GUIDE = Path(__file__).parents[2] / "docs" / "deployment.md"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
KIND = ("Content-Type: application/json", "Accept: application/json")
PROBES = ("/healthz", "/readyz")
_ERROR = re.compile(r'error="(\w+)"')

Row = Mapping[str, str]


def table(heading: str) -> list[Row]:
    """The rows of the first table below a heading of the guide."""
    below = GUIDE.read_text("utf-8").partition(f"\n#### {heading}\n")[2]
    lines = [line for line in below.partition("\n#")[0].splitlines() if line.startswith("|")]
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rows]


def values(cell: str, **names: str) -> list[list[str]]:
    """What a cell says is sent: alternatives, each of several headers, one or none."""
    alternatives = cell.split(", ")
    return [[_filled(one, names) for one in _sent(alternative)] for alternative in alternatives]


def _sent(alternative: str) -> list[str]:
    if alternative == "none":
        return []
    if alternative == "empty":
        return [""]
    return ["".join(re.findall("`([^`]*)`", part)) for part in alternative.split(" + ")]


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text


NAMES, METHODS, TOKENS = table("Names"), table("Paths and methods"), table("Tokens")
PLACES = [(row["path"].strip("`"), name) for row in METHODS for name in row if name != "path"]
SERVED = {(row["path"].strip("`"), name): row[name] for row in METHODS for name in row}


def request(client: Client, method: str, target: str, *headers: str) -> Reply:
    body = PING if method == "POST" else b""
    return client.send(method, target, *KIND, *headers, host=None, body=body)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(write_base(tmp_path_factory.mktemp("matrix") / "repo")) as client:
        yield client


@pytest.mark.parametrize("row", NAMES, ids=lambda row: row["answer"])
def test_names(client: Client, row: Row) -> None:
    port = str(client.port)
    sent = product(
        values(row["Host"], PORT=port), values(row["Origin"], PORT=port), PLACES
    )  # fmt: skip
    for hosts, origins, (path, method) in sent:
        headers = [*(f"Host: {one}" for one in hosts), *(f"Origin: {one}" for one in origins)]
        for (target,) in values(row["target"], PATH=path, PORT=port):
            reply = request(client, method, target, *headers)
            expected = SERVED[path, method] if row["answer"] == "served" else row["answer"]
            assert f"{reply.status}" == expected, (method, target, headers)
            assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize("row", METHODS, ids=lambda row: row["path"].strip("`"))
def test_a_wrong_method_is_told_the_right_one(client: Client, row: Row) -> None:
    path = row["path"].strip("`")
    right = [name for name, status in row.items() if status == "200"]
    for method in (name for name, status in row.items() if status == "405"):
        reply = request(client, method, path, "Host: localhost")
        assert reply.headers["allow"] == ", ".join(right)


def test_http_1_0_without_a_host(client: Client) -> None:
    for path, _ in PLACES:
        assert client.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode()).status == 421


def make_tokens(tokens: TokenFile) -> dict[str, str]:
    """The tokens that the table names."""
    old = TokenFile(tokens.path, now=lambda: time.time() - 3_600)
    rotated = tokens.create("rotated")
    made = {
        "EXPIRED": old.create("expired", lifetime_seconds=60),
        "REVOKED": tokens.create("revoked"),
        "ROTATED": rotated,
        "ELSEWHERE": tokens.create("elsewhere", ["marketing"]),
        "CORE": tokens.create("core", ["core"]),
        "GOOD": tokens.create("good"),
        "WRONG": "sage_0123456789ab_" + "A" * 43,
        "LONG": "A" * 9_000,
    }
    tokens.rotate("rotated")
    return made


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("team")
    tokens = TokenFile(folder / "private" / "tokens.json")
    made = make_tokens(tokens)
    with serving(write_base(folder / "repo"), tokens=tokens.path, require_token=True) as client:
        revoked = f"Authorization: Bearer {made['REVOKED']}"
        assert request(client, "POST", "/mcp", "Host: localhost", revoked).status == 200
        tokens.revoke("revoked")
        yield client, made


def expected_for(row: Row, path: str, method: str) -> str:
    """The status, and the error of the challenge when there is one."""
    served = SERVED[path, method]
    return served if served != "200" or path in PROBES else row[f"`{path}`"].replace("`", "")


@pytest.mark.parametrize("row", TOKENS, ids=lambda row: row["`/mcp`"].replace("`", ""))
def test_tokens(team: tuple[Client, dict[str, str]], row: Row) -> None:
    client, made = team
    sent = product(values(row["Authorization"], **made), values(row["query"], **made), PLACES)
    for given, query, (path, method) in sent:
        headers = ["Host: localhost", *(f"Authorization: {one}" for one in given)]
        reply = request(client, method, "?".join([path, *query]), *headers)
        challenge = reply.headers.get("www-authenticate", "")
        shown = " ".join([str(reply.status), *_ERROR.findall(challenge)])
        assert shown == expected_for(row, path, method), (method, path, query, headers)
        assert ("Bearer" in challenge) == (
            path not in PROBES and shown[:3] in ("400", "401", "403")
        )


def test_the_tables_are_whole() -> None:
    assert {row["answer"] for row in NAMES} == {"served", "421", "403", "400"}
    assert len(PLACES) == 30
    answers = {row["`/mcp`"].partition(" ")[0] for row in TOKENS}
    assert answers == {"200", "400", "401", "403"}
