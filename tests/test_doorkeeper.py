"""Who asks."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sage.access import Grant, TokenFile
from sage.doorkeeper import ANYBODY, Claims, Doorkeeper, SingleSignOn, bearer
from sage.refusals import Refused


async def sign_on(value: str) -> Claims | None:
    return {
        "ada": {"sub": "ada"},
        "bob": {"client_id": "bob", "sage_layers": "core,practices"},
    }.get(value)


def admit(keeper: Doorkeeper, headers: Mapping[str, Sequence[str]], query: bytes = b"") -> Grant:
    return asyncio.run(keeper.admit(lambda name: headers.get(name, []), query))


def refusal(keeper: Doorkeeper, headers: Mapping[str, Sequence[str]], query: bytes = b"") -> int:
    with pytest.raises(Refused) as caught:
        admit(keeper, headers, query)
    return caught.value.status


def test_a_server_for_its_own_machine_asks_for_nothing() -> None:
    keeper = Doorkeeper()
    assert keeper.asks_for_nothing
    assert admit(keeper, {}) is ANYBODY
    assert admit(keeper, {"authorization": ["Bearer anything"]}) is ANYBODY


@pytest.mark.parametrize("header", ["forwarded", "x-forwarded-for", "x-real-ip", "via"])
def test_but_not_of_somebody_behind_a_proxy(header: str) -> None:
    assert refusal(Doorkeeper(), {header: ["10.0.0.9"]}) == 403


def test_tokens_and_single_sign_on_live_side_by_side(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    value = tokens.create("ci", ["core"])
    keeper = Doorkeeper(tokens, SingleSignOn(sign_on))
    assert admit(keeper, {"authorization": [f"Bearer {value}"]}) == Grant("ci", ("core",))
    assert admit(keeper, {"authorization": ["Bearer ada"]}) == Grant("ada", None)
    assert admit(keeper, {"authorization": ["Bearer bob"]}) == Grant("bob", ("core", "practices"))
    assert refusal(keeper, {"authorization": ["Bearer eve"]}) == 401


def test_a_token_of_ours_means_nothing_to_a_server_without_a_file() -> None:
    keeper = Doorkeeper(None, SingleSignOn(sign_on))
    assert refusal(keeper, {"authorization": ["Bearer sage_0123456789ab_" + "A" * 43]}) == 401


@pytest.mark.parametrize("query", [b"access_token=x", b"a=1&TOKEN=x", b"key=x", b"api_key=x"])
def test_a_url_with_a_token_is_refused_before_anything_else(query: bytes) -> None:
    keeper = Doorkeeper(None, SingleSignOn(sign_on))
    assert refusal(keeper, {"authorization": ["Bearer ada"]}, query) == 400
    assert admit(keeper, {"authorization": ["Bearer ada"]}, b"monkey=1") == Grant("ada")


def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert bearer(["bearer  x "]) == "x"
