"""How near a document is: by the two nearest things that it says."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sage.documents.files import Stamp
from sage.search.catalog import Catalog
from sage.search.fusion import Bounds
from sage.semantic.vectors import Compared, DocumentVectors, Vectors

STAMP = Stamp(1, 2, 3, 4)
BOUNDS = Bounds(0.0, 0.5, 0.9)


def compared(**said: list[float]) -> Compared:
    """Documents that say something as near to the question as each number, themselves first."""
    entries: list[Any] = []
    vectors = Vectors(2)
    for path, cosines in said.items():
        keys = tuple(f"{path}{at}".encode() for at in range(len(cosines)))
        rows = [[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines]
        vectors.add(keys, np.array(rows, np.float32))
        vectors.documents[path] = DocumentVectors(STAMP, keys)
        entries.append(SimpleNamespace(path=path, stamp=STAMP, indexed_sections=len(cosines) - 1))
    table = vectors.table(cast(Catalog, SimpleNamespace(slots=entries)))
    return table.similarities(np.array([1, 0], np.float32), BOUNDS)


def test_a_document_is_as_near_as_the_mean_of_its_two_nearest_things() -> None:
    near = compared(a=[0.5, 0.9, 0.5]).of(0)
    assert near is not None
    assert near.similarity == pytest.approx(0.8 * 0.7 + 0.2 * 0.5, abs=0.01)
    assert near.section == 0


def test_what_is_compared_stays_while_vectors_are_dropped() -> None:
    vectors = Vectors(2)
    vectors.add([b"old", b"new"], np.array([[1, 0], [0, 1]], np.float32))
    vectors.documents["a"] = DocumentVectors(STAMP, (b"old",))
    catalog = cast(
        Catalog, SimpleNamespace(slots=[SimpleNamespace(path="a", stamp=STAMP, indexed_sections=0)])
    )
    before = vectors.table(catalog)
    vectors.documents["a"] = DocumentVectors(STAMP, (b"new",))
    assert vectors.drop_unused() == 1
    vectors.add([b"other"], np.array([[0, 1]], np.float32))
    question = np.array([1, 0], np.float32)
    nearness = [
        table.similarities(question, BOUNDS).of(0) for table in (before, vectors.table(catalog))
    ]
    assert [near and round(near.similarity, 1) for near in nearness] == [1.0, 0.0]
    assert b"old" not in vectors


def test_one_near_section_is_less_than_two() -> None:
    both = compared(once=[0.1, 0.9, 0.1], twice=[0.1, 0.8, 0.8])
    assert [one.slot for one in both.best(2, None)] == [1, 0]


def test_what_a_document_says_of_itself_counts_and_is_no_section() -> None:
    near = compared(a=[0.9, 0.1, 0.5]).of(0)
    assert near is not None
    assert near.similarity == pytest.approx(0.8 * 0.7 + 0.2 * 0.9, abs=0.01)
    assert near.section == 1


def test_a_document_without_sections_is_known_by_what_it_says_of_itself() -> None:
    near = compared(a=[0.6], b=[0.1, 0.1]).of(0)
    assert near is not None
    assert (near.section, round(near.similarity, 1)) == (-1, 0.6)


def test_two_that_are_equally_near_are_two() -> None:
    near = compared(a=[0.8, 0.8, 0.2]).of(0)
    assert near is not None
    assert near.similarity == pytest.approx(0.8, abs=0.01)


def test_equal_documents_stand_by_path() -> None:
    both = compared(b=[0.5, 0.5], a=[0.5, 0.5], c=[0.9, 0.9])
    assert [one.slot for one in both.best(2, None)] == [2, 1]


def test_a_document_that_is_not_allowed_takes_no_place() -> None:
    both = compared(a=[0.9, 0.9], b=[0.5, 0.5])
    assert [one.slot for one in both.best(1, lambda slot: slot == 1)] == [1]
