"""From a document to what the index keeps of it: its card, and a row for it and each section."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from sage.analysis import Analyzer
from sage.catalog import Card, SectionCard
from sage.documents import Document, Section, searched_length
from sage.files import Stamp
from sage.postings import Row
from sage.prose import Prose, is_footer, is_listing, last_lines, section_prose

CRUMB = " > "
MAX_SUMMARY = 2_000

CountTokens = Callable[[Document, int, int], int]


def describe(
    document: Document,
    stamp: Stamp,
    footers: frozenset[str],
    analyzer: Analyzer,
    count_tokens: CountTokens,
) -> tuple[Card, list[Row]]:
    """A document's card and rows. Sections that only point elsewhere have none."""
    cards: list[SectionCard] = []
    rows: list[Row] = []
    total = 0
    endings = {line for line in last_lines(document.body) if line_key(line) in footers}
    searched = document.body[: searched_length(document.body)]
    for ordinal, section in enumerate(document.sections):
        source = searched[section.start : section.end]
        tokens = count_tokens(document, section.start, section.end)
        total += tokens
        if not source.strip() or is_listing(section.heading, source, section.level):
            continue
        prose = section_prose(source, section.level, frozenset(endings))
        row, length = _section_row(section, prose, analyzer)
        if length:
            rows.append(row)
            cards.append(_section_card(ordinal, section, tokens, length))
    about, lengths = _document_row(document, analyzer)
    card = Card(
        path=document.path,
        layer=document.layer,
        topic=document.topic,
        title=document.title,
        summary=document.summary[:MAX_SUMMARY],
        stamp=stamp,
        tags=tuple(tag.casefold() for tag in document.meta.tags),
        languages=document.meta.languages,
        type=document.meta.type,
        status=document.meta.status,
        is_index=document.is_index,
        title_length=lengths["title"],
        path_length=lengths["path"],
        last_lines=ending(document),
        section_total=len(document.sections),
        tokens=total,
        length=sum(section.length for section in cards),
        sections=tuple(cards),
    )
    return card, [about, *rows]


def find_footers(endings: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """The keys of last lines that most documents share."""
    counts: Counter[str] = Counter()
    documents = 0
    for keys in endings:
        documents += 1
        counts.update(set(keys))
    return frozenset(key for key, count in counts.items() if is_footer(count, documents))


def ending(document: Document) -> tuple[str, ...]:
    """The keys of a document's last lines."""
    return tuple(map(line_key, last_lines(document.body)))


def line_key(line: str) -> str:
    """A short name for a line, the same in every process."""
    return hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _document_row(document: Document, analyzer: Analyzer) -> tuple[Row, dict[str, int]]:
    texts = {
        "title": document.title,
        "aliases": "\n".join(document.meta.aliases),
        "tags": "\n".join(document.meta.tags),
        "summary": document.summary[:MAX_SUMMARY],
        "path": document.topic.partition("/")[2],
    }
    lengths: dict[str, int] = {}
    fields: dict[str, dict[str, list[int]]] = {}
    for name, text in texts.items():
        terms, lengths[name] = analyzer.terms(text)
        if terms:
            fields[name] = _gathered(terms)
    return Row(fields, ""), lengths


def _section_row(section: Section, prose: Prose, analyzer: Analyzer) -> tuple[Row, int]:
    fields: dict[str, dict[str, list[int]]] = {}
    length = 0
    texts = (("headings", section.heading), ("body", prose.text), ("code", prose.code))
    for name, text in texts:
        terms, words = analyzer.terms(text)
        if terms:
            fields[name] = _gathered(terms)
        length += words
    return Row(fields, prose.whole), length


def _gathered(terms: list[tuple[str, int]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for form, position in terms:
        known = places.get(form)
        if known is None:
            places[form] = [position]
        else:
            known.append(position)
    return places


def _section_card(ordinal: int, section: Section, tokens: int, length: int) -> SectionCard:
    return SectionCard(
        ordinal=ordinal,
        heading=CRUMB.join(section.breadcrumb),
        anchor=section.anchor if section.level > 1 else "",
        start_line=section.start_line,
        end_line=section.end_line,
        tokens=tokens,
        length=length,
    )
