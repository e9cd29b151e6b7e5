"""The base in figures: how much there is of what, how it grows, and what is asked of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, NotRequired, TypedDict

from sage.care.history import History
from sage.care.usage import UsageSummary
from sage.documents.document import Document, whole
from sage.token_counter import TokenCounter

NONE = "none"
"""Where a page does not say."""
_AGES = ((1, "under a month"), (3, "1 to 3 months"), (12, "3 to 12 months"), (24, "1 to 2 years"))
_OLDEST = "over 2 years"
_MONTH_DAYS = 365.25 / 12
_HOT = 10


class KindShare(TypedDict):
    """What there is of one kind."""

    name: str
    pages: int
    sections: int
    tokens: int


class Branch(TypedDict):
    """A folder or a page of the tree of topics."""

    name: str
    topic: str
    pages: int
    tokens: int
    children: list["Branch"]


class HotPage(TypedDict):
    """A page that is changed often."""

    topic: str
    path: str
    commits: int


class Growth(TypedDict):
    """What git says of the last months."""

    months: list[dict[str, Any]]
    commits: int
    hot: list[HotPage]


class Stats(TypedDict):
    """The answer of `sage stats`."""

    pages: int
    sections: int
    tokens: int
    by: dict[str, list[KindShare]]
    """By layer, type, status, source, owner and age."""
    topics: list[Branch]
    growth: NotRequired[Growth]
    """Absent where git says nothing."""
    usage: NotRequired[dict[str, Any]]
    """Absent without a usage log."""


class Measured:
    """A page with its size and age."""

    def __init__(self, document: Document, tokens: int, updated: date | None) -> None:
        self.document = document
        self.tokens = tokens
        self.updated = updated


def measure(
    documents: Iterable[Document],
    counter: TokenCounter,
    history: History,
    edited: Mapping[str, str],
) -> list[Measured]:
    """Every page with what reading it costs and the day it was last changed.

    Args:
        edited: the day of each file, for pages that name none and that git does not know.
    """
    return [
        Measured(document, counter.count(whole(document).text), _updated(document, history, edited))
        for document in documents
    ]


def take_stats(
    pages: Sequence[Measured], history: History, usage: UsageSummary | None, today: date
) -> Stats:
    """The figures of a base."""
    stats = Stats(
        pages=len(pages),
        sections=sum(len(page.document.sections) for page in pages),
        tokens=sum(page.tokens for page in pages),
        by={name: _shares(pages, name_of) for name, name_of in _kinds(today).items()},
        topics=_tree(pages),
    )
    if history.months:
        stats["growth"] = _growth(pages, history)
    if usage is not None:
        stats["usage"] = asdict(usage)
    return stats


def _kinds(today: date) -> dict[str, Callable[[Measured], str]]:
    return {
        "layer": lambda page: page.document.layer,
        "type": lambda page: page.document.meta.type or NONE,
        "status": lambda page: page.document.meta.status,
        "source": lambda page: page.document.source,
        "owner": lambda page: page.document.meta.owner or NONE,
        "age": lambda page: _age(page.updated, today),
    }


def _shares(pages: Sequence[Measured], name_of: Callable[[Measured], str]) -> list[KindShare]:
    """The kinds, the largest first; ages in their own order."""
    shares: dict[str, KindShare] = {}
    for page in pages:
        name = name_of(page)
        share = shares.setdefault(name, KindShare(name=name, pages=0, sections=0, tokens=0))
        share["pages"] += 1
        share["sections"] += len(page.document.sections)
        share["tokens"] += page.tokens
    ages = [name for _, name in _AGES] + [_OLDEST, NONE]
    if shares.keys() <= set(ages) and shares.keys() - {NONE}:
        return [shares[name] for name in ages if name in shares]
    return sorted(shares.values(), key=lambda one: (-one["pages"], one["name"]))


def _age(updated: date | None, today: date) -> str:
    if updated is None:
        return NONE
    months = (today - updated).days / _MONTH_DAYS
    return next((name for most, name in _AGES if months < most), _OLDEST)


def _updated(document: Document, history: History, edited: Mapping[str, str]) -> date | None:
    said = document.meta.last_updated
    for text in (said, "" if history.last.get(document.path) else edited.get(document.path, "")):
        try:
            return date.fromisoformat(text)
        except ValueError:
            continue
    return history.day_of(document.path)


def _tree(pages: Sequence[Measured]) -> list[Branch]:
    """The folders and pages below the layers, in the order of their names."""
    top = Branch(name="", topic="", pages=0, tokens=0, children=[])
    known = {"": top}
    for page in sorted(pages, key=lambda one: one.document.topic):
        parts = page.document.topic.split("/")
        above = top
        for depth in range(1, len(parts) + 1):
            topic = "/".join(parts[:depth])
            branch = known.get(topic)
            if branch is None:
                branch = Branch(name=parts[depth - 1], topic=topic, pages=0, tokens=0, children=[])
                known[topic] = branch
                above["children"].append(branch)
            branch["pages"] += 1
            branch["tokens"] += page.tokens
            above = branch
    return top["children"]


def _growth(pages: Sequence[Measured], history: History) -> Growth:
    topics = {page.document.path: page.document.topic for page in pages}
    hot = Counter({path: count for path, count in history.commits.items() if path in topics})
    ranked = sorted(hot.items(), key=lambda one: (-one[1], one[0]))[:_HOT]
    return Growth(
        months=[month._asdict() for month in history.months],
        commits=sum(history.commits.values()),
        hot=[HotPage(topic=topics[path], path=path, commits=count) for path, count in ranked],
    )
