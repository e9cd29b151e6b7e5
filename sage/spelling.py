"""Words that look alike: what was probably meant by one that does not occur."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_LAST = "\U0010ffff"
LONG = 7
"""From this length on two letters may be wrong."""
MIN_HALF = 3
SUGGESTED = 5

Frequency = Callable[[str], int]
"""In how many documents a form occurs now. Forms may have gone; those are never suggested."""


class Spelling:
    """The written forms of one moment, found by how they look."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._ordered = sorted(forms)
        self._forms = frozenset(self._ordered)
        self._alike: dict[tuple[int, str], list[str]] = {}
        for form in self._ordered:
            self._alike.setdefault((len(form), form[0]), []).append(form)

    def correction(self, form: str, letters: int, frequency: Frequency) -> str | None:
        """The best form that occurs one letter off, or two in a long word."""
        if letters == 1:
            # Every letter is one off a single one: `1` is no misspelt `a`.
            near = self._one_off(form) if len(form) > 1 else set()
        else:
            near = self._two_off(form) if len(form) >= LONG else set()
        occurring = [word for word in near if frequency(word)]
        return min(occurring, key=lambda word: _unlikeness(form, word, frequency), default=None)

    def split(self, form: str, frequency: Frequency) -> tuple[str, str] | None:
        """Two words that are written together in a form."""
        halves = [
            (form[:at], form[at:])
            for at in range(MIN_HALF, len(form) - MIN_HALF + 1)
            if form[:at] in self._forms and form[at:] in self._forms
        ]
        scored = [(min(map(frequency, pair)), pair) for pair in halves]
        best = max(scored, default=(0, None))
        return best[1] if best[0] else None

    def nearest(self, form: str, frequency: Frequency) -> list[str]:
        """Forms that look like one that does not occur, best first."""
        near = self._one_off(form) | self._two_off(form)
        found = {word for word in near if frequency(word)} | self._beginning(form, frequency)
        return sorted(found, key=lambda word: _unlikeness(form, word, frequency))[:SUGGESTED]

    def _one_off(self, form: str) -> set[str]:
        found = {word for word in _edits(form) if word in self._forms}
        if not form.isascii():
            # Letters of other scripts are too many to try: look at words that begin alike.
            found.update(word for word in self._near(form, 1) if distance(form, word, 1) == 1)
        return found

    def _two_off(self, form: str) -> set[str]:
        letters = _signature(form)
        return {
            word
            for word in self._near(form, 2)
            if (letters ^ _signature(word)).bit_count() <= 4 and distance(form, word, 2) <= 2
        }

    def _near(self, form: str, around: int) -> Iterator[str]:
        """Words of about the same length that begin with the same letter."""
        for length in range(len(form) - around, len(form) + around + 1):
            yield from self._alike.get((length, form[0]), ())

    def _beginning(self, form: str, frequency: Frequency) -> set[str]:
        """The forms that begin as this one does, for as long as any do."""
        for length in range(len(form) - 1, 0, -1):
            first = bisect_left(self._ordered, form[:length])
            last = bisect_left(self._ordered, form[:length] + _LAST)
            found = {word for word in self._ordered[first:last] if frequency(word)}
            if found:
                return found
        return set()


def _edits(form: str) -> Iterator[str]:
    """Everything one letter off."""
    for at in range(len(form) + 1):
        head, tail = form[:at], form[at:]
        if tail:
            yield head + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        for letter in _ALPHABET:
            yield head + letter + tail
            if tail and letter != tail[0]:
                yield head + letter + tail[1:]


def _unlikeness(form: str, word: str, frequency: Frequency) -> tuple[int, bool, int, str]:
    return (distance(form, word, 3), word[0] != form[0], -frequency(word), word)


def _signature(word: str) -> int:
    mask = 0
    for character in word:
        mask |= 1 << (ord(character) & 63)
    return mask


def distance(one: str, other: str, most: int) -> int:
    """The number of letters inserted, dropped, changed or swapped; `most` + 1 when more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
