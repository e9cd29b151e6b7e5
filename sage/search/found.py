"""What a search found: each section with what an answer can show of it, and which part of all."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sage.documents.document import Page
from sage.documents.plain_text import section_prose
from sage.documents.site_markup import as_shown
from sage.documents.slices import mark_above, status_notice
from sage.sanitize import clean
from sage.search.analysis import JOIN, folded, is_cjk
from sage.search.catalog import (
    Catalog,
    DocumentEntry,
    SectionEntry,
    StoredDocument,
    page_of,
    unpack_record,
)
from sage.search.index_file import DAMAGED, UntrustedIndex
from sage.search.query import NO_FILTERS, Filters, IndexReader
from sage.search.ranking import Ranked, Ranker, ReadDocuments
from sage.search.scoring import heading_words, shown_score
from sage.search.verdict import Verdict
from sage.search.vocabulary import Concept
from sage.values import DATE, RELEVANCE

PLAIN_TYPES = ("", "guide", "reference")
"""What a page is unless it says otherwise: not worth a word in an answer."""
_SAME = 0.75
"""The share of their words that two pages of one title have in common when one is a copy or
another version of the other."""
_LONG_COPY = 200
"""Characters of a section that no two pages have in common by chance."""
_MAX_DOCUMENTS = 50
"""Documents kept unpacked: the results of one search."""
_SECOND_SECTIONS = 1
"""The first so many documents may show a second section."""
_WORD = re.compile(r"\w+")


class Highlights(NamedTuple):
    """What was looked for: for each form its concept, and how rare each concept is."""

    owners: Mapping[str, int]
    rarities: Sequence[float]


@dataclass(slots=True)
class FoundSection:
    """A section of a document that was found, or a document without any."""

    entry: DocumentEntry
    section: SectionEntry | None
    score: float
    summary: str
    """What the document says of itself."""
    replaced_by: str
    """The topic of the page that is in force in its place."""
    highlights: Highlights
    copies: int = field(default=0)
    """How many other pages say the same."""
    by_meaning: bool = field(default=False)
    """Whether no word of the query led to it."""

    @property
    def text(self) -> str:
        """The section as it is written, its heading included."""
        return self.section.text if self.section else ""

    @property
    def path(self) -> str:
        """The file."""
        return self.entry.path

    @property
    def title(self) -> str:
        """The document's."""
        return self.entry.title

    @property
    def heading(self) -> str:
        """The breadcrumb, outermost first."""
        return self.section.heading if self.section else ""

    @property
    def topic(self) -> str:
        """What to read next."""
        anchor = self.section.anchor if self.section else ""
        return f"{self.entry.topic}#{anchor}" if anchor else self.entry.topic

    @property
    def lines(self) -> list[int]:
        """Its first and last line in the file."""
        return [self.section.start_line, self.section.end_line] if self.section else [1, 1]

    @property
    def tokens(self) -> int:
        """Those of what its topic reads, without the line above it."""
        return self.section.tokens if self.section and self.section.anchor else self.entry.tokens

    @property
    def mark(self) -> str:
        """The lines above what its topic reads."""
        part = self.section if self.section and self.section.anchor else None
        lines = (part.start_line, part.last_line) if part else None
        replaced_by = self.replaced_by or self.entry.superseded_by
        return mark_above(self.entry.path, lines, status_notice(self.entry.status, replaced_by))

    def shown(self) -> str:
        """The section as a reader of the site sees it."""
        return clean(as_shown(self.text)).strip("\n")

    def sentences(self) -> str:
        """The sentences around the best match, as plain text."""
        instead = self.summary or self.entry.title
        if self.section is None:
            return shortened(instead)
        text = section_prose(self.text, 1 if self.section.heading else 0).whole
        return snippet(text, self.highlights.owners, self.highlights.rarities, instead)

    def says_the_same(self, other: "FoundSection") -> bool:
        """Whether another page is a copy of this one, or this one in another version."""
        if self.entry.path == other.entry.path or not self.text:
            return False
        if self.entry.title.casefold() != other.entry.title.casefold():
            return len(self.text) >= _LONG_COPY and self.text == other.text
        mine, theirs = set(_WORD.findall(self.text)), set(_WORD.findall(other.text))
        return len(mine & theirs) >= _SAME * len(mine | theirs)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    sections: list[FoundSection]
    total: int
    verdict: Verdict
    missing: tuple[str, ...] = ()
    """What was asked for and no document holds."""
    note: str = ""
    complete: bool = True
    paged: bool = False
    """Whether a part of a list was asked for rather than the best answers."""
    offset: int = 0
    more: bool = False
    """Whether others follow the sections."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What is asked of a search beside its words: which part of all that match, and of which."""

    limit: int
    offset: int = 0
    sort: str = RELEVANCE
    layers: Collection[str] | None = None
    """None means every layer that may be seen."""
    filters: Filters = NO_FILTERS

    @property
    def end(self) -> int:
        """The place behind the last one wanted."""
        return self.offset + self.limit

    @property
    def is_part(self) -> bool:
        """Whether more is asked for than the best answers."""
        return self.offset > 0 or self.sort != RELEVANCE


class IndexedDocuments:
    """What is kept of the documents of one generation; those last asked for are unpacked."""

    def __init__(self, catalog: Catalog, reader: IndexReader) -> None:
        self._catalog = catalog
        self._reader = reader
        self._unpacked: dict[int, StoredDocument] = {}

    def fetch(self, slots: Iterable[int]) -> None:
        """Have what is shown of some documents at hand, where they are not."""
        firsts = self._catalog.first_rows
        self._reader.fetch([firsts[slot] for slot in slots if slot not in self._unpacked])

    def document(self, slot: int) -> StoredDocument:
        """What is shown of a document, and its indexed sections."""
        known = self._unpacked.get(slot)
        if known is None:
            known = self.read(slot)
            if len(self._unpacked) >= _MAX_DOCUMENTS:
                self._unpacked = {}
            self._unpacked[slot] = known
        return known

    def heading_lengths(self, rows: Sequence[int], first: Iterable[int]) -> list[int]:
        """The words of the headings of some sections; 0 where that is the title."""
        known, owners, firsts = (
            self._reader.headings,
            self._catalog.owners,
            self._catalog.first_rows,
        )
        if known is not None:
            return [known[row] for row in rows]
        self.fetch([*(owners[row] for row in rows), *first])
        places = ((owners[row], row - firsts[owners[row]] - 1) for row in rows)
        return [heading_words(self.document(slot).sections[place]) for slot, place in places]

    def page(self, path: str) -> Page:
        """A page as it was indexed.

        Raises:
            KeyError: it was not.
        """
        slot = self._catalog.places[path]
        return page_of(self._catalog.slots[slot], self.document(slot))

    def read(self, slot: int) -> StoredDocument:
        """The same, read from the index each time: for those who go through all documents."""
        stored = unpack_record(self._reader.record(self._catalog.first_rows[slot]))
        if len(stored.sections) != self._catalog.slots[slot].indexed_sections:
            raise UntrustedIndex(DAMAGED)
        return stored


class FoundSections:
    """Makes found sections of what was ranked in one generation of the index."""

    def __init__(self, ranker: Ranker, documents: ReadDocuments) -> None:
        self._ranker = ranker
        self._catalog = ranker.catalog
        self._documents = documents

    def best(
        self,
        ranked: Sequence[Ranked],
        highlights: Highlights,
        possible: float,
        limit: int,
        alone: Collection[int] = (),
    ) -> list[FoundSection]:
        """The best sections in order: a page's second one after its first, copies as one.

        Args:
            possible: the strength of a document that holds all that was asked for.
            alone: the slots that no word of the query led to.
        """
        found: list[FoundSection] = []
        order = self._in_force(ranked)
        self._documents.fetch(one.slot for one in order[:limit])
        for place, one in enumerate(order):
            score = shown_score(one.strength, possible)
            section = self.one(one.slot, one.section, score, highlights)
            section.by_meaning = one.slot in alone
            same = next((other for other in found if other.says_the_same(section)), None)
            if same is not None:
                same.copies += 1
                continue
            found.append(section)
            if one.second >= 0 and place < _SECOND_SECTIONS:
                found.append(self.one(one.slot, one.second, score, highlights))
            if len(found) >= limit:
                break
        return found[:limit]

    def one(self, slot: int, place: int, score: float, highlights: Highlights) -> FoundSection:
        """A section of a document; the document itself where the place is -1."""
        stored = self._documents.document(slot)
        section = stored.sections[place] if place >= 0 else None
        successor = self._catalog.successors.get(slot)
        replaced_by = self._catalog.slots[successor].topic if successor is not None else ""
        entry = self._catalog.slots[slot]
        return FoundSection(entry, section, score, stored.summary, replaced_by, highlights)

    def highlights(self, concepts: Sequence[Concept]) -> Highlights:
        """What sections are looked through for."""
        return Highlights(
            owners_of([[form for form, _ in concept.forms] for concept in concepts]),
            [self._ranker.matches(concept).rarity for concept in concepts],
        )

    def sort(self, slots: list[int], order: str) -> None:
        """By path, and by date with the newest first."""
        entries = self._catalog.slots
        slots.sort(key=lambda slot: entries[slot].path)
        if order == DATE:
            slots.sort(key=lambda slot: entries[slot].updated, reverse=True)

    def _in_force(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """The ranked documents, each page that was replaced behind the one that replaces it."""
        order = list(ranked)
        for one in ranked if self._catalog.successors else ():
            slots = [other.slot for other in order]
            here, successor = slots.index(one.slot), self._catalog.successors.get(one.slot)
            if successor in slots[here:]:
                newer = order.pop(slots.index(successor))
                order.insert(here, newer._replace(strength=order[here].strength))
        return order


MAX_SNIPPET = 300
_MAX_TEXT = 60_000
_MAX_MATCHES = 300
_WIDE = 240
_AGAIN = 0.05
"""What a second occurrence of the same word adds."""
_END = re.compile(r"[.!?](?=[\s\"')\]]|$)|[。！？；]|\n")
_BLANK = re.compile(r"\s+")
_ELLIPSIS = " …"


class Match(NamedTuple):
    """A matching word in a text: where it is and which concept it is of."""

    start: int
    end: int
    concept: int


def owners_of(concepts: Sequence[Iterable[str]]) -> dict[str, int]:
    """For each form the concept it is of."""
    owners: dict[str, int] = {}
    for number, forms in enumerate(concepts):
        for form in forms:
            owners.setdefault(form.removesuffix(JOIN), number)
    return owners


def find(text: str, owners: Mapping[str, int]) -> list[Match]:
    """The matching words in a text that is folded and in lower case."""
    found: list[Match] = []
    for form, concept in owners.items():
        # One fast scan a form: looking at every word of the text took five times as long.
        at = text.find(form)
        size = len(form)
        whole = not is_cjk(form)
        while at >= 0:
            end = at + size
            if not (whole and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())):
                found.append(Match(at, end, concept))
            at = text.find(form, end)
        if len(found) > _MAX_MATCHES:
            break
    found.sort()
    return found


def snippet(
    text: str, owners: Mapping[str, int], rarities: Sequence[float], instead: str = ""
) -> str:
    """At most 300 characters of a text: whole sentences where they fit around the best match."""
    text = text[:_MAX_TEXT]
    if not text.strip():
        return shortened(instead)
    searched = folded(text).lower()
    # Folding may change lengths (one sign for two letters): then words are sought as written.
    matches = find(searched if len(searched) == len(text) else text, owners)
    start, end = _densest(matches, rarities) if matches else (0, 1)
    return _cut(text, start, end)


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    line = _BLANK.sub(" ", text).strip()
    if len(line) <= MAX_SNIPPET:
        return line
    return line[: MAX_SNIPPET - len(_ELLIPSIS)].rsplit(" ", 1)[0] + _ELLIPSIS


def _densest(matches: Sequence[Match], rarities: Sequence[float]) -> tuple[int, int]:
    """The stretch that holds the most of what is rare."""
    best, place = 0.0, (0, 1)
    held = [0] * len(rarities)
    score = 0.0
    last = 0
    for match in matches:
        while last < len(matches) and matches[last].end - match.start <= _WIDE:
            concept = matches[last].concept
            score += rarities[concept] * (1.0 if not held[concept] else _AGAIN)
            held[concept] += 1
            last += 1
        if score > best + 1e-9:
            best, place = score, (match.start, matches[last - 1].end)
        held[match.concept] -= 1
        score -= rarities[match.concept] * (1.0 if not held[match.concept] else _AGAIN)
    return place


def _cut(text: str, start: int, end: int) -> str:
    """Widen a stretch to sentences, then trim it to what may be shown."""
    begin = _sentence_start(text, start)
    if end - begin > MAX_SNIPPET:
        begin = _word_start(text, max(begin, start - 40))
    stop = _sentence_end(text, end, begin + MAX_SNIPPET)
    shown = _BLANK.sub(" ", text[begin:stop]).strip(" |")
    before = "… " if begin and not _ends_sentence(text, begin) else ""
    after = _ELLIPSIS if stop < len(text) and not _ends_sentence(text, stop) else ""
    room = MAX_SNIPPET - len(before) - len(after)
    if len(shown) > room:
        shown, after = shown[: room - 2], _ELLIPSIS
        shown = shown.rsplit(" ", 1)[0] if " " in shown[room // 2 :] else shown
    return before + shown.rstrip() + after


def _sentence_start(text: str, at: int) -> int:
    begin = max(0, at - MAX_SNIPPET)
    ends = [match.end() for match in _END.finditer(text, begin, at)]
    if ends:
        return ends[-1]
    return begin and _word_start(text, max(begin, at - 40))


def _sentence_end(text: str, at: int, most: int) -> int:
    """The end of the last sentence that still fits, or the last word."""
    if most >= len(text):
        return len(text)
    stop = most
    for match in _END.finditer(text, max(at - 1, 0), most):
        stop = match.end()
    return stop


def _word_start(text: str, at: int) -> int:
    space = text.find(" ", at, at + 40)
    return space + 1 if space >= 0 else at


def _ends_sentence(text: str, at: int) -> bool:
    return bool(_END.match(text, at - 1)) or text[at - 1 : at] == "\n"
