"""The commands of whoever runs a server for others."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sage.access.options import HttpOptions
from sage.access.token_file import Grant, TokenFile
from sage.cli.main import app
from sage.cli.team import parse_duration
from sage.errors import ConfigError, InvalidInput, NotFound
from sage.http.metrics import OK, Observation
from sage.http.usage_log import UsageLog
from tests.commands import Run, run
from tests.httpkit import write_base

__all__ = ["run"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_base(tmp_path / "repo")


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "config" / "tokens.json")


def sage(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_token_is_printed_once_and_works(tokens: TokenFile, root: Path) -> None:
    made = sage(
        "token",
        "create",
        "ci",
        "--layers",
        "core, practices",
        "--tokens",
        tokens.path,
        "--root",
        root,
    )
    value = made.stdout.strip()
    assert tokens.verify(value) == Grant("ci", ("core", "practices"))
    assert value not in made.stderr
    assert value not in sage("token", "list", "--tokens", tokens.path).stdout


def test_tokens_are_listed_without_their_values(tokens: TokenFile) -> None:
    tokens.create("ci", ["core"], 60)
    tokens.create("ada")
    listed = sage("token", "list", "--tokens", tokens.path).stdout.splitlines()
    assert listed[0].split() == ["NAME", "LAYERS", "SOURCES", "CREATED", "EXPIRES", "STATE"]
    assert [line.split()[:2] for line in listed[1:]] == [["ada", "all"], ["ci", "core"]]
    objects = json.loads(sage("token", "list", "--json", "--tokens", tokens.path).stdout)
    assert [one["expires"] == "never" for one in objects] == [True, False]
    keys = {"name", "layers", "sources", "created", "expires", "state"}
    assert all(set(one) == keys for one in objects)


def test_no_tokens_is_an_invitation(tokens: TokenFile) -> None:
    listed = sage("token", "list", "--tokens", tokens.path)
    assert listed.stdout == ""
    assert "sage token create NAME" in listed.stderr


def test_a_token_is_rotated_and_revoked(tokens: TokenFile) -> None:
    old = tokens.create("ci", ["core"])
    flags = ("--tokens", tokens.path)
    new = json.loads(sage("token", "rotate", "ci", "--overlap", "1h", "--json", *flags).stdout)
    assert tokens.verify(old) == tokens.verify(new["token"]) == Grant("ci", ("core",))
    sage("token", "revoke", "ci", *flags)
    assert tokens.verify(new["token"]) is None
    with pytest.raises(NotFound):
        sage("token", "revoke", "ci", *flags)


def test_a_layer_that_is_not_served_is_a_mistake(tokens: TokenFile, root: Path) -> None:
    for layers in ("core,marketing", ","):
        with pytest.raises(InvalidInput, match="layer"):
            sage(
                "token", "create", "ci", "--layers", layers, "--tokens", tokens.path, "--root", root
            )
    assert tokens.tokens() == []


def test_away_from_a_repository_layers_are_taken_as_they_are(
    tokens: TokenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SAGE_ROOT", raising=False)
    made = sage("token", "create", "ci", "--layers", "anything", "--tokens", tokens.path)
    assert tokens.verify(made.stdout.strip()) == Grant("ci", ("anything",))


@pytest.mark.parametrize("option", ["--layers", "--sources"])
@pytest.mark.parametrize("name", ["BAD x", "a/b", "all", "x" * 201])
def test_what_can_name_no_layer_or_source_is_refused(
    option: str, name: str, tokens: TokenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SAGE_ROOT", raising=False)
    with pytest.raises(InvalidInput, match="cannot name a"):
        sage("token", "create", "ci", option, name, "--tokens", tokens.path)
    assert tokens.tokens() == []


def test_a_name_that_a_cluster_may_have_is_taken_and_told(
    tokens: TokenFile, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.delenv("SAGE_ROOT", raising=False)
    made = sage("token", "create", "ci", "--layers", "practises", "--tokens", tokens.path)
    assert "there is no layer practises here (the layers are core, " in made.stderr
    assert "did you mean practices?" in made.stderr
    assert tokens.verify(made.stdout.strip()) == Grant("ci", ("practises",))


def test_usage_shows_what_was_read_and_what_was_not(root: Path, tmp_path: Path) -> None:
    log = UsageLog(tmp_path / "usage.jsonl", with_queries=True)
    mark = {"content": "<!-- .knowledge/core/principles.md -->\n"}
    log.note(Observation("sage_get_knowledge", OK, 0.1, {}, mark))
    log.note(Observation("sage_search", OK, 0.1, {"query": "unicorn"}, {"results": [], "total": 0}))
    log.close()
    shown = sage("usage", "--log", log.path, "--root", root).stdout
    assert ".knowledge/core/principles.md  read 1, shown 0" in shown
    assert "1 x unicorn" in shown
    assert "3 pages" in shown
    summary = json.loads(sage("usage", "--log", log.path, "--root", root, "--json").stdout)
    assert summary["never_read"][0] == ".knowledge/guidelines/secret-salaries.md"


def test_usage_without_a_log_says_how_to_have_one(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--usage-log"):
        sage("usage", "--log", tmp_path / "none", "--root", root)


@pytest.mark.parametrize(
    ("flags", "error", "words"),
    [
        (("--port", "9000"), InvalidInput, "--port is for HTTP; add --http"),
        (("--url", "http://x"), InvalidInput, "--url is for HTTP; add --http"),
        (("--http", "--url", "http://x"), InvalidInput, "--url is for a cluster; add --engine"),
        (("--http", "--base", "b"), InvalidInput, "--base is for a cluster; add --engine"),
        (("--http", "--engine", "opensearch"), InvalidInput, "--root is for files; leave it out"),
        (
            ("--http", "--jwt-algorithm", "ES256"),
            InvalidInput,
            "--jwt-algorithm needs",
        ),
        (("--http", "--usage-queries"), InvalidInput, "--usage-queries needs --usage-log"),
        (("--http", "--jwt-issuer", "https://id.example"), ConfigError, "--jwt-audience"),
        (("--http", "--port", "0", "--path", "/metrics"), ConfigError, "--path"),
        (("--http", "--port", "0", "--allow-host", "*"), ConfigError, "--allow-host"),
        (("--http", "--port", "0", "--host", "0.0.0.0"), ConfigError, "no token protects it"),
        (("--http", "--port", "0", "--require-token"), ConfigError, "no token protects it"),
        (("--http", "--host", "no.such.host.invalid"), ConfigError, "cannot listen"),
    ],
)
def test_a_server_that_would_not_be_what_was_meant_does_not_start(
    root: Path, tokens: TokenFile, flags: tuple[str, ...], error: type[Exception], words: str
) -> None:
    more = () if flags[0] != "--http" else ("--tokens", tokens.path)
    with pytest.raises(error, match=words):
        sage("serve", "--root", root, *flags, *more)


@pytest.mark.parametrize(
    "flags",
    [
        ("serve", "--source", "x"),
        ("serve", "--source", "a b=x"),
        ("serve", "--http", "--path", "mcp"),
        ("serve", "--http", "--allow-origin", "x"),
        ("serve", "--http", "--engine", "opensearch", "--source", "x=."),
        ("publish", "--source", "a b"),
        ("publish", "--source", ""),
        ("publish", "--root", ""),
        ("publish", "--url", "http://x", "--credentials", ""),
        ("publish", "--url", "http://x", "--url", ""),
        ("publish", "--url", "nowhere"),
        ("publish",),
        ("info", "--url", "http://x", "--base", "A"),
        ("info", "--base", "b"),
        ("info", "--credentials", "file"),
        ("info", "--url", "https://x", "--ca-file="),
        ("serve", "--http", "--engine", "opensearch", "--url", "http://x", "--base", ""),
        ("serve", "--http", "--jwt-issuer", "", "--jwt-audience", ""),
        ("info", "--url", "http://x", "--root", "."),
    ],
)
def test_a_wrong_option_is_a_wrong_argument(run: Run, flags: tuple[str, ...]) -> None:
    code, out, err = run(*flags)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_more_workers_run_as_many_calls_unless_told_otherwise(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[HttpOptions] = []

    def serve_http(_settings: object, options: HttpOptions, **_: object) -> None:
        begun.append(options)

    monkeypatch.setattr("sage.http.run.serve_http", serve_http)
    for flags in ((), ("--workers", "9"), ("--workers", "9", "--running", "3")):
        sage("serve", "--http", "--root", root, *flags)
    assert [one.limits.running for one in begun] == [8, 9, 3]


def test_help_names_every_flag_and_its_variable() -> None:
    text = " ".join(sage("serve", "--help").stdout.split())
    for flag in ("--http", "--host", "--allow-host", "--require-token", "--jwt-issuer", "--grace"):
        assert flag in text


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("12h", 43_200), ("90d", 7_776_000), ("4W", 2_419_200)]
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "0d", "1.5h", "90 days", "999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a duration"):
        parse_duration(text)
