"""Rules about pages: front matter, titles, headings, size, names, layers, replacements."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields

from sage.check.pages import Base, CheckedPage
from sage.check.rules import (
    CASE_COLLISION,
    DUPLICATE_HEADING,
    DUPLICATE_TITLE,
    DUPLICATE_TOPIC,
    EMPTY_LAYER,
    FRONT_MATTER,
    LARGE_PAGE,
    LARGE_SECTION,
    NO_LAYER,
    NO_SUMMARY,
    NO_TITLE,
    SUPERSEDED,
    UNKNOWN_KEY,
    UNKNOWN_LANGUAGE,
)
from sage.context.recipes import task_types
from sage.documents.document import Document
from sage.documents.front_matter import FrontMatter
from sage.documents.languages import ANY_LANGUAGE, is_known, known_languages
from sage.documents.problems import Level, Problem
from sage.documents.topics import normalised, successors, topic_parts
from sage.errors import did_you_mean
from sage.paths import KNOWLEDGE_DIR
from sage.settings import CheckSettings
from sage.terms.spelling import distance
from sage.token_counter import TokenCounter
from sage.values import shown

IGNORE_KEY = "sage_ignore"
# Of 206 sections measured none had more tokens than this for each of these pieces; to load the
# vocabulary for an exact count takes a quarter of the time of a whole check.
_MOST_PER_PIECE = 1.5
_PIECE = re.compile(r"[A-Za-z]{1,12}|[0-9]{1,3}|[-=*_#.~]{2,16}|[^\sA-Za-z0-9]")
_OTHER_KEYS = (
    "description", "language", "resolution", "resolved_on", IGNORE_KEY,
    "alwaysApply", "inclusion", "name",
)  # fmt: skip


def check_front_matter(page: CheckedPage, base: Base) -> Iterator[Problem]:
    """Keys that nothing reads, and task types that do not exist."""
    meta = page.document.meta
    known = [field.name for field in fields(FrontMatter) if field.name != "extra"]
    for key in meta.extra:
        if key in _OTHER_KEYS:
            continue
        # One letter off is a slip; other keys have their own purpose in some other program.
        meant = next((name for name in known if distance(key.lower(), name, 1) == 1), "")
        close = f"; did you mean {meant}?" if meant else ""
        message = f"front matter: {key} is not read{close}"
        level: Level = "warning" if meant else "note"
        yield UNKNOWN_KEY.problem(page.path, message, key_line(page, key), level)
    for word in meta.languages:
        if word not in ANY_LANGUAGE and not is_known(word):
            close = did_you_mean(word, known_languages())
            message = f"front matter: {shown(word)} is not a language that SAGE knows{close}"
            yield UNKNOWN_LANGUAGE.problem(page.path, message, key_line(page, "language"))
    types = task_types(base.settings)
    for word in meta.task_types:
        if word not in types:
            message = f"front matter: task_types: {word} is not one of {', '.join(types)}"
            yield FRONT_MATTER.problem(page.path, message, key_line(page, "task_types"))


def check_title(page: CheckedPage, _: Base) -> Iterator[Problem]:
    """Pages that do not say what they are called and about."""
    document = page.document
    if not document.meta.title and not any(s.level == 1 and s.heading for s in document.sections):
        yield NO_TITLE.problem(page.path, f"no title; it is called {document.title!r}", 1)
    if not document.summary:
        yield NO_SUMMARY.problem(page.path, "no summary and no first paragraph", 1)


def check_headings(page: CheckedPage, _: Base) -> Iterator[Problem]:
    """Headings that appear twice below the same heading."""
    seen: dict[tuple[str, ...], int] = {}
    for section in page.document.sections:
        if not section.heading:
            continue
        first = seen.setdefault(section.breadcrumb, section.start_line)
        if first != section.start_line:
            message = f"{section.heading!r} is already on line {first}"
            yield DUPLICATE_HEADING.problem(page.path, message, section.start_line)


def check_sizes(
    page: CheckedPage, counter: TokenCounter, wanted: CheckSettings
) -> Iterator[Problem]:
    """Pages and sections that no answer can hold whole."""
    document = page.document
    if (
        tokens := _over(counter, document, 0, len(document.body), wanted.max_page_tokens)
    ) is not None:
        message = f"{tokens:,} tokens; an answer holds {wanted.max_page_tokens:,}"
        yield LARGE_PAGE.problem(page.path, message, 1)
    for section in document.sections:
        tokens = _over(counter, document, section.start, section.end, wanted.max_section_tokens)
        if tokens is not None:
            name = section.heading or "the text before the first heading"
            message = f"{name!r} has {tokens:,} tokens, more than {wanted.max_section_tokens:,}"
            yield LARGE_SECTION.problem(page.path, message, section.start_line)


def check_names(base: Base) -> Iterator[Problem]:
    """Pages that cannot be told apart by name."""
    by_topic: dict[tuple[str, ...], list[Document]] = defaultdict(list)
    by_title: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for page in base.pages:
        document = page.document
        by_topic[tuple(topic_parts(document.topic))].append(document)
        if not document.is_index:
            by_title[document.layer, normalised(document.title)].append(document)
    for first, other in _pairs(by_topic.values()):
        exact = first.topic == other.topic
        if exact or _flat(first.path) != _flat(other.path):
            message = f"the topic {other.topic} also means {first.path}"
            yield DUPLICATE_TOPIC.problem(other.path, message, 1, None if exact else "warning")
    for first, other in _pairs(by_title.values()):
        message = f"the title {other.title!r} is also that of {first.path}"
        yield DUPLICATE_TITLE.problem(other.path, message, 1)


def check_case(base: Base) -> Iterator[Problem]:
    """Files and folders that a Mac or Windows takes for one."""
    spelled: dict[str, str] = {}
    for page in base.pages:
        parts = page.path.split("/")
        for depth in range(2, len(parts) + 1):
            path = "/".join(parts[:depth])
            known = spelled.setdefault(_flat(path), path)
            if known != path:
                message = f"{path} and {known} are one name where case does not count"
                yield CASE_COLLISION.problem(page.path, message, 1)
                break


def check_layers(base: Base) -> Iterator[Problem]:
    """Pages beside the layers."""
    layers = base.settings.repository_layers
    for path, pages in base.outside:
        name = path.rpartition("/")[2]
        close = did_you_mean(name.casefold(), layers) if pages else ""
        what = f"{pages} pages are" if pages > 1 else "1 page is" if pages else "the page is"
        yield NO_LAYER.problem(path, f"{what} in no layer{close}")


def check_empty(base: Base) -> Iterator[Problem]:
    """Layers in which nothing can be read."""
    filled = {page.document.layer for page in base.pages}
    for layer in base.settings.repository_layers:
        folder = base.settings.knowledge_dir / layer
        if layer not in filled and (layer in base.settings.layer_paths or folder.is_dir()):
            path = f"{KNOWLEDGE_DIR}/{layer}"
            yield EMPTY_LAYER.problem(path, f"the layer {layer} has no page")


def check_superseded(base: Base) -> Iterator[Problem]:
    """Replaced pages that lead to no other."""
    in_force = successors([page.document for page in base.pages])
    for page in base.pages:
        meta = page.document.meta
        line = key_line(page, "superseded_by" if meta.superseded_by else "status")
        if meta.superseded_by and page.path not in in_force:
            if base.hidden:
                continue  # it may be a page that whoever asks may not know of
            message = f"superseded_by: no other page is called {meta.superseded_by!r}"
            yield SUPERSEDED.problem(page.path, message, line)
        elif meta.status == "superseded" and not meta.superseded_by:
            message = "status is superseded, but superseded_by names no page"
            yield SUPERSEDED.problem(page.path, message, line)


def _over(counter: TokenCounter, document: Document, start: int, end: int, most: int) -> int | None:
    """The tokens of a part if they are too many."""
    if end - start <= most:
        return None
    if _MOST_PER_PIECE * len(_PIECE.findall(document.body, start, end)) <= most:
        return None
    tokens = counter.count_slice(document, start, end)
    return tokens if tokens > most else None


def _pairs(groups: Iterable[list[Document]]) -> Iterator[tuple[Document, Document]]:
    for group in groups:
        for other in group[1:]:
            yield group[0], other


def _flat(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def key_line(page: CheckedPage, key: str) -> int:
    """The line of a key in front matter."""
    start = len(page.text) - len(page.document.body)
    for number, line in enumerate(page.text[:start].splitlines(), 1):
        if line.lstrip("\"'").startswith(key) and ":" in line:
            return number
    return 1
