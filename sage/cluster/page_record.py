"""One page as the cluster keeps it: stems to find it by, and what is needed to rank and show it.

The places of words are lines of text, so that the few words of a query are found in them without
taking apart all others.
"""

import base64
import binascii
import hashlib
import json
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple

from sage.cluster.schema import FIELDS, PAGE, TEXT, TITLE, bucket_of
from sage.documents.files import Stamp
from sage.errors import SageError
from sage.search.catalog import DocumentEntry, entries_from_json
from sage.search.index import FORMAT
from sage.search.indexing import Described
from sage.search.postings import FIELDS as ALL_FIELDS
from sage.search.postings import (
    MAX_POSITION,
    MAX_POSITIONS,
    SECTION_FIELDS,
    GatheredTerm,
    Postings,
    Row,
)
from sage.search.vocabulary import stem_of

DAMAGED = "a page in the cluster is damaged; publish again"
_LONG_HEADING = 255
_NUMBERS = {name: number for number, name in enumerate(ALL_FIELDS)}
_STEMS_OF = {"title": TITLE, "aliases": TITLE, **dict.fromkeys(SECTION_FIELDS, TEXT)}
_IN_SECTIONS = frozenset(_NUMBERS[name] for name in SECTION_FIELDS)


def content_stamp(data: bytes) -> Stamp:
    """A stamp that changes with the text and with nothing else."""
    digest = hashlib.blake2b(data, digest_size=7).digest()
    return Stamp(0, len(data), int.from_bytes(digest, "big"), 0)


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


def to_document(described: Described, text: str, hashed: str, generation: int) -> dict[str, Any]:
    """The document of a page."""
    entry, rows = described
    return {
        "kind": PAGE,
        "path": entry.path,
        "layer": entry.layer,
        "source": entry.source,
        "type": entry.type,
        "status": entry.status,
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
        **_stems(rows),
        **places_of(rows),
    }


def entries_of(sources: Iterable[Mapping[str, Any]]) -> list[DocumentEntry]:
    """The entries of the documents of pages."""
    return entries_from_json([json.loads(source["entry"]["fields"]) for source in sources])


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


def _stems(rows: Iterable[Row]) -> dict[str, str]:
    """The stems of a page, each as often as it occurs."""
    found: dict[str, list[str]] = {TITLE: [], FIELDS: [], TEXT: []}
    for row in rows:
        for name, forms in row.fields.items():
            target = found[_STEMS_OF.get(name, FIELDS)]
            for form, places in forms.items():
                if len(places) == 1:
                    target.append(stem_of(form))
                else:
                    target += [stem_of(form)] * min(len(places), MAX_POSITIONS)
    return {name: " ".join(stems) for name, stems in found.items()}


def places_of(rows: Sequence[Row]) -> dict[str, str]:
    """Where each form occurs: a line for each, with a part for each field."""
    lines: dict[str, str] = {}
    for name in ALL_FIELDS:
        held: dict[str, list[str]] = {}
        for number, row in enumerate(rows):
            for form, places in row.fields.get(name, {}).items():
                # Most words stand once in a section, and in one section.
                if len(places) == 1 and places[0] <= MAX_POSITION:
                    shown = f"{number}:{places[0]}"
                else:
                    kept = (str(min(place, MAX_POSITION)) for place in places[:MAX_POSITIONS])
                    shown = f"{number}:{','.join(kept)}"
                if form in held:
                    held[form].append(shown)
                else:
                    held[form] = [shown]
        start = f"\t{_NUMBERS[name]} "
        for form, parts in held.items():
            line = start + (" ".join(parts) if len(parts) > 1 else parts[0])
            lines[form] = lines.get(form, form) + line
    buckets: dict[str, list[str]] = {}
    for form, line in lines.items():
        buckets.setdefault(bucket_of(form), [""]).append(line)
    return {name: to_column("\n".join(found) + "\n") for name, found in buckets.items()}


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
    if "-" in value or "_" in value:
        value = value.replace("-", "+").replace("_", "/")
    return binascii.a2b_base64(f"{value}==")


class PageWords(NamedTuple):
    """The words of a page."""

    forms: AbstractSet[str]
    sections: Collection[AbstractSet[str]]
    """The stems of each section."""

    @property
    def stems(self) -> set[str]:
        """Those of all its forms."""
        return set(map(stem_of, self.forms))


def words_of(rows: Iterable[Row]) -> PageWords:
    """The words of a page that is described."""
    forms: set[str] = set()
    sections: list[set[str]] = []
    for row in rows:
        forms.update(*row.fields.values())
        held = [row.fields[name] for name in SECTION_FIELDS if name in row.fields]
        sections.append(set(map(stem_of, chain.from_iterable(held))))
    return PageWords(forms, sections)


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
    return PageWords(forms, sections.values())


def occurrences(pages: Iterable[tuple[int, bytes]], form: str) -> dict[str, Postings]:
    """Where a form occurs on some pages, by field.

    Args:
        pages: for each, in order, its first row and the column that names the form.

    Raises:
        ValueError: a column is something else.
    """
    wanted = f"\n{form}\t".encode("utf-8", "surrogatepass")
    size = len(wanted)
    found: dict[str, GatheredTerm] = {}
    for first, column in pages:
        start = column.find(wanted)
        if start < 0:
            continue
        start += size
        for part in column[start : column.index(b"\n", start)].decode("ascii").split("\t"):
            field, *rows = part.split(" ")
            term = found.get(field)
            if term is None:
                term = found[field] = GatheredTerm()
            for row, _, places in [one.partition(":") for one in rows]:
                term.rows.append(first + int(row))
                if "," in places:
                    several = places.split(",")
                    term.counts.append(len(several))
                    term.places.extend(map(int, several))
                else:
                    term.counts.append(1)
                    term.places.append(int(places))
    return {ALL_FIELDS[int(field)]: _postings(term) for field, term in found.items()}


def _postings(term: GatheredTerm) -> Postings:
    places = term.places
    return Postings(term.rows, bytes(term.counts), lambda start, stop: places[start:stop])
