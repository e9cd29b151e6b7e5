"""A snippet with the words of the query marked, as a search matches them: by their stems."""

import re
from collections.abc import Set

from markupsafe import Markup, escape

from sage.sanitize import clean
from sage.terms.analysis import Stemmer, content_words, tokens, word_of

_WORD = re.compile(r"\w+")
_REMEMBERED = 50_000


class Highlighter:
    """Marks words. Safe to share between threads."""

    def __init__(self) -> None:
        self._stemmer = Stemmer()
        self._known: dict[str, frozenset[str]] = {}

    def mark(self, text: str, query: str) -> Markup:
        """The text with every word marked that the query holds in any form."""
        text, wanted = clean(text), self._wanted(query)
        parts, at = [], 0
        for match in _WORD.finditer(text):
            if not wanted.isdisjoint(self._stems(match.group())):
                parts.append(escape(text[at : match.start()]))
                parts.append(Markup("<mark>{}</mark>").format(match.group()))
                at = match.end()
        parts.append(escape(text[at:]))
        return Markup("").join(parts)

    def holds(self, text: str, query: str) -> bool:
        """Whether a text holds a word of the query in any form."""
        wanted = self._wanted(query)
        return any(not wanted.isdisjoint(self._stems(word)) for word in _WORD.findall(text))

    def held(self, text: str, query: str) -> list[str]:
        """The words of a query that a text holds in any form, as the query writes them."""
        there = frozenset[str]().union(*(self._stems(word) for word in set(_WORD.findall(text))))
        words = dict.fromkeys(content_words(map(word_of, tokens(query))))
        return [word.form for word in words if self._stemmer.stem(word.form) in there]

    def _wanted(self, query: str) -> Set[str]:
        words = content_words(map(word_of, tokens(query)))
        forms = {form for word in words for form in (word.form, *word.parts)}
        return {self._stemmer.stem(form) for form in forms}

    def _stems(self, word: str) -> frozenset[str]:
        known = self._known.get(word)
        if known is None:
            forms = [form for one in map(word_of, tokens(word)) for form in (one.form, *one.parts)]
            known = frozenset(map(self._stemmer.stem, forms))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[word] = known
        return known
