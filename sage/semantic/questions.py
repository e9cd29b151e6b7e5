"""The vectors of questions, those of the last ones remembered."""

from typing import TYPE_CHECKING

from sage.semantic.models import Encoder

if TYPE_CHECKING:
    from sage.semantic.encoder import Matrix

_MOST = 256


class QuestionVectors:
    """Makes the vectors of questions with one encoder. Thread-safe."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Matrix] = {}

    def vector(self, text: str) -> "Matrix":
        """The vector of a question."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _MOST:
                self._known = {}
            known = self._known[text] = self._encoder.embed([text])[0]
        return known
