"""Which of many names is meant by one that is not there: "did you mean" for links and anchors.

Names that share three letters in a row are looked up and only the best of them compared: comparing
with each of 26,000 would take a quarter of a second for every dead link.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator

_MOST_PER_PIECE = 500
_COMPARED = 12
_CLOSE = 0.72
_MAX_LENGTH = 120


class NearNames:
    """Names that can be asked for the one nearest to another."""

    def __init__(self, names: Iterable[str]) -> None:
        self._pieces: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            for piece in _pieces(name):
                holders = self._pieces.setdefault(piece, [])
                if len(holders) < _MOST_PER_PIECE:
                    holders.append(name)

    def nearest(self, wanted: str) -> str:
        """The nearest name; empty when none is close."""
        shared: Counter[str] = Counter()
        for piece in _pieces(wanted):
            shared.update(self._pieces.get(piece, ()))
        best = [name for name, _ in shared.most_common(_COMPARED)]
        close = difflib.get_close_matches(
            wanted[:_MAX_LENGTH].lower(), [name.lower() for name in best], n=1, cutoff=_CLOSE
        )
        return next((name for name in best if close and name.lower() == close[0]), "")


def _pieces(name: str) -> Iterator[str]:
    text = f" {name[:_MAX_LENGTH].lower()} "
    yield from {text[at : at + 3] for at in range(len(text) - 2)}
