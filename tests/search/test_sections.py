"""What is shown of documents: packed and unpacked, and nothing that is something else."""

import dataclasses
import json
import zlib

import pytest

from sage.documents.document import Heading, Page, parse_document
from sage.documents.files import Stamp
from sage.search.indexing import describe
from sage.search.sections import SectionEntry, StoredDocument, pack_record, page_of, unpack_record
from sage.terms.analysis import Analyzer
from sage.terms.index_file import UntrustedIndex
from sage.token_counter import TokenCounter


def test_what_is_shown_of_a_document_survives_being_packed() -> None:
    section = SectionEntry(1, "A > B", "b", 3, 9, 9, 20, 12, 1, "text \ud800 数据 \0")
    headings = (Heading("A", 1, "a", 1, 0), Heading("B", 2, "b", 3, 5))
    shown = StoredDocument("A summary.", (section,), headings, 9, f"# A\n\n{section.text}\n\nend")
    assert unpack_record(pack_record(shown)) == shown


def test_a_page_is_read_back_as_it_was_parsed() -> None:
    text = (
        "---\nid: n1\npriority: high\n---\nfirst\n\n# A\n\n### C\n\nc\n\n## B `b`\n\nb\n\n## B b\n"
    )
    parsed = parse_document(text, ".knowledge/core/a.md", "core")
    described, rows = describe(
        parsed, Stamp(0, 0, 0, 0), {}, Analyzer(), TokenCounter().count_slice
    )
    page = page_of(described, unpack_record(rows[0].record))
    for name in (field.name for field in dataclasses.fields(Page)):
        assert getattr(page, name) == getattr(parsed, name)


def packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\x80\x04\x95",
        zlib.compress(b"\xff"),
        zlib.compress(b"[" * 100_000),
        packed([]),
        packed(["summary", [["0", "", "", 1, 1, 1, 1, 1, 1, 1]], [["", 0, "", 1, 0]], 1, "b"]),
        packed(["summary", [[True, "", "", 1, 1, 1, 1, 1, 1, 1]], [["", 0, "", 1, 0]] * 2, 1, "b"]),
        packed(["summary", [[1, "", "", 1, 1, 1, 1, 1, 1, 1]], [["", 0, "", 1, 0]], 1, "b"]),
        packed(["summary", [[0, "", "", 1, 1, 1, 1, 1, 1, "1"]], [["", 0, "", 1, 0]], 1, "b"]),
        packed(["summary", [], [["", 0, "", 1, "0"]], 1, "b"]),
        packed(["summary", [], [["", 0, "", 1]], 1, "b"]),
        packed(["summary", [], [], "1", "b"]),
        packed(["summary", [], [], 1, 2]),
        packed([1, [], [], 1, "b"]),
        packed(["summary", [], [], 1, "b"])[:-1],
    ],
)
def test_another_record_is_refused(record: bytes) -> None:
    with pytest.raises(UntrustedIndex):
        unpack_record(record)


def test_a_record_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sage.search.sections.MAX_RECORD", 1_000)
    with pytest.raises(UntrustedIndex):
        unpack_record(packed(["a" * 10_000_000, [], [], 1, ""]))
