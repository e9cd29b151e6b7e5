"""Vectors that travel with pages: packed, trusted only if whole, and compared by a replica."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sage.documents.files import Stamp
from sage.search.catalog import Catalog
from sage.semantic.page_vectors import pack_page, unpack_page
from sage.semantic.published import PageEmbedder, PublishedMeaning
from sage.semantic.vectors import Vectors
from sage.semantic.weights import ModelUnavailable
from tests.semantic.tiny import Tiny, tiny_model

STAMP = Stamp(1, 2, 3, 4)
KEYS = [b"a" * 16, b"b" * 16, b"a" * 16]


def packed() -> bytes:
    vectors = Vectors(2)
    vectors.add(KEYS[:2], np.array([[1, 0], [0, 1]], np.float32))
    return pack_page(vectors, KEYS)


def page(title: str, *sections: str) -> tuple[Any, Any]:
    """An entry and what is kept of its page."""
    entry = SimpleNamespace(
        path=title, stamp=STAMP, title=title, aliases=(), tags=(), indexed_sections=len(sections)
    )
    told = [SimpleNamespace(heading="", text=text) for text in sections]
    return entry, SimpleNamespace(summary="", sections=told)


def catalog_of(*entries: Any) -> Catalog:
    sections = sum(entry.indexed_sections for entry in entries)
    return cast(Catalog, SimpleNamespace(slots=entries, section_count=sections))


def test_packed_vectors_come_back_in_order() -> None:
    found = unpack_page(packed())
    assert list(found.keys) == KEYS
    assert (found.numbers * found.scales[:, None]).round(2).tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("damage", [b"", b"abc", b"\0" * 8, packed()[:-1], packed() + b"x"])
def test_what_is_not_whole_is_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match="the vectors of a page"):
        unpack_page(damage)


def test_numbers_without_end_are_refused() -> None:
    data = bytearray(packed())
    data[8 + 3 * 16 : 8 + 3 * 16 + 4] = np.array([np.inf], "<f4").tobytes()
    with pytest.raises(ValueError, match="no numbers"):
        unpack_page(bytes(data))


def test_what_a_page_says_still_is_not_embedded_again() -> None:
    first = PageEmbedder(tiny_model(Tiny()))
    before = first.embed(*page("Cache", "stored", "again"))
    tiny = Tiny()
    second = PageEmbedder(tiny_model(tiny))
    second.remember(before)
    assert second.embed(*page("Cache", "stored", "again")) == before
    assert tiny.given == []
    second.embed(*page("Cache", "stored", "repeat"))
    assert len(tiny.given) == 1


def test_pages_are_compared_once_the_model_is_loaded_and_forgotten_when_they_go() -> None:
    model = tiny_model(Tiny())
    embedder, meaning = PageEmbedder(model), PublishedMeaning(model)
    entries = [page("Cache", "stored")[0], page("Deploy", "ship")[0]]
    for title, text in (("Cache", "stored"), ("Deploy", "ship")):
        meaning.take(title, STAMP, embedder.embed(*page(title, text)))
    meaning.keep_only({"Cache", "Deploy"})
    catalog = catalog_of(*entries)
    assert meaning.state_of(catalog).state == "loading"
    meaning.load()
    assert meaning.state_of(catalog).state == "ready"
    compared = meaning.compare("memo", catalog)
    assert compared is not None
    assert [one.slot for one in compared.best(1, None)] == [0]
    meaning.keep_only({"Deploy"})
    compared = meaning.compare("memo", catalog)
    assert compared is not None
    assert compared.of(0) is None


def test_vectors_of_another_size_are_refused() -> None:
    meaning = PublishedMeaning(tiny_model(Tiny()))
    meaning.take("a", STAMP, packed())
    with pytest.raises(ValueError, match="another size than those of others"):
        meaning.take("b", STAMP, PageEmbedder(tiny_model(Tiny())).embed(*page("Cache", "stored")))


def test_a_model_that_cannot_be_loaded_says_why() -> None:
    def load() -> Tiny:
        raise ModelUnavailable("the weights are broken")

    meaning = PublishedMeaning(tiny_model(Tiny())._replace(load=load))
    meaning.load()
    assert meaning.state_of(catalog_of()).message == "the weights are broken"
    assert meaning.compare("memo", catalog_of()) is None
