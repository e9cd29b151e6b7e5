"""From what somebody typed to words, phrases, exclusions and filters. Every text is a query.

Marks that are not well formed are words; nothing here raises. What the words mean in the index is
the concepts' to say.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from sage.analysis import Analyzer, Word, content_words, folded
from sage.frontmatter import TYPES

MAX_CHARACTERS = 512
MAX_TERMS = 32
MAX_PHRASES = 8

_PART = re.compile(
    r"(?<!\S)(?P<name>layer|tag|type|lang):(?P<value>\"[^\"]+\"|[^\s\"]+)(?!\S)"
    r"|[\"\u201c\u201d](?P<phrase>[^\"\u201c\u201d]+)[\"\u201c\u201d]"
    r"|(?<!\S)-(?P<excluded>[^\W\d_][^\s\"]*)",
    re.IGNORECASE,
)


class Filters(NamedTuple):
    """What a document must be; an empty set asks for nothing."""

    layer: frozenset[str] = frozenset()
    tag: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    lang: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Query:
    """A query understood."""

    words: tuple[Word, ...] = ()
    """Everything to look for, the words of phrases included."""
    joined: tuple[str, ...] = ()
    """Neighbours written as one: `log in` may be kept as `login`."""
    phrases: tuple[tuple[Word, ...], ...] = ()
    excluded: tuple[Word, ...] = ()
    filters: Filters = Filters()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The values that filters can have now, and the command-line flags that documents name."""

    layers: Collection[str] = ()
    tags: Collection[str] = ()
    languages: Collection[str] = ()
    is_flag: Callable[[str], bool] = lambda _: False

    def value(self, name: str, value: str) -> str | None:
        """The value of a filter as it is known, or None."""
        allowed: Mapping[str, Collection[str]] = {
            "layer": self.layers,
            "tag": self.tags,
            "type": TYPES,
            "lang": self.languages,
        }
        wanted = value.strip('"').strip().casefold()
        if name == "type":
            wanted = re.sub(r"[-\s]+", "_", wanted)
        return next((known for known in allowed[name] if known.casefold() == wanted), None)


def parse(text: str, analyzer: Analyzer, known: Known | None = None) -> Query:
    """Understand a query."""
    known = known or Known()
    notes: list[str] = []
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS]
        notes.append(f"the query was cut to its first {MAX_CHARACTERS} characters")
    parts = _Parts(analyzer, known)
    rest = _PART.sub(parts.take, folded(text))
    written = analyzer.words(rest)
    words = _distinct(content_words(written))
    if not words and not parts.filters:
        words, parts.excluded = parts.excluded, []
    if len(words) > MAX_TERMS:
        words = words[:MAX_TERMS]
        notes.append(f"only the first {MAX_TERMS} words were searched")
    return Query(
        words=tuple(words),
        joined=_joined(written[: 2 * MAX_TERMS]),
        phrases=tuple(parts.phrases),
        excluded=tuple(_distinct(parts.excluded)[:MAX_TERMS]),
        filters=Filters(**{name: frozenset(values) for name, values in parts.filters.items()}),
        notes=tuple(notes),
    )


class _Parts:
    """Collects what is more than a word; what it leaves behind is searched as words."""

    def __init__(self, analyzer: Analyzer, known: Known) -> None:
        self._analyzer = analyzer
        self._known = known
        self.filters: dict[str, set[str]] = {}
        self.phrases: list[tuple[Word, ...]] = []
        self.excluded: list[Word] = []

    def take(self, match: re.Match[str]) -> str:
        if match["name"]:
            return self._filter(match)
        if match["phrase"]:
            return self._phrase(match)
        return self._exclusion(match)

    def _filter(self, match: re.Match[str]) -> str:
        name = match["name"].lower()
        value = self._known.value(name, match["value"])
        if value is None:
            return match[0].replace(":", " ")
        self.filters.setdefault(name, set()).add(value)
        return " "

    def _phrase(self, match: re.Match[str]) -> str:
        words = self._analyzer.words(match["phrase"])
        phrase = tuple(words[:MAX_TERMS])
        if phrase and phrase not in self.phrases and len(self.phrases) < MAX_PHRASES:
            self.phrases.append(phrase)
        return f" {match['phrase']} "

    def _exclusion(self, match: re.Match[str]) -> str:
        # `set -euo pipefail` names a flag: what documents write with its dash is a word.
        if self._known.is_flag(match[0].lower().rstrip(".,;:!?)")):
            return match[0]
        words = self._analyzer.words(match["excluded"])
        self.excluded += words
        return " "


def _joined(words: list[Word]) -> tuple[str, ...]:
    plain = ["" if word.cjk or word.parts else word.form for word in words]
    return tuple(a + b for a, b in pairwise(plain) if a and b)


def _distinct(words: list[Word]) -> list[Word]:
    return list(dict.fromkeys(words))
