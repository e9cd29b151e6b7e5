"""The headers that a browser under attack would send, and those of honest clients."""

import pytest

from sage.access.hosts import Authority, HostRules, is_loopback, parse_authority, parse_origin
from sage.errors import ConfigError

HERE = "127.0.0.1"
OPEN = HostRules()
TEAM = HostRules.named(
    ["sage.example.com", "*.corp.example", "sage.lan:8443"], ["https://tools.example.com"]
)


@pytest.mark.parametrize(
    "header",
    [
        "127.0.0.1",
        "127.0.0.1:8000",
        "localhost",
        "LOCALHOST:65535",
        "localhost.",
        "[::1]",
        "[::1]:8000",
        "[0:0:0:0:0:0:0:1]:80",
    ],
)
def test_names_of_the_own_machine_are_answered_on_any_port(header: str) -> None:
    assert OPEN.allow_host(header, HERE)
    assert TEAM.allow_host(header, "10.0.0.5")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1:8000:80",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "127.0.0.1, evil.example",
        "127.0.0.1 ",
        "http://127.0.0.1",
        "127.0.0.1/evil.example",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "::1",
        "[::1",
        "[127.0.0.1]",
        "[::1%25lo]",
        "0.0.0.0",
        "10.0.0.5",
        "löcalhost",
    ],
)
def test_any_other_name_is_not_ours(header: str) -> None:
    assert not OPEN.allow_host(header, HERE)


def test_the_address_where_a_connection_arrived_is_answered() -> None:
    assert OPEN.allow_host("10.0.0.5:8000", "10.0.0.5")
    assert OPEN.allow_host("10.0.0.5", "::ffff:10.0.0.5")
    assert OPEN.allow_host("[2001:db8::5]:8000", "2001:db8:0::5")
    assert not OPEN.allow_host("10.0.0.6:8000", "10.0.0.5")


@pytest.mark.parametrize(
    ("header", "answered"),
    [
        ("sage.example.com", True),
        ("SAGE.example.com:443", True),
        ("evil-sage.example.com", False),
        ("sage.example.com.evil.example", False),
        ("a.corp.example", True),
        ("a.b.corp.example:9000", True),
        ("corp.example", False),
        ("evilcorp.example", False),
        ("sage.lan:8443", True),
        ("sage.lan", False),
        ("sage.lan:80", False),
    ],
)
def test_allowed_hosts_are_matched_whole(header: str, answered: bool) -> None:
    assert TEAM.allow_host(header, "10.0.0.5") is answered


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("http://localhost:8000", "localhost:8000", True),
        ("http://127.0.0.1", "127.0.0.1:80", True),
        ("https://sage.example.com", "sage.example.com", True),
        ("https://sage.example.com", "sage.example.com:443", True),
        ("http://[::1]:8000", "[::1]:8000", True),
        ("https://tools.example.com", "sage.example.com", True),
        ("https://tools.example.com:443", "sage.example.com", True),
        ("http://tools.example.com", "sage.example.com", False),
        ("https://tools.example.com:8443", "sage.example.com", False),
        ("http://localhost:3000", "localhost:8000", False),
        ("http://evil.example", "localhost:8000", False),
        ("http://evil.example:8000", "127.0.0.1:8000", False),
        ("http://localhost:8000.evil.example", "localhost:8000", False),
        ("http://localhost:8000/", "localhost:8000", False),
        ("http://user@localhost:8000", "localhost:8000", False),
        ("chrome-extension://localhost:8000", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("", "localhost:8000", False),
        ("localhost:8000", "localhost:8000", False),
    ],
)
def test_a_page_may_ask_from_this_server_or_from_an_allowed_origin(
    origin: str, host: str, allowed: bool
) -> None:
    assert TEAM.allow_origin(origin, host) is allowed


def test_an_origin_that_is_no_web_page_can_be_allowed_by_name() -> None:
    rules = HostRules.named([], ["chrome-extension://abcdef"])
    assert rules.allow_origin("chrome-extension://abcdef", "localhost:8000")
    assert rules.named_origin("chrome-extension://abcdef")
    assert not rules.named_origin("http://localhost:8000")


@pytest.mark.parametrize("host", ["*", "http://sage.example.com", "sage example", "", "a:b"])
def test_a_host_that_cannot_be_one_is_refused_at_the_start(host: str) -> None:
    with pytest.raises(ConfigError, match="--allow-host"):
        HostRules.named([host], [])


@pytest.mark.parametrize("origin", ["*", "null", "tools.example.com", "https://a/b", ""])
def test_an_origin_that_cannot_be_one_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(ConfigError, match="--allow-origin"):
        HostRules.named([], [origin])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"])
def test_loopback_addresses_are_known(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.5", "example.com", ""])
def test_other_addresses_are_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def test_rules_know_whether_they_reach_beyond_this_machine() -> None:
    assert TEAM.beyond_this_machine
    assert not HostRules.named(["localhost:9000", "127.0.0.2"], []).beyond_this_machine


def test_parsing_gives_one_form_for_one_authority() -> None:
    assert parse_authority("[0:0::1]:80") == Authority("::1", 80)
    assert parse_origin("HTTPS://Example.COM:443") == parse_origin("https://example.com")
