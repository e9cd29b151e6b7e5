"""The words of the index: written forms by stem, and the fields in which each occurs.

Forms are never taken out: one whose last document went has no postings, and callers check that.
"""

from collections.abc import Iterable, Mapping

from sage.analysis import JOIN
from sage.index import Stemmer
from sage.postings import FIELDS, Row
from sage.spelling import Spelling

_BITS = {name: 1 << position for position, name in enumerate(FIELDS)}


class Vocabulary:
    """Every form that was ever indexed."""

    def __init__(self, stems: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._stemmer = Stemmer()
        self._stems: dict[str, Mapping[str, int]] = dict(stems or {})
        self._masks: dict[str, int] | None = None
        self._spelling: Spelling | None = None

    def add(self, rows: Iterable[Row]) -> None:
        """Take in the terms of new rows."""
        masks = self._masks = self._masks or self._all_masks()
        for row in rows:
            for name, terms in row.fields.items():
                bit = _BITS[name]
                for form in terms:
                    # Nearly all are known: a stem is only looked for when one is not.
                    if not masks.get(form, 0) & bit:
                        self._add(form, bit, masks)

    def stem(self, form: str) -> str:
        """What the forms of one word share."""
        return self._stemmer.stem(form.removesuffix(JOIN))

    def forms(self, form: str) -> tuple[str, ...]:
        """The written forms that share a form's stem."""
        return tuple(self._stems.get(self.stem(form), ()))

    def __contains__(self, form: str) -> bool:
        return form in self._stems.get(self.stem(form), ())

    def fields(self, form: str) -> list[str]:
        """The fields in which a form may occur."""
        mask = self._stems.get(self.stem(form), {}).get(form, 0)
        return [name for name, bit in _BITS.items() if mask & bit]

    @property
    def spelling(self) -> Spelling:
        """How the forms look; joined ones are nobody's spelling."""
        spelling = self._spelling
        if spelling is None:
            forms = [form for forms in list(self._stems.values()) for form in forms]
            spelling = Spelling(form for form in forms if not form.endswith(JOIN))
            self._spelling = spelling
        return spelling

    def to_json(self) -> dict[str, Mapping[str, int]]:
        """The whole vocabulary as plain objects, which later additions leave alone."""
        return self._stems.copy()

    def _all_masks(self) -> dict[str, int]:
        return {form: mask for forms in self._stems.values() for form, mask in forms.items()}

    def _add(self, form: str, bit: int, masks: dict[str, int]) -> None:
        if form not in masks:
            self._spelling = None
        masks[form] = masks.get(form, 0) | bit
        key = self.stem(form)
        # Replaced, not changed: a search may be reading the forms of this stem.
        self._stems[key] = {**self._stems.get(key, {}), form: masks[form]}
