"""The address of knowledge as a resource."""

import pytest

from sage.documents.files import SourceFile, Stamp
from sage.errors import NotFound
from sage.server.resource_uris import ResourceUri, changed_uris, parse_uri, uri_of

LAYERS = ("core", "practices")


@pytest.mark.parametrize(
    ("uri", "layer", "topic"),
    [
        ("knowledge://core", "core", None),
        ("knowledge://core/", "core", None),
        ("knowledge://all", "all", None),
        ("knowledge://CORE/Principles", "core", "Principles"),
        ("knowledge://practices/engineering/TESTING", "practices", "engineering/TESTING"),
        ("knowledge://practices/a%20b/%E4%B8%AD", "practices", "a b/中"),
        ("knowledge://practices/testing#fixtures", "practices", "testing#fixtures"),
        ("knowledge://practices/../../etc/passwd", "practices", "../../etc/passwd"),
    ],
)
def test_an_address_is_a_layer_and_a_topic(uri: str, layer: str, topic: str | None) -> None:
    assert parse_uri(uri, LAYERS) == ResourceUri(layer, topic)


def test_what_belongs_to_a_topic_has_an_address_of_its_own() -> None:
    address = parse_uri("related://Practices/a%20b", LAYERS)
    assert address == ResourceUri("practices", "a b", is_related=True)
    assert address.uri == "related://practices/a%20b"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "knowledge://",
        "knowledge://nowhere/x",
        "file:///etc/passwd",
        "core/x",
        "related://core",
        "related://nowhere/x",
    ],
)
def test_any_other_address_is_not_found_and_the_forms_are_named(uri: str) -> None:
    with pytest.raises(NotFound, match="LAYER/TOPIC with the layers core, practices"):
        parse_uri(uri, LAYERS)


@pytest.mark.parametrize("topic", ["core/a", "core/ü b/c%d", "practices/x#y", "practices/日本/?q"])
def test_the_uri_of_a_topic_leads_back_to_it(topic: str) -> None:
    address = uri_of(topic)
    assert parse_uri(address.uri, LAYERS) == address


def test_an_undecodable_name_still_has_an_address() -> None:
    assert ResourceUri("core", "\udcff").uri == "knowledge://core/%3F"


def test_a_change_touches_the_document_its_layer_and_all() -> None:
    kept = SourceFile(".knowledge/core/kept.md", "core", Stamp(1, 1, 1, 1))
    old = SourceFile(".knowledge/practices/a/b.md", "practices", Stamp(2, 1, 1, 1))
    new = old._replace(stamp=Stamp(2, 2, 2, 2))
    assert changed_uris([kept, old], [kept, new]) == {
        "knowledge://all",
        "knowledge://practices",
        "knowledge://practices/a/b",
    }
    assert changed_uris([kept], [kept]) == set()
