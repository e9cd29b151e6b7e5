"""One page as the cluster keeps it: stems to find it by, and what is needed to rank and show it.

The places of words are lines of text, so that the few words of a query are found in them without
taking apart all others. What is written goes as the lines of a bulk: an action, and its document.
"""

import base64
import binascii
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from sage.cluster.schema import (
    ANCHORS,
    BUCKET_FIELDS,
    FIELDS,
    HEADINGS,
    PAGE,
    TEXT,
    TITLE,
    bucket_of,
    feature_of,
    length_norm,
)
from sage.documents.files import Stamp
from sage.documents.titles import anchors_in, heading_lines
from sage.errors import SageError
from sage.search.catalog import DocumentEntry
from sage.search.index import FORMAT
from sage.search.indexing import Described
from sage.terms.analysis import stem_of
from sage.terms.postings import FIELDS as ALL_FIELDS
from sage.terms.postings import (
    MAX_POSITION,
    MAX_POSITIONS,
    SECTION_FIELDS,
    Positions,
    Postings,
    Row,
)

DAMAGED = "a page in the cluster is damaged; publish again with --anew"
_LONG_HEADING = 255
_STEMS_OF = {"title": TITLE, "aliases": TITLE, **dict.fromkeys(SECTION_FIELDS, TEXT)}
_IN_SECTIONS = frozenset(map(ALL_FIELDS.index, SECTION_FIELDS))
_MOST_FORMS = 200_000
_READY = 256
_NONE: Mapping[str, str] = MappingProxyType({})
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def content_stamp(data: bytes) -> Stamp:
    """A stamp that changes with the text and with nothing else."""
    digest = hashlib.blake2b(data, digest_size=7).digest()
    # Nothing of a time: a page without a day of its own would be sorted by its hash.
    return Stamp(int.from_bytes(digest, "big"), len(data), 0, 0)


def page_hash(data: bytes, layer: str, topic: str, footers: Iterable[str], model: str) -> str:
    """What changes when anything that is kept of a page changes.

    Args:
        model: what makes its vectors; empty without any.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in (str(FORMAT), model, layer, topic, *sorted(footers)):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(data)
    return digest.hexdigest()


class PageWords(NamedTuple):
    """The words of a page."""

    forms: Iterable[str]
    stems: Iterable[str]
    """Those of all its forms; each once, as the forms."""
    sections: Iterable[str]
    """The stems of each section, one section after the other."""


class PageDocument(NamedTuple):
    """The document of a page: fields as they are, those that hold columns, and its words."""

    document: dict[str, Any]
    columns: dict[str, str]
    words: PageWords


def to_document(described: Described, text: str, hashed: str, generation: int) -> PageDocument:
    """The document of a page."""
    entry, rows = described
    stems, sections = _stems(rows)
    lines = lines_of(rows)
    document = {
        "kind": PAGE,
        "path": entry.path,
        "layer": entry.layer,
        "source": entry.source,
        "type": entry.type,
        "status": entry.state,
        "tags": list(entry.tags),
        "languages": list(entry.languages),
        "hash": hashed,
        "generation": generation,
        "sections": entry.indexed_sections,
        "entry": {
            "fields": json.dumps(entry, ensure_ascii=False),
            "lengths": [row.length for row in rows],
            "headings": [min(row.heading, _LONG_HEADING) for row in rows],
        },
        "record": base64.b64encode(rows[0].record).decode("ascii"),
        "text": text,
        HEADINGS: to_column(heading_lines(text)),
        ANCHORS: anchors_in(text),
        **{name: _features(name, found) for name, found in stems.items()},
    }
    words = PageWords(list(lines), set().union(*stems.values()), sections)
    return PageDocument(document, columns_of(lines), words)


_TEXTS = tuple[str, ...]
_ENTRY_TYPES = tuple(
    _TEXTS if kind == _TEXTS else kind for kind in DocumentEntry.__annotations__.values()
)


def entries_of(sources: Iterable[Mapping[str, Any]]) -> list[DocumentEntry]:
    """The entries of the documents of pages."""
    return _entries([json.loads(source["entry"]["fields"]) for source in sources])


def _entries(rows: Sequence[list[Any]]) -> list[DocumentEntry]:
    """Entries from plain lists. Each field is checked as a whole: one by one takes thrice as long.

    Raises:
        TypeError, ValueError: the lists are of another shape.
    """
    columns = list(zip(*rows, strict=True))
    if columns and len(columns) != len(_ENTRY_TYPES):
        raise TypeError("an entry is of another shape")
    return list(map(DocumentEntry, *map(_values, columns, _ENTRY_TYPES))) if columns else []


def _values(column: Sequence[Any], wanted: Any) -> Iterable[Any]:
    """One field of all entries as it was before it became JSON."""
    # Not isinstance: true and false are integers to it.
    kinds = set(map(type, column))
    if wanted is _TEXTS and kinds == {list} and _are_all(str, column):
        # Most pages share theirs with others.
        known: dict[tuple[str, ...], tuple[str, ...]] = {}
        return [known.setdefault(one, one) for one in map(tuple, column)]
    if wanted is Stamp and kinds == {list} and _are_all(int, column):
        return [Stamp(*one) for one in column]
    if kinds <= ({int, float, type(None)} if wanted == float | None else {wanted}):
        return column
    raise TypeError("an entry is of another shape")


def _are_all(kind: type, lists: Iterable[Iterable[Any]]) -> bool:
    return {kind}.issuperset(map(type, chain.from_iterable(lists)))


class PageRows(NamedTuple):
    """How many words each row of a page has: what every search needs of it."""

    lengths: bytes
    """An array as bytes."""
    headings: bytes
    """Those of its own heading; 0 where that is the title."""


def rows_of(source: Mapping[str, Any], rows: int) -> PageRows:
    """The rows of the document of a page.

    Raises:
        SageError: there are not as many as there should be.
    """
    lengths, headings = array("I", source["entry"]["lengths"]), source["entry"]["headings"]
    if len(lengths) != rows or len(headings) != rows:
        raise SageError(DAMAGED)
    return PageRows(lengths.tobytes(), bytes(headings))


class _Stems(dict[str, str]):
    """Stems by form: asked for every word of every page, for which a function is too slow."""

    def __missing__(self, form: str) -> str:
        if len(self) >= _MOST_FORMS:
            self.clear()
        stem = self[form] = stem_of(form)
        return stem


class _Buckets(dict[str, int]):
    """The numbers of buckets by form."""

    def __missing__(self, form: str) -> int:
        if len(self) >= _MOST_FORMS:
            self.clear()
        number = self[form] = BUCKET_FIELDS.index(bucket_of(form))
        return number


_STEMS, _BUCKETS = _Stems(), _Buckets()


def _stems(rows: Iterable[Row]) -> tuple[dict[str, list[str]], list[str]]:
    """The stems of a page, each as often as it occurs, and those of each section."""
    found: dict[str, list[str]] = {TITLE: [], FIELDS: [], TEXT: []}
    sections: list[str] = []
    for row in rows:
        section: set[str] = set()
        for name, forms in row.fields.items():
            stems = list(map(_STEMS.__getitem__, forms))
            target = found[_STEMS_OF.get(name, FIELDS)]
            target += stems
            if target is found[TEXT]:
                section.update(stems)
            for form, places in forms.items():
                if len(places) > 1:
                    target += [_STEMS[form]] * (min(len(places), MAX_POSITIONS) - 1)
        sections += section
    return found, sections


def _features(name: str, stems: Sequence[str]) -> dict[str, float]:
    """How much a page holds of each stem in a field, by the length that it has there."""
    norm = length_norm(len(stems)) if name == TEXT else 1.0
    counts = Counter(map(feature_of, stems))
    return {stem: round(count / norm, 4) for stem, count in counts.items() if stem}


def lines_of(rows: Sequence[Row]) -> dict[str, str]:
    """Where each form occurs: what follows it in its line, with a part for each field."""
    lines: dict[str, str] = {}
    for field, name in enumerate(ALL_FIELDS):
        parts: dict[str, str] = {}
        for number, row in enumerate(rows):
            if name in row.fields:
                _add_places(parts, f"\t{field}", number, row.fields[name])
        if len(lines) > len(parts):
            for form, part in parts.items():
                lines[form] = lines.get(form, "") + part
        else:
            for form, line in lines.items():
                parts[form] = line + parts.get(form, "")
            lines = parts
    return lines


def _add_places(parts: dict[str, str], start: str, row: int, positions: Positions) -> None:
    """Add where forms occur in one field of a row; their parts begin with `start`."""
    ready = _ready_places(row)
    for form, places in positions.items():
        first = places[0]
        if len(places) == 1 and first < _READY:  # as most words stand in a section
            shown = ready[first]
        else:
            kept = places[:MAX_POSITIONS]
            if kept[-1] > MAX_POSITION:
                kept = [min(place, MAX_POSITION) for place in kept]
            shown = f" {row}:{','.join(map(str, kept))}"
        parts[form] = parts.get(form, start) + shown


@lru_cache(maxsize=256)
def _ready_places(row: int) -> tuple[str, ...]:
    """How the first places of a row are written."""
    return tuple(f" {row}:{place}" for place in range(_READY))


def columns_of(lines: Mapping[str, str]) -> dict[str, str]:
    """The lines of a page in the buckets of their forms."""
    buckets = [""] * len(BUCKET_FIELDS)
    for form, line in lines.items():
        buckets[_BUCKETS[form]] += f"\n{form}{line}"
    return {
        name: to_column(f"{found}\n")
        for name, found in zip(BUCKET_FIELDS, buckets, strict=True)
        if found
    }


def to_column(text: str) -> str:
    """A text as a column takes it."""
    return bytes_to_column(text.encode("utf-8", "surrogatepass"))


def bytes_to_column(data: bytes) -> str:
    """Bytes as a column takes them: in base64."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def from_column(value: str) -> str:
    """The text that was put into a column.

    Raises:
        ValueError: it is something else.
    """
    return bytes_from_column(value).decode("utf-8", "surrogatepass")


def bytes_from_column(value: str) -> bytes:
    """The bytes that were put into a column.

    Raises:
        ValueError: it is something else.
    """
    # Some versions leave out the padding, and take letters that are safe in addresses. A search
    # reads hundreds of columns: b64decode goes through three functions for each.
    try:
        if "-" in value or "_" in value:
            value = value.replace("-", "+").replace("_", "/")
        return binascii.a2b_base64(f"{value}==")
    except TypeError as error:
        raise ValueError("it is no text") from error


def words_on(places: Iterable[str]) -> PageWords:
    """The words of a page, from the lines that say where they occur."""
    forms: set[str] = set()
    sections: dict[int, set[str]] = {}
    for line in filter(None, chain.from_iterable(text.split("\n") for text in places)):
        form, *parts = line.split("\t")
        forms.add(form)
        for field, *held in (part.split(" ") for part in parts):
            if int(field) in _IN_SECTIONS:
                for one in held:
                    row = int(one.partition(":")[0])
                    sections.setdefault(row, set()).add(stem_of(form))
    return PageWords(forms, set(map(stem_of, forms)), chain.from_iterable(sections.values()))


def occurrences(pages: Iterable[tuple[int, bytes]], form: str) -> dict[str, Postings]:
    """Where a form occurs on some pages, by field.

    Args:
        pages: for each, in order, its first row and the column that names the form.

    Raises:
        ValueError: a column is something else.
    """
    wanted = f"\n{form}\t".encode("utf-8", "surrogatepass")
    size = len(wanted)
    found: dict[str, list[tuple[int, str]]] = {}
    for first, column in pages:
        start = column.find(wanted)
        if start < 0:
            continue
        start += size
        for part in column[start : column.index(b"\n", start)].decode("ascii").split("\t"):
            if part[:1] in found:
                found[part[:1]].append((first, part[2:]))
            else:
                found[part[:1]] = [(first, part[2:])]
    return {ALL_FIELDS[int(field)]: _postings(held) for field, held in found.items()}


def _postings(held: Iterable[tuple[int, str]]) -> Postings:
    """Where a form occurs in one field, from the first row of each page and the rest of its part.

    Places are read all at once, without a loop of our own: most rows have a single one.
    """
    rows: list[int] = []
    texts: list[str] = []
    for first, part in held:
        for one in part.split(" "):
            row, text = one.split(":")
            rows.append(first + int(row))
            texts.append(text)
    places = array("H", map(int, ",".join(texts).split(",")))
    counts = bytes([text.count(",") + 1 for text in texts])
    return Postings(rows, counts, lambda start, stop: places[start:stop])


def put_lines(
    identifier: str, document: Mapping[str, Any], columns: Mapping[str, str] = _NONE
) -> bytes:
    """Writes a document.

    Args:
        columns: further fields, in base64: most of a page, and nothing in them needs an escape.
    """
    body = _encode(document).encode("utf-8", "replace").removesuffix(b"}")
    further = "".join([f', "{name}": "{value}"' for name, value in columns.items()])
    action = json.dumps({"index": {"_id": identifier}}).encode()
    return b"%b\n%b%b}\n" % (action, body, further.encode("ascii"))


def delete_lines(identifier: str) -> bytes:
    """Removes a document."""
    return json.dumps({"delete": {"_id": identifier}}).encode() + b"\n"


def document_in(lines: bytes) -> dict[str, Any]:
    """The document that lines write."""
    document: dict[str, Any] = json.loads(lines.split(b"\n", 2)[1])
    return document


def with_field(lines: bytes, name: str, value: str) -> bytes:
    """The lines of a document that has one field more."""
    return b"%b, %b: %b}\n" % (
        lines.removesuffix(b"}\n"),
        json.dumps(name).encode(),
        json.dumps(value).encode(),
    )
