"""Tokens: made, shown once, checked, replaced and taken back."""

import json
from pathlib import Path

import pytest

from sage.access import Grant, TokenFile, moment, parse_duration
from sage.errors import ConfigError, InvalidInput, NotFound


class Clock:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json", clock)


def test_a_token_lets_its_bearer_in(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    assert tokens.verify(value) == Grant("ci", None)


def test_a_token_carries_its_layers(tokens: TokenFile) -> None:
    value = tokens.create("ci", ["core", "practices"])
    assert tokens.verify(value) == Grant("ci", ("core", "practices"))


def test_the_file_holds_no_token(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    text = tokens.path.read_text()
    assert value not in text
    assert value.rsplit("_", 1)[1] not in text
    assert value[18:] not in text


def test_two_tokens_never_share_salt_or_hash(tokens: TokenFile) -> None:
    tokens.create("one")
    tokens.create("two")
    first, second = tokens.tokens()
    assert first.salt != second.salt
    assert first.hash != second.hash


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: "",
        lambda value: "x",
        lambda value: value[:-1],
        lambda value: value + "A",
        lambda value: value[:-1] + ("A" if value[-1] != "A" else "B"),
        lambda value: "sage_000000000000_" + value[18:],
        lambda value: value.upper(),
        lambda value: value + "\n",
        lambda value: "\ud800" + value,
        lambda value: value.replace("_", " "),
    ],
)
def test_a_token_that_is_not_exactly_ours_lets_nobody_in(tokens: TokenFile, spoil: object) -> None:
    value = tokens.create("ci")
    assert callable(spoil)
    assert tokens.verify(spoil(value)) is None


def test_a_revoked_token_stops_in_every_process_at_once(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    server = TokenFile(tokens.path)
    assert server.verify(value)
    tokens.revoke("ci")
    assert server.verify(value) is None


def test_a_new_token_works_in_every_process_at_once(tokens: TokenFile) -> None:
    server = TokenFile(tokens.path)
    assert server.verify("sage_x") is None
    assert server.verify(tokens.create("ci"))


def test_a_token_expires(tokens: TokenFile, clock: Clock) -> None:
    value = tokens.create("ci", lifetime_seconds=60)
    clock.seconds += 59
    assert tokens.verify(value)
    clock.seconds += 1
    assert tokens.verify(value) is None


def test_rotating_gives_a_new_value_for_the_same_layers(tokens: TokenFile) -> None:
    old = tokens.create("ci", ["core"])
    new = tokens.rotate("ci")
    assert tokens.verify(old) is None
    assert tokens.verify(new) == Grant("ci", ("core",))


def test_a_rotated_token_is_valid_for_as_long_as_the_old_one_was(
    tokens: TokenFile, clock: Clock
) -> None:
    tokens.create("ci", lifetime_seconds=600)
    clock.seconds += 500
    new = tokens.rotate("ci", overlap_seconds=60)
    clock.seconds += 599
    assert tokens.verify(new)
    clock.seconds += 1
    assert tokens.verify(new) is None


def test_the_old_value_can_stay_for_a_while(tokens: TokenFile, clock: Clock) -> None:
    old = tokens.create("ci")
    new = tokens.rotate("ci", overlap_seconds=3600)
    assert tokens.verify(old)
    clock.seconds += 3600
    assert tokens.verify(old) is None
    assert tokens.verify(new)


def test_an_overlap_does_not_outlive_the_old_value(tokens: TokenFile, clock: Clock) -> None:
    old = tokens.create("ci", lifetime_seconds=60)
    tokens.rotate("ci", overlap_seconds=3600)
    clock.seconds += 60
    assert tokens.verify(old) is None


def test_revoking_takes_every_value_of_a_name(tokens: TokenFile) -> None:
    old = tokens.create("ci")
    new = tokens.rotate("ci", overlap_seconds=3600)
    tokens.revoke("ci")
    assert tokens.verify(old) is None
    assert tokens.verify(new) is None
    assert tokens.tokens() == []


def test_a_name_is_given_once_until_it_expires(tokens: TokenFile, clock: Clock) -> None:
    tokens.create("ci", lifetime_seconds=60)
    with pytest.raises(InvalidInput, match="there is a token ci"):
        tokens.create("ci")
    clock.seconds += 60
    tokens.create("ci")
    assert [token.name for token in tokens.tokens()] == ["ci"]


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "a\nb", "x" * 65, "ü"])
def test_a_name_must_be_readable_in_a_log(tokens: TokenFile, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a token"):
        tokens.create(name)


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tokens: TokenFile) -> None:
    tokens.create("ci")
    with pytest.raises(NotFound, match="the tokens: ci"):
        tokens.revoke("cd")
    with pytest.raises(NotFound):
        tokens.rotate("cd")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tokens": [{}]}', "[" * 100_000])
def test_a_damaged_file_lets_nobody_in(tokens: TokenFile, text: str) -> None:
    value = tokens.create("ci")
    tokens.path.write_text(text)
    assert tokens.verify(value) is None
    with pytest.raises(ConfigError, match="not a file of tokens"):
        tokens.tokens()


def test_a_file_that_others_can_read_lets_nobody_in(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    tokens.path.chmod(0o644)
    assert tokens.verify(value) is None
    tokens.path.chmod(0o600)
    assert tokens.verify(value)


def test_the_file_says_its_version(tokens: TokenFile) -> None:
    tokens.create("ci", ["core"], 60)
    written = json.loads(tokens.path.read_text())
    assert written["version"] == 1
    assert sorted(written["tokens"][0]) == [
        "created", "expires", "hash", "id", "layers", "name", "salt",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("12h", 43_200), ("90d", 7_776_000), ("4W", 2_419_200)]
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "0d", "1.5h", "90 days", "999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no duration"):
        parse_duration(text)


def test_a_moment_is_written_in_universal_time() -> None:
    assert moment(0) == "1970-01-01T00:00:00Z"
