"""From a document to what the index keeps of it: its entry, and a row for it and each section."""

from collections.abc import Callable, Collection

from sage.documents.boilerplate import Footers, ending_keys, footers_in, is_listing
from sage.documents.document import Document, Heading, Section, searched_length
from sage.documents.files import Stamp
from sage.documents.plain_text import Prose, section_prose
from sage.documents.topics import normalised, topic_parts
from sage.search.catalog import DocumentEntry
from sage.search.sections import SectionEntry, StoredDocument, heading_words, pack_record
from sage.terms.analysis import Analyzer
from sage.terms.postings import Positions, Row

CRUMB = " > "
MAX_SUMMARY = 2_000

CountTokens = Callable[[Document, int, int], int]
"""The tokens of a slice of a document's body."""
Described = tuple[DocumentEntry, list[Row]]
"""What the index keeps of one document: its entry and its rows."""


def describe(
    document: Document,
    stamp: Stamp,
    footers: Footers,
    analyzer: Analyzer,
    count_tokens: CountTokens,
) -> Described:
    """A document's entry and rows. Sections that only point elsewhere have none."""
    entries: list[SectionEntry] = []
    rows: list[Row] = []
    costs = ReadingCosts(document, count_tokens)
    endings = footers_in(document, footers)
    searched = document.body[: searched_length(document.body)]
    for ordinal, section in enumerate(document.sections):
        source = searched[section.start : section.end]
        if not source.strip() or is_listing(section.heading, source, section.level):
            continue
        prose = section_prose(source, section.level, endings)
        row = _section_row(section, prose, analyzer)
        if row.length:
            said = analyzer.content_length(section.heading)
            text = _without_footer(source, endings)
            one = _section_entry(document, ordinal, costs, row.length, said, text)
            entries.append(one)
            rows.append(Row(row.fields, row.length, heading=heading_words(one)))
    fields, lengths = _document_fields(document, analyzer)
    stored = StoredDocument(
        document.summary[:MAX_SUMMARY],
        tuple(entries),
        tuple(map(_heading, document.sections)),
        document.sections[-1].end_line,
        document.body,
    )
    entry = DocumentEntry(
        path=document.path,
        layer=document.layer,
        source=document.source,
        topic=document.topic,
        id=document.meta.id,
        title=document.title,
        summary=document.summary[:MAX_SUMMARY],
        stamp=stamp,
        tags=tuple(tag.casefold() for tag in document.meta.tags),
        aliases=document.meta.names,
        languages=document.meta.languages,
        task_types=document.meta.task_types,
        applies_to=document.meta.applies_to,
        type=document.meta.type,
        status=document.meta.status,
        superseded_by=document.meta.superseded_by,
        priority=document.meta.priority,
        order=document.meta.order,
        last_updated=document.meta.last_updated,
        is_index=document.is_index,
        title_length=lengths["title"],
        path_length=lengths["path"],
        last_lines=ending_keys(document.body),
        section_total=len(document.sections),
        tokens=costs.whole,
        length=sum(section.length for section in entries),
        indexed_sections=len(entries),
        problems=tuple(problem.on_page for problem in document.problems),
    )
    return entry, [Row(fields, 0, pack_record(stored)), *rows]


def _heading(section: Section) -> Heading:
    return Heading(
        section.heading, section.level, section.anchor, section.start_line, section.start
    )


class ReadingCosts:
    """The tokens of what is read of a document, each slice of it counted once.

    Sections begin with their heading's line, where no token reaches across; only the blanks at
    the end of what is read have to be taken off.
    """

    def __init__(self, document: Document, count_tokens: CountTokens) -> None:
        self._document = document
        self._count = count_tokens
        self._own = [count_tokens(document, one.start, one.end) for one in document.sections]

    @property
    def whole(self) -> int:
        """The tokens of all of it."""
        return self._between(0, len(self._own)) if self._own else 0

    def below(self, ordinal: int) -> int:
        """The tokens of a section and everything below its heading."""
        return self._between(ordinal, self._document.reach(ordinal))

    def _between(self, first: int, end: int) -> int:
        sections = self._document.sections
        start, stop = sections[first].start, sections[end - 1].end
        return sum(self._own[first:end]) - self._blanks(start, stop)

    def _blanks(self, start: int, stop: int) -> int:
        """The tokens that go with the blanks around a slice."""
        body = self._document.body
        text = body[start:stop]
        bare = text.strip()
        if not bare:
            return self._count(self._document, start, stop)
        first = start + text.find(bare)
        before = self._count(self._document, start, first) if first > start else 0
        last = first + len(bare)
        if last == stop:
            return before
        count, near = self._count, _last_word(body, first, last)
        return before + count(self._document, near, stop) - count(self._document, near, last)


def _last_word(body: str, start: int, end: int) -> int:
    """Where the last word of a slice begins, or its last line: no token reaches across."""
    line = body.rfind("\n", start, end) + 1 or start
    blank = body.rfind(" ", line + 1, end)
    before = body[blank - 1 : blank]
    return blank if blank > 0 and before.isascii() and before.isalnum() else line


def _document_fields(
    document: Document, analyzer: Analyzer
) -> tuple[dict[str, Positions], dict[str, int]]:
    texts = {
        "title": document.title,
        "aliases": "\n".join(_other_names(document)),
        "tags": "\n".join(document.meta.tags),
        "summary": document.summary[:MAX_SUMMARY],
        "path": document.topic.partition("/")[2],
    }
    lengths: dict[str, int] = {}
    fields: dict[str, Positions] = {}
    for name, text in texts.items():
        places, lengths[name] = analyzer.places(text)
        if places:
            fields[name] = places
    return fields, lengths


def _other_names(document: Document) -> list[str]:
    """The names of a page that say more than its title and its path do."""
    said = {normalised(document.title), *topic_parts(document.topic)[-1:]}
    return [name for name in document.meta.names if normalised(name) not in said]


def _section_row(section: Section, prose: Prose, analyzer: Analyzer) -> Row:
    fields: dict[str, Positions] = {}
    length = 0
    texts = (("headings", section.heading), ("body", prose.text), ("code", prose.code))
    for name, text in texts:
        places, words = analyzer.places(text)
        if places:
            fields[name] = places
        length += words
    return Row(fields, length)


def _without_footer(source: str, endings: Collection[str]) -> str:
    """A section as it is written, without the last lines that most documents share."""
    if not endings:
        return source.rstrip()
    lines = source.rstrip().split("\n")
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].strip() in endings):
        lines.pop()
    return "\n".join(lines)


def _section_entry(
    document: Document,
    ordinal: int,
    costs: ReadingCosts,
    length: int,
    heading_length: int,
    text: str,
) -> SectionEntry:
    section = document.sections[ordinal]
    return SectionEntry(
        ordinal=ordinal,
        heading=CRUMB.join(section.breadcrumb),
        anchor=section.anchor if section.level > 1 else "",
        start_line=section.start_line,
        end_line=section.end_line,
        last_line=document.sections[document.reach(ordinal) - 1].end_line,
        tokens=costs.below(ordinal),
        length=length,
        heading_length=heading_length,
        text=text,
    )
