"""From text to terms: what counts as a word, for documents and queries alike.

A term is a written form, folded in case and accents. Identifiers give their parts and one joined
form, Chinese, Japanese and Korean runs their characters and pairs. Stems bring the forms of one
word together. What of a pasted text or a question says nothing is known here too.
"""

import re
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from sage.sanitize import normal_form

MAX_TERM = 64
"""Longer words are cut; a query's are cut alike, so they still meet."""
MAX_PARTS = 8
JOIN = "_"
"""Ends the joined form of an identifier: `error_handling` is not the word `errorhandling`."""
_MEMORY = 30_000
_SHORT_RUN = 8
"""Chinese, Japanese or Korean that comes again; what is longer hardly does."""

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = rf"[^\W_{_CJK}]"
_TOKEN = re.compile(
    rf"[{_CJK}]+"
    # C++, C#, F# and .NET are names although their marks are no letters.
    r"|(?<![\w.])(?:[A-Za-z](?:\+\+|\#)(?!\w)|\.NET\b|\.net\b)"
    # A command-line flag is written with its dashes: -euo, --no-cache.
    r"|(?<![^\s\"'(\[`])--?[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])"
    r"|[vV]?\d+(?:\.\d+)+(?:[a-z]+\d*)?"
    rf"|{_LETTER}+(?:[_.'\u2019-]+{_LETTER}+)*"
)
_PIECE = re.compile(rf"{_LETTER}+")
_CAMEL = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|\d+|[A-Z]")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_WHOLE = re.compile(r"[vV]?\d+\.\d|[A-Z]{2,}s\Z")  # 3.11, APIs
_NUMBERED = re.compile(r"([a-z]{3,})\d+\Z")
_APOSTROPHE = re.compile(r"['\u2019]")
# Soft hyphens, zero-width and bidirectional marks stand inside words without being part of them.
_INVISIBLE = dict.fromkeys(
    (0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)
)

_STOP_WORDS = """
    a about above after again against all also am an and any are arent as at be because been
    before being below between both but by can cannot cant could couldnt did didnt do does doesnt eg
    doing dont down during each few for from further had has have having he her here hers him his
    how i id if ill im in into is isnt it its itself ive just let lets may me might more most must
    my myself no nor not now of off on once only or other ought our ours out over own please same
    shall she should shouldnt so some such than that thats the their theirs them then there theres
    these they theyre this those through to too under until up us very was wasnt we well were
    werent what whats when where which while who whom whose why will with wont would wouldnt you
    your youre yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class Word(NamedTuple):
    """One word: its joined form, and its parts when it has several."""

    form: str
    parts: tuple[str, ...] = ()
    cjk: bool = False
    written: str = ""
    """As it stands in the text."""

    @property
    def is_identifier(self) -> bool:
        """Whether it is a name in code: several words that only a hyphen joins are not."""
        named = "_" in self.written or not ("-" in self.written or "'" in self.written)
        return named and max(map(len, self.parts), default=0) > 2


class Term(NamedTuple):
    """A term and how far it lies behind the first one of its word."""

    form: str
    offset: int


_Terms = tuple[Sequence[tuple[str, int]], int]
"""Terms with their offsets, and the positions that they take together."""


class Analyzer:
    """Turns text into words and terms, remembering how each word is taken apart."""

    def __init__(self) -> None:
        self._plain: dict[str, str] = {}
        """What stands between two blanks and is one term, as most does: that term."""
        self._runs: dict[str, _Terms] = {}
        """What else stands between two blanks."""
        self._tokens: dict[str, _Terms] = {}
        self._says: dict[str, tuple[int, int]] = {}
        """How many words stand between two blanks, those first that say something."""

    def words(self, text: str) -> list[Word]:
        """The words of a query, in order."""
        return [word_of(token)._replace(written=token) for token in tokens(text)]

    def content_length(self, text: str) -> int:
        """How many words of a text say something; all of them when none does."""
        said = words = 0
        for run in folded(text).split():
            known = self._says.get(run) or self._content(run)
            said, words = said + known[0], words + known[1]
        return said or words

    def places(self, text: str) -> tuple[dict[str, list[int]], int]:
        """The terms of a text, each with its positions, and the position after the last."""
        found: dict[str, list[int]] = {}
        position = 0
        plain = self._plain
        # No token reaches over a blank: what stands between two is taken apart once.
        for run in folded(text).split():
            form = plain.get(run)
            if form is not None:
                held = found.get(form)
                if held is None:
                    found[form] = [position]
                else:
                    held.append(position)
                position += 1
                continue
            terms, length = self._runs.get(run) or self._take_apart(run)
            for form, offset in terms:
                found.setdefault(form, []).append(position + offset)
            position += length
        return found, position

    def _take_apart(self, run: str) -> _Terms:
        terms: list[tuple[str, int]] = []
        length = 0
        for token in _TOKEN.findall(run):
            if len(token) > _SHORT_RUN and is_cjk(token):
                # A page without a blank is one token: too much to go through term by term.
                places = range(length, length + len(token))
                terms.extend(zip(token, places, strict=True))
                terms.extend(zip(pairs(token), places, strict=False))
                length += len(token)
                continue
            own, words = self._tokens.get(token) or self._token(token)
            terms += [(form, length + offset) for form, offset in own] if length else own
            length += words
        if len(run) <= (_SHORT_RUN if _CJK_RUN.search(run) else MAX_TERM):
            self._remember(run, terms, length)
        return terms, length

    def _token(self, token: str) -> _Terms:
        terms = tuple(terms_of(word_of(token)))
        if len(self._tokens) >= _MEMORY:
            self._tokens.clear()
        known = self._tokens[token] = terms, 1 + max((one.offset for one in terms), default=-1)
        return known

    def _remember(self, run: str, terms: Sequence[tuple[str, int]], length: int) -> None:
        if len(self._plain) + len(self._runs) >= _MEMORY:
            self._plain.clear()
            self._runs.clear()
        if len(terms) == length == 1:
            self._plain[run] = terms[0][0]
        else:
            self._runs[run] = terms, length

    def _content(self, run: str) -> tuple[int, int]:
        found = _TOKEN.findall(run)
        known = sum(word_of(token).form not in STOP_WORDS for token in found), len(found)
        if len(self._says) >= _MEMORY:
            self._says.clear()
        if len(run) <= MAX_TERM:
            self._says[run] = known
        return known


def tokens(text: str) -> list[str]:
    """The words as they are written; accents and compatibility forms are folded."""
    return _TOKEN.findall(folded(text))


def folded(text: str) -> str:
    """Text without accents, compatibility forms and invisible marks."""
    if text.isascii():
        return text
    apart = normal_form("NFKD", text.translate(_INVISIBLE))
    bare = "".join(character for character in apart if not unicodedata.combining(character))
    return normal_form("NFC", bare)


def word_of(token: str) -> Word:
    """The word that a token stands for."""
    if is_cjk(token):
        return Word(token, cjk=True)
    plain = _APOSTROPHE.sub("", _without_possessive(token))
    if not plain[0].isalnum() or plain[-1] in "+#" or _WHOLE.match(plain):
        return Word(form_of(plain))
    parts = tuple(form_of(part) for piece in _PIECE.findall(plain) for part in _split(piece))
    if len(parts) < 2:
        return Word(form_of(plain))
    return Word("".join(parts)[:MAX_TERM], parts)


def terms_of(word: Word) -> Iterator[Term]:
    """The terms under which a word is kept: what a query for any of them finds."""
    if word.cjk:
        yield from _cjk_terms(word.form)
        return
    if not word.parts:
        yield Term(word.form, 0)
        numbered = _NUMBERED.match(word.form)
        if numbered:
            yield Term(numbered[1], 0)
        if word.form[0] == "-":
            flag = re.split("-+", word.form.lstrip("-"))
            yield from (Term(part, offset) for offset, part in enumerate(flag))
        return
    if len(word.parts) <= MAX_PARTS:
        yield Term(word.form + JOIN, 0)
    for offset, part in enumerate(word.parts):
        yield Term(part, offset)


def is_cjk(token: str) -> bool:
    """Whether a token is a run of Chinese, Japanese or Korean."""
    return not token[0].isascii() and _CJK_RUN.match(token) is not None


def pairs(run: str) -> list[str]:
    """The pairs of neighbours in a run of characters, or the one character it is."""
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]


def content_words(words: Iterable[Word]) -> list[Word]:
    """The words that say something; all of them when none does."""
    words = list(words)
    return [word for word in words if word.form not in STOP_WORDS] or words


_CJK_RUN = re.compile(rf"[{_CJK}]")


def _cjk_terms(run: str) -> Iterator[Term]:
    for offset, character in enumerate(run):
        yield Term(character, offset)
        if offset + 1 < len(run):
            yield Term(run[offset : offset + 2], offset)


def _without_possessive(token: str) -> str:
    return token[:-2] if token[-2:] in ("'s", "\u2019s", "'S") else token


def _split(piece: str) -> list[str]:
    return _CAMEL.findall(piece) if piece.isascii() and _HUMP.search(piece) else [piece]


def form_of(text: str) -> str:
    return (text.lower() if text.isascii() else text.casefold())[:MAX_TERM]


# Stack frames, times, addresses and line numbers say where something happened, not what: they would
# drown the few words of a pasted error or log that a page can answer.
_FRAMES = re.compile(
    r"^[ \t]*+(?:"
    r"File \"[^\"\n]{0,300}\", line \d+[^\n]*"
    r"|at [\w$.<>/\[\]]{1,200} ?\([^()\n]{0,200}\)"
    r"|at [^\s()]{1,300}:\d+(?::\d+)?"
    r"|from [^\s:]{1,300}:\d+:in [^\n]{0,200}"
    r"|\.\.\. \d+ more"
    r"|Traceback \(most recent call last\):?"
    r"|[\^~][\^~ ]*+"
    r")[ \t]*+$",
    re.MULTILINE,
)
_NOISE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?<![\w.])\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|\b0x[0-9a-fA-F]{4,32}\b"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]{0,39}\d)[0-9a-f]{12,64}\b"
)
_PLACE = re.compile(r"(?<=[\w)\]]):\d{1,6}(?::\d{1,6})?(?!\w)")
_FOLDERS = re.compile(r"(?<![\w/])(?:[A-Za-z]:)?(?:[\w.@~-]{0,100}[/\\]){2,20}(?=[\w.@-])")
_SENTENCE = 12
_ERROR = re.compile(
    r"\b(?:error|exception|failed|failure|cannot|can't|unable|refused|denied|invalid|unexpected"
    r"|undefined|forbidden|panic|fatal|traceback|warning)\b|\w:(?:\s|$)|=",
    re.IGNORECASE,
)


def is_pasted(text: str) -> bool:
    """Whether somebody pasted a text rather than asked for something."""
    return "\n" in text.strip() or len(text) > 300 or bool(_NOISE.search(text))


def is_message(text: str) -> bool:
    """Whether quotes in a text are those of a program rather than of a person."""
    outside = re.sub(r"[\"\u201c\u201d][^\"\u201c\u201d]*[\"\u201c\u201d]", " ", text)
    return len(outside.split()) > _SENTENCE or bool(_ERROR.search(outside))


def without_noise(text: str) -> str:
    """The message in a pasted text; all of it when nothing else would be left."""
    kept = _PLACE.sub(" ", _FOLDERS.sub(" ", _NOISE.sub(" ", _FRAMES.sub(" ", text))))
    return kept if re.search(r"\w", kept) else text


_CHINESE_ASKING = re.compile(
    "请问|为什么|为何|什么(?:时候|样)?|是指|怎么样?|怎样|如何|哪(?:些|个|里|位|一?年|种|儿)"
    "|多少|是否|能否|可否|有没有|是不是|[吗呢吧]"
)
"""What Chinese asks with; between its words nobody puts a blank."""


def without_asking(text: str) -> str:
    """A text without the words that only ask; all of it when nothing else would be left."""
    kept = _CHINESE_ASKING.sub(" ", text)
    return kept if re.search(r"\w", kept) else text


_MAX_STEMS = 30_000
_SHORT_DOUBLE = re.compile(r"([aeiou]([bdfgnr])\2)(?:ed|ing)")
"""`added` is no form of `ad`: a vowel and a doubled letter are a whole word."""
_FAMILIES = (
    "emergenc",
    "internal",
    "internation",
    "interval",
    "lateral",
    "organis",
    "organiz",
    "universal",
    "universit",
)
"""What else would be cut down to emerge, intern, interview, later, organ, universe."""
_WORDS = {
    "evening": "evening",
    "evenings": "evening",
    "paste": "paste",
    "pasted": "paste",
    "pastes": "paste",
    "pasting": "paste",
}


class Stemmer:
    """What the forms of one English word share; every other word is its own stem.

    Whoosh's Snowball (its Porter stemmer turns running into runn), corrected where today's
    Snowball differs: over 288,830 words of manuals and source code nothing else that is a word
    did. Safe to share between threads.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # 2.7.4 holds escapes in plain strings that newer Pythons warn about.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            # Here and not above: whoever only takes a text apart need not wait for Whoosh.
            from whoosh.lang.snowball.english import EnglishStemmer
        self._snowball = EnglishStemmer()
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def stem(self, form: str) -> str:
        """The stem of an English word, anything else unchanged."""
        known = self._known.get(form)
        if known is None:
            english = len(form) > 2 and form.isascii() and form.isalpha()
            known = self._stemmed(form) if english else form
            with self._lock:
                if len(self._known) >= _MAX_STEMS:
                    self._known.clear()
                self._known[form] = known
        return known

    def _stemmed(self, form: str) -> str:
        double = _SHORT_DOUBLE.fullmatch(form)
        if double:
            return double[1]
        family = next((start for start in _FAMILIES if form.startswith(start)), None)
        return family or _WORDS.get(form) or str(self._snowball.stem(form))


@cache
def shared_stemmer() -> Stemmer:
    """The stemmer of this process: what one caller stemmed another need not."""
    return Stemmer()


@lru_cache(maxsize=_MAX_STEMS)
def stem_of(form: str) -> str:
    """What the forms of one word share; a joined form is one of them."""
    return shared_stemmer().stem(form.removesuffix(JOIN))
