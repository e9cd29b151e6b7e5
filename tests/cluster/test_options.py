"""Where a cluster is and as whom it is asked: what is refused, and nothing secret is shown."""

import os
from pathlib import Path

import pytest

from sage.cluster.connection import ClusterOptions
from sage.cluster.options import cluster_options
from sage.errors import ConfigError
from tests.commands import Run, run

__all__ = ["run"]


@pytest.mark.parametrize(
    ("urls", "base", "environment"),
    [
        ([], "sage", {}),
        (["ftp://search"], "sage", {}),
        (["https://ada:geheim@search"], "sage", {}),
        (["http://search.example.com"], "sage", {"SAGE_OPENSEARCH_USER": "ada"}),
        (["https://search"], "Sage-Base", {}),
        (["https://search"], "_base", {}),
        (["https://search"], "", {}),
        (["https://search"], "b" * 101, {}),
        (["http://127.0.0.1:abc"], "sage", {}),
        (["http://127.0.0.1:99999"], "sage", {}),
        (["http://[::1"], "sage", {}),
        (["https://ada:geheim@[::1"], "sage", {}),
        (["https://search/ada:geheim@x"], "sage", {}),
        (["https://search/%2f@geheim"], "sage", {}),
        (["https://a..b"], "sage", {}),
        (["https://" + "a" * 64 + ".example.com"], "sage", {}),
        (["https://search/?pretty=geheim"], "sage", {}),
        (["https://se arch"], "sage", {}),
        (["https://search"], "sage", {"SAGE_OPENSEARCH_USER": "ada"}),
        (["https://search"], "sage", {"SAGE_OPENSEARCH_PASSWORD": "geheim"}),
        (
            ["http://localhost"],
            "sage",
            {"SAGE_OPENSEARCH_USER": "", "SAGE_OPENSEARCH_PASSWORD": "geheim"},
        ),
        (
            ["https://search"],
            "sage",
            {"SAGE_OPENSEARCH_USER": "ada:x", "SAGE_OPENSEARCH_PASSWORD": "geheim"},
        ),
    ],
)
def test_a_wrong_option_is_refused_without_its_secret(
    urls: list[str], base: str, environment: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as refused:
        cluster_options(urls, base, environment)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("text", ["geheim\n", "ada:\n", ":geheim\n", "\nada:geheim\n", ""])
def test_a_file_without_credentials_is_refused_without_its_content(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "credentials"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="--credentials") as refused:
        cluster_options(["https://search"], "sage", {}, file)
    assert "geheim" not in str(refused.value)


def credentials(folder: Path, data: bytes, mode: int = 0o600) -> ClusterOptions:
    """The options with a file of credentials that holds something."""
    file = folder / "credentials"
    file.write_bytes(data)
    file.chmod(mode)
    return cluster_options(["https://search"], "sage", {}, file)


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("ada:geheim\n", "geheim"),
        ("ada:geheim\r\nmore\r\n", "geheim"),
        ("\ufeffada:geheim\n", "geheim"),
        ("ada:ge:heim", "ge:heim"),
        ("ada:ge\u2028he\u0085i\x0cm\n", "ge\u2028he\u0085i\x0cm"),
        ("ada:geheim\x0c\n", "geheim\x0c"),
    ],
)
def test_the_first_line_is_the_user_and_the_password(
    tmp_path: Path, text: str, password: str
) -> None:
    options = credentials(tmp_path, text.encode())
    assert (options.user, options.password) == ("ada", password)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_credentials_that_are_not_utf_8_are_refused_as_such(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(ConfigError, match="save it as UTF-8"):
        credentials(tmp_path, "ada:gehéim\n".encode(encoding))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o666])
def test_credentials_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        credentials(tmp_path, b"ada:geheim\n", mode)


def test_what_is_no_file_of_credentials_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, said in (("pipe", "is not a file"), ("none", "no such file"), (".", "be read")):
        with pytest.raises(ConfigError, match=said):
            cluster_options(["https://search"], "sage", {}, tmp_path / name)
    with pytest.raises(ConfigError, match="is not a file"):
        cluster_options(["https://search"], "sage", {}, Path("/dev/zero"))


def test_a_file_of_endless_credentials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not user:password"):
        credentials(tmp_path, b"ada:" + b"x" * 1_000_000)


def test_certificates_that_would_not_be_used_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        cluster_options(["https://search"], "sage", {}, None, file)
    file.write_text("")
    with pytest.raises(ConfigError, match="would not be used: no --url begins with https"):
        cluster_options(["http://search"], "sage", {}, None, file)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is not a file"):
        cluster_options(["https://search"], "sage", {}, None, tmp_path / "pipe")


@pytest.mark.parametrize("url", ["http://127.0.0.1:abc", "http://[::1"])
@pytest.mark.parametrize("words", [("publish",), ("info",)])
def test_the_command_ends_with_one_line_where_an_address_is_none(
    run: Run, words: tuple[str, ...], url: str
) -> None:
    code, out, err = run(*words, "--url", url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--url is no address" in err
