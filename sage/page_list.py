"""What `sage ls` lists: every page with what it says of itself, filtered, sorted and in pages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from sage.deadline import no_deadline
from sage.documents.document import Document, whole
from sage.documents.files import SourceFile
from sage.documents.front_matter import STATUSES, TYPES
from sage.documents.source_roots import files_of
from sage.errors import InvalidInput, did_you_mean
from sage.knowledge import KnowledgeBase
from sage.token_counter import TokenCounter
from sage.values import DEFAULT_PAGES, MAX_OFFSET, MAX_PAGES, check_range

SORTS = ("topic", "path", "title", "tokens", "updated", "date")


class PageInfo(TypedDict):
    """One page."""

    topic: str
    path: str
    layer: str
    title: str
    tokens: int
    updated: str
    """The day that the page names, else that of its file."""
    status: str
    type: NotRequired[str]
    source: NotRequired[str]
    """Where it comes from, when there are several sources."""
    overrides: NotRequired[list[str]]
    """The sources that have a page of this topic too, which is not served."""


class PagesAnswer(TypedDict):
    """The pages from a place in the list on, and how many there are in all."""

    pages: list[PageInfo]
    total: int


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which pages to list and how."""

    status: str = ""
    type: str = ""
    tag: str = ""
    sort: str = "topic"
    limit: int = DEFAULT_PAGES
    offset: int = 0
    source: str = ""

    def keeps(self, document: Document) -> bool:
        """Whether a page is among those asked for."""
        meta = document.meta
        return (
            (not self.source or document.source == self.source)
            and (not self.status or meta.status == self.status)
            and (not self.type or meta.type == self.type)
            and (not self.tag or self.tag.casefold() in map(str.casefold, meta.tags))
        )


def list_pages(knowledge: KnowledgeBase, layer: str, wanted: PageFilter) -> PagesAnswer:
    """The pages of a layer that a filter keeps, sorted, from its offset on.

    Raises:
        InvalidInput: no such layer, order, status or type, or a limit out of range.
    """
    _check_choice("sort", wanted.sort, SORTS)
    _check_choice("status", wanted.status or STATUSES[0], STATUSES)
    _check_choice("types", wanted.type or TYPES[0], TYPES)
    knowledge.source_name(wanted.source)
    check_range("limit", wanted.limit, MAX_PAGES)
    check_range("offset", wanted.offset, MAX_OFFSET, 0)
    counter = knowledge.counter
    kept = [page for page in _served(knowledge, layer) if wanted.keeps(page[1])]
    orders: dict[str, Callable[[tuple[SourceFile, Document]], tuple[object, ...]]] = {
        "topic": lambda page: (page[1].topic,),
        "path": lambda page: (page[1].path,),
        "title": lambda page: (page[1].title.casefold(), page[1].topic),
        "tokens": lambda page: (-_tokens(page[1], counter), page[1].topic),
        "updated": lambda page: (_updated(*page), page[1].topic),
        "date": lambda page: (page[1].path,),
    }
    kept.sort(key=orders[wanted.sort])
    if wanted.sort == "date":
        kept.sort(key=lambda page: _updated(*page), reverse=True)
    shown = kept[wanted.offset : wanted.offset + wanted.limit]
    return PagesAnswer(pages=[_info(*page, knowledge) for page in shown], total=len(kept))


def _check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        close = did_you_mean(value, known)
        raise InvalidInput(f"{name}: there is no {value!r}; use {', '.join(known)}{close}")


def _served(knowledge: KnowledgeBase, layer: str) -> Iterator[tuple[SourceFile, Document]]:
    deadline = no_deadline()
    for source in files_of(knowledge.library.refresh(knowledge.layer_names(layer), deadline)):
        document = knowledge.library.load(source, deadline)
        if document is not None:
            yield source, document


def _info(source: SourceFile, document: Document, knowledge: KnowledgeBase) -> PageInfo:
    info = PageInfo(
        topic=document.topic,
        path=document.path,
        layer=document.layer,
        title=document.title,
        tokens=_tokens(document, knowledge.counter),
        updated=_updated(source, document),
        status=document.meta.status,
    )
    if document.meta.type:
        info["type"] = document.meta.type
    if knowledge.has_sources:
        info["source"] = source.source
        if source.overrides:
            info["overrides"] = list(source.overrides)
    return info


def _tokens(document: Document, counter: TokenCounter) -> int:
    """What reading the page costs."""
    return counter.count(whole(document).text)


def _updated(source: SourceFile, document: Document) -> str:
    return document.meta.last_updated or source.stamp.day
