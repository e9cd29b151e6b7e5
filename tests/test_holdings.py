from pathlib import Path

import pytest

from sage.catalog import Card
from sage.files import Stamp
from sage.holdings import Holdings, keep, kept, parcel
from sage.postings import Row
from sage.vault import Doubtful, Vault
from tests.test_catalog import card

MADE_FOR = {"root": "/r"}


def described(path: str, text: str) -> tuple[Card, list[Row]]:
    terms = {"body": {word: [at] for at, word in enumerate(text.split())}}
    return card(path, 1), [Row({"title": {"t": [0]}}, ""), Row(terms, text)]


def texts(holdings: Holdings) -> dict[str, str]:
    rows = holdings.catalog.first_rows
    return {
        one.path: holdings.index.reader.text(rows[slot] + 1)
        for slot, one in enumerate(holdings.catalog.slots)
    }


def test_documents_come_and_go_together_with_their_rows() -> None:
    holdings = Holdings()
    holdings.change((), [described("a.md", "one"), described("b.md", "two")])
    holdings.change({"a.md"}, [described("a.md", "three")])
    holdings.change({"b.md", "unknown.md"}, [])
    assert texts(holdings) == {"a.md": "three"}


def test_many_small_changes_stay_few_segments() -> None:
    holdings = Holdings()
    holdings.change((), [described(f"p{n}.md", f"old {n}") for n in range(200)])
    for n in range(100):
        holdings.change({f"p{n}.md"}, [described(f"p{n}.md", f"new {n}")])
    assert len(holdings.index.reader.segment_sizes) < 12
    assert texts(holdings) == {f"p{n}.md": f"{'new' if n < 100 else 'old'} {n}" for n in range(200)}


def test_dead_rows_do_not_pile_up() -> None:
    holdings = Holdings()
    for n in range(20):
        pages = [described(f"p{page}.md", f"text {n}") for page in range(40)]
        holdings.change({f"p{page}.md" for page in range(40)}, pages)
    assert sum(holdings.index.reader.segment_sizes) < 1000


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    vault = Vault(tmp_path, Path("/r"))
    holdings = Holdings(footers=frozenset({"abc"}))
    holdings.change((), [described("a.md", "one \ud7ff"), described("b.md", "two")])
    assert keep(vault, parcel(holdings), MADE_FOR) == vault.path.stat().st_size
    again = kept(vault, MADE_FOR)
    assert again is not None
    assert texts(again) == texts(holdings)
    assert again.footers == holdings.footers
    assert "two" in again.vocabulary
    assert again.catalog.cards["a.md"].stamp == Stamp(1, 2, 3, 4)


def test_a_parcel_is_of_one_moment(tmp_path: Path) -> None:
    vault = Vault(tmp_path, Path("/r"))
    holdings = Holdings()
    holdings.change((), [described("a.md", "one")])
    packed = parcel(holdings)
    holdings.change({"a.md"}, [described("b.md", "two")])
    keep(vault, packed, MADE_FOR)
    again = kept(vault, MADE_FOR)
    assert again is not None
    assert texts(again) == {"a.md": "one"}
    assert "two" not in again.vocabulary


def test_nothing_kept_is_nothing(tmp_path: Path) -> None:
    assert kept(Vault(tmp_path, Path("/r")), MADE_FOR) is None


@pytest.mark.parametrize(
    "files", [{}, {"catalog.json": b"{"}, {"catalog.json": b"[]"}, {"catalog.json": b"{}"}]
)
def test_a_sealed_file_of_another_content_is_refused(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    vault = Vault(tmp_path, Path("/r"))
    keep(vault, parcel(Holdings()), MADE_FOR)
    manifest, _ = vault.read() or ({}, {})
    vault.write({"made": manifest["made"]}, files)
    with pytest.raises(Doubtful):
        kept(vault, MADE_FOR)
