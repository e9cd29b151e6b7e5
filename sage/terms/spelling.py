"""Words that look alike: what was probably meant by one that does not occur.

What is a word of its own is never taken for a misspelling of another. The evidence for that is the
tokenizer's vocabulary, which holds what people write most, and a filter of the words and names of
dictionaries. Of the rest it is weighed how like a word it is, and how like a slip of the fingers.
"""

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from heapq import nsmallest
from importlib import resources
from itertools import groupby, pairwise
from typing import Protocol

from sage.errors import SageError

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_LAST = "\U0010ffff"
_VOWELS = frozenset("aeiouy")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BELOW = [
    pair
    for row, below in pairwise(_ROWS)
    for pair in (*zip(row, below, strict=False), *zip(row[1:], below, strict=False))
]
_BESIDE = [pair for row in _ROWS for pair in pairwise(row)]
_NEIGHBOURS = frozenset(map(frozenset, [*_BESIDE, *_BELOW]))
"""Letters side by side on a keyboard."""
VERY_LONG = 9
"""From this length on two letters may be wrong."""
MIN_HALF = 3
SUGGESTED = 5
_MOST_ALIKE = 64
"""Forms that are suggested by their beginning alone: how often each occurs is read for so many."""

_OF_SLIP = {
    "swapped": 2.3,
    "doubled": 1.8,
    "dropped": 0.8,
    "dropped vowel": 1.2,
    "dropped double": 3.6,
    "vowel": 0.5,
    "neighbour": 0.3,
    "added": -1.4,
    "other": -2.1,
    "two": -4.3,
}
_START = -11.3
_OF_FIRST, _OF_FIRST_ADDED = -1.3, -3.5
_OF_LENGTH, _MOST_LENGTH = 0.6, 12
_OF_PIECES, _MOST_PIECES = 0.8, 4
_OF_SURPRISE = 0.27
_OF_FREQUENCY = 0.2
_OF_REAL = 2.1
_UNSEEN, _LETTERS = 5.0, 27

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
        self._longest = max(map(len, self._ordered), default=0)

    def __contains__(self, form: str) -> bool:
        return form in self._forms

    def correction(self, form: str, frequency: Frequency, english: "RealWords") -> str | None:
        """The form that was probably meant: one slip off, or two in a long word; None if none."""
        if self._is_too_long(form):
            return None
        # Every letter is one off a single one: `1` is no misspelt `a`.
        near = self._one_off(form) if len(form) > 1 else set()
        if not near and len(form) >= VERY_LONG:
            near = {word for word in self._two_off(form) if _sounds_alike(form, word)}
        occurring = [(word, frequency(word)) for word in near]
        weighed = [
            (_likelihood(form, word, count, english), word) for word, count in occurring if count
        ]
        best = max(weighed, default=(0.0, None))
        return best[1] if best[0] > 0 else None

    def split(self, form: str, frequency: Frequency) -> tuple[str, str] | None:
        """Two words that are written together in a form."""
        if len(form) > 2 * self._longest:
            return None
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
        if self._is_too_long(form):
            return []
        near = self._one_off(form) | self._two_off(form)
        found = {word for word in near if frequency(word)} | self._beginning(form, frequency)
        return sorted(found, key=lambda word: _unlikeness(form, word, frequency))[:SUGGESTED]

    def _is_too_long(self, form: str) -> bool:
        """Whether a form is longer than any here by more than slips add; to try all that is one
        off takes time with the square of its length."""
        return len(form) > self._longest + 2

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
        """The forms that begin as this one does, for as long as any do: those most like it."""
        for length in range(len(form) - 1, 0, -1):
            first = bisect_left(self._ordered, form[:length])
            last = bisect_left(self._ordered, form[:length] + _LAST)
            alike = nsmallest(
                _MOST_ALIKE, self._ordered[first:last], key=lambda word: _difference(form, word)
            )
            found = {word for word in alike if frequency(word)}
            if found:
                return found
        return set()


def _sounds_alike(form: str, word: str) -> bool:
    """Whether two words have the same beginning, end and consonants, doubled or not."""
    return form[0] == word[0] and form[-1] == word[-1] and _skeleton(form) == _skeleton(word)


def _skeleton(word: str) -> list[str]:
    single = [letter for letter, _ in groupby(word)]
    return sorted(letter for letter in single if letter not in _VOWELS)


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


def _difference(form: str, word: str) -> tuple[int, int]:
    return distance(form, word, 3), abs(len(form) - len(word))


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


PlaceOf = Callable[[str], int | None]
"""Where a word stands in a vocabulary, the commonest first; None when it does not hold it whole."""


class Lexicon(Protocol):
    """A vocabulary of the pieces that people's texts are made of."""

    def place(self, word: str, /) -> int | None:
        """Where a word stands, the commonest first; None when it is not held as a whole."""

    def count(self, text: str, /) -> int:
        """The number of pieces of a text."""

    def words(self) -> Iterable[str]:
        """What is held as a whole, in small letters."""


KNOWN_WORDS = "known_words.bin"
"""A filter of words and names; sage/data/known_words.md says of which."""
LEAST_KNOWN = 4
"""Shorter words are not in the filter."""
_HASHES = 8
_ENDINGS = (
    ("s", ""), ("es", ""), ("es", "e"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"),
    ("er", ""), ("er", "e"), ("ers", ""), ("ers", "e"), ("ize", ""), ("ized", ""), ("able", ""),
    ("less", ""),
)  # fmt: skip
_LEAST_STEM, _LONG_STEM = 4, 7
# Misspellings that so many people write that the vocabulary holds them.
_MISSPELT_WORDS = """
    abreviation accesible accomodate acheive accross acess adress adresses agressive alot anwser
    apparantly arguement assigment asign begining beleive buisness calender cancelation catagory
    changable collegue coment comming commited commiting comparision compatability competance
    completly concious conect conection consistant contian controled convertion correspondance
    curently decison defered definately dependancy dependant desciption developement diferent
    dissapear embarass enviroment equiped excercise existance existant expresion familar finaly
    focussed foward fourty fullfil goverment gaurd guage happend harrassment immediatly independant
    inital initalize insted interupt intial knowlege labled lenght libary liason lisence
    maintainance managment modifed neccessary neccesary noticable occassion occured occurence
    occurrance paralel paramter paramters parameteres performace permision persistant posession
    posible preceeding prefered privelege proccess publically reccomend recieve recieved recomend
    recomended refered refering relevent remeber repeatation responce responsability retreive
    retreived seperate seperated seperately seperation seperator shoud similiar sintax stoped
    succeded sucess sucessful succesful succesfully successfull supress suprise targetted teh thier
    tommorow transfered truely unecessary unfortunatly untill usefull verison wich widht wierd
    writting
"""
_MISSPELT = frozenset(_MISSPELT_WORDS.split())


class RealWords:
    """Knows words by one vocabulary; remembers what it was asked."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.place: PlaceOf = lexicon.place
        self._lexicon = lexicon
        self.is_real = lru_cache(maxsize=10_000)(self._is_real)

    def pieces(self, form: str) -> int:
        """Of how many pieces of the vocabulary a word is made: a misspelling breaks them."""
        return self._lexicon.count(f" {form}")

    def surprise(self, form: str) -> float:
        """How seldom letters follow each other so in words."""
        return self._letters.surprise(form)

    @cached_property
    def _letters(self) -> "_Letters":
        return _Letters(self._lexicon.words())

    @cached_property
    def _known(self) -> bytes:
        try:
            return resources.files("sage").joinpath("data", KNOWN_WORDS).read_bytes()
        except OSError as error:
            # Without it a good word may pass for a misspelling.
            reason = f"the list of known words cannot be read now: {error.strerror}"
            raise SageError(f"{reason}; ask again") from error

    def _is_known(self, form: str) -> bool:
        """Whether the filter holds a word; of others it holds 3 in 1,000."""
        data = self._known
        places = filter_places(form, 8 * len(data))
        return len(form) >= LEAST_KNOWN and all(data[at >> 3] >> (at & 7) & 1 for at in places)

    def _is_real(self, form: str) -> bool:
        if form in _MISSPELT:
            return False
        if self.place(form) is not None or self._is_known(form):
            return True
        stem = form.removesuffix("s")
        if form != stem and len(stem) >= _LONG_STEM and stem[-1] != "s" and self._is_known(stem):
            return True  # the filter has most plurals, but not those of names
        # It has the other forms of its own words: only what is none of them has more.
        return any(
            self.place(stem) is not None and not self._is_known(stem) for stem in _stems(form)
        )


def filter_places(word: str, bits: int) -> Iterator[int]:
    """The bits of a filter that are set when it holds a word."""
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    return ((first + number * step) % bits for number in range(_HASHES))


class _Letters:
    """How letters follow each other in words: a blank is where a word begins and ends."""

    def __init__(self, words: Iterable[str]) -> None:
        text = "  ".join(("", *words, ""))
        self._one = Counter(text)
        self._two = Counter(map("".join, pairwise(text)))
        self._three = Counter(map("".join, zip(text, text[1:], text[2:], strict=False)))

    def surprise(self, word: str) -> float:
        """The negative logarithm of the chance of a word."""
        text = f"  {word} "
        chances = (self._chance(text[at - 2 : at], text[at]) for at in range(2, len(text)))
        return -sum(map(math.log, chances))

    def _chance(self, before: str, letter: str) -> float:
        after_one = (self._two[before[1] + letter] + _UNSEEN / _LETTERS) / (
            self._one[before[1]] + _UNSEEN
        )
        return (self._three[before + letter] + _UNSEEN * after_one) / (self._two[before] + _UNSEEN)


def _likelihood(form: str, word: str, frequency: int, english: RealWords) -> float:
    """How likely it is that a form which is no known word is a slip for a word, above zero.

    The logarithm of the odds. The weights were fitted to real words that a base does not hold and
    to misspellings of those that it holds, and zero was put where hardly any of the former are
    above it: see docs/search.md.
    """
    slip, at = _slip(form, word)
    return (
        _START
        + _OF_SLIP[slip]
        + (_OF_FIRST + _OF_FIRST_ADDED * (slip == "added")) * (at == 0)
        + _OF_LENGTH * min(len(form), _MOST_LENGTH)
        + _OF_PIECES * min(english.pieces(form), _MOST_PIECES)
        + _OF_SURPRISE * english.surprise(form)
        + _OF_FREQUENCY * math.log(frequency)
        + _OF_REAL * english.is_real(word)
    )


def _slip(form: str, word: str) -> tuple[str, int]:
    """What the fingers did to a word, and where."""
    shorter = min(len(form), len(word))
    at = next((n for n in range(shorter) if form[n] != word[n]), shorter)
    if form[at + 1 :] == word[at:]:
        return "doubled" if at and form[at] == form[at - 1] else "added", at
    if form[at:] == word[at + 1 :]:
        if at and word[at] == word[at - 1]:
            return "dropped double", at
        return "dropped vowel" if word[at] in _VOWELS else "dropped", at
    if form[at + 1 :] == word[at + 1 :]:
        pair = frozenset((form[at], word[at]))
        return "vowel" if pair <= _VOWELS else "neighbour" if pair in _NEIGHBOURS else "other", at
    if form[at + 2 :] == word[at + 2 :] and form[at : at + 2] == word[at : at + 2][::-1]:
        return "swapped", at
    return "two", at


def _stems(form: str) -> Iterator[str]:
    """What a word may be without its ending."""
    for ending, instead in _ENDINGS:
        stem = form.removesuffix(ending)
        if form.endswith(ending) and len(stem) >= _LEAST_STEM and stem[-1] != ending:
            yield stem + instead
