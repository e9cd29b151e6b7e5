"""Unicode's normal forms, in time that grows with the text and not with its square.

Python sorts the accents on one letter by insertion: half a megabyte of them took minutes, and
nothing else ran meanwhile.
"""

import unicodedata
from collections.abc import Iterator
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_PIECE = 512


def normal_form(form: Form, text: str) -> str:
    """The text in a normal form; a long one is cut at blanks, or inside a word without end."""
    if len(text) <= _PIECE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(" ", start + _PIECE, start + 2 * _PIECE)
        end = end if end >= 0 else start + 2 * _PIECE
        yield text[start:end]
        start = end
