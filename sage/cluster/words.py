"""The words of a published base and how many documents hold each, layer by layer.

Kept as lines of text by stem: a replica loads them as they are and finds a word in them without
taking apart the others. A caller's words are those of the layers that it may see, and no others.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from sage.cluster.page_record import PageWords
from sage.cluster.schema import CHUNKS, chunk_of
from sage.search.query import MAX_FORMS, Forms
from sage.terms.analysis import JOIN, stem_of
from sage.terms.postings import FIELDS
from sage.terms.spelling import Spelling

_MAX_KNOWN = 50_000


class StemCounts(NamedTuple):
    """A stem: how many documents and sections hold any of its forms, and documents by form."""

    documents: int
    sections: int
    forms: Mapping[str, int]


class WordCount:
    """Counts the words of one layer while pages come and go."""

    def __init__(self) -> None:
        self._forms: Counter[str] = Counter()
        """Documents by form; the others by stem."""
        self._documents: Counter[str] = Counter()
        self._sections: Counter[str] = Counter()

    def add(self, pages: Sequence[PageWords]) -> None:
        """Take the words of some pages in."""
        # One count after the other, of many pages: what is in the processor's cache stays there.
        self._forms.update(chain.from_iterable(page.forms for page in pages))
        self._documents.update(chain.from_iterable(page.stems for page in pages))
        self._sections.update(chain.from_iterable(page.sections for page in pages))

    def join(self, other: "WordCount") -> None:
        """Take in what was counted elsewhere of other pages."""
        self._forms.update(other._forms)
        self._documents.update(other._documents)
        self._sections.update(other._sections)

    def remove(self, page: PageWords) -> None:
        """Take the words of a page out."""
        self._forms.subtract(page.forms)
        self._documents.subtract(page.stems)
        self._sections.subtract(page.sections)

    def take(self, chunk: str) -> None:
        """Begin with what was published before."""
        for stem, counts in parse_chunk(chunk):
            self._forms.update(counts.forms)
            self._documents[stem] = counts.documents
            self._sections[stem] = counts.sections

    def chunks(self) -> dict[int, str]:
        """The lines of every chunk, in order."""
        forms: dict[str, list[str]] = {}
        for form, count in sorted(self._forms.items()):
            if count > 0:
                forms.setdefault(stem_of(form), []).append(f"{form} {count}")
        lines: dict[int, list[str]] = {number: [""] for number in range(CHUNKS)}
        for stem in sorted(forms):
            counts = f"{self._documents[stem]}\t{self._sections[stem]}"
            lines[chunk_of(stem)].append(f"{stem}\t{counts}\t{' '.join(forms[stem])}")
        return {number: "\n".join((*found, "")) for number, found in lines.items()}


def parse_chunk(chunk: str) -> Iterator[tuple[str, StemCounts]]:
    """Every stem of a chunk."""
    for line in chunk.split("\n"):
        if line:
            stem, _, rest = line.partition("\t")
            yield stem, _counts(rest)


def _counts(rest: str) -> StemCounts:
    documents, sections, forms = rest.split("\t")
    parts = forms.split(" ")
    counted = zip(parts[::2], map(int, parts[1::2]), strict=True)
    return StemCounts(int(documents), int(sections), dict(counted))


Chunks = Mapping[int, str]
_NOTHING = StemCounts(0, 0, {})


class ClusterWords:
    """The words of the layers that one scope may see. Safe to share between threads."""

    def __init__(self, layers: Sequence[Chunks], documents: int, sections: int) -> None:
        """Args:
        layers: the chunks of each of them.
        documents, sections: how many there are in all.
        """
        self._layers = layers
        self._documents = max(documents, 1)
        self._sections = max(sections, 1)
        self._known: dict[str, StemCounts] = {}
        self._lock = threading.Lock()
        self._spelling: Spelling | None = None

    def stem(self, form: str) -> str:
        """What the forms of one word share."""
        return stem_of(form)

    def forms(self, form: str) -> tuple[str, ...]:
        """The written forms that share a form's stem."""
        return tuple(self._counts(stem_of(form)).forms)

    def fields(self, form: str) -> Sequence[str]:
        """The fields in which a form may occur."""
        return FIELDS if form in self else ()

    def __contains__(self, form: str) -> bool:
        return form in self._counts(stem_of(form)).forms

    def frequency(self, form: str) -> int:
        """In how many documents a form occurs."""
        return self._counts(stem_of(form)).forms.get(form, 0)

    def holding(self, forms: Forms) -> tuple[int, int]:
        """How many documents and how many sections hold any of some forms.

        Exact for the forms of one stem, which most concepts are; of several stems it is what they
        hold together if they occur independently of each other.
        """
        asked: dict[str, list[str]] = {}
        for form, _ in forms:
            asked.setdefault(stem_of(form), []).append(form)
        without_documents = without_sections = 1.0
        for stem, some in asked.items():
            counts = self._counts(stem)
            documents, sections = counts.documents, counts.sections
            if len(some) < min(len(counts.forms), MAX_FORMS) and documents:
                named = min(documents, sum(counts.forms.get(form, 0) for form in some))
                sections = max(named, round(sections * named / documents))
                documents = named
            without_documents *= 1 - min(1.0, documents / self._documents)
            without_sections *= 1 - min(1.0, sections / self._sections)
        return (
            round((1 - without_documents) * self._documents),
            round((1 - without_sections) * self._sections),
        )

    @property
    def spelling(self) -> Spelling:
        """How the forms look; joined ones are nobody's spelling."""
        if self._spelling is None:
            forms = {
                form
                for chunks in self._layers
                for chunk in chunks.values()
                for _, counts in parse_chunk(chunk)
                for form in counts.forms
            }
            self._spelling = Spelling(form for form in forms if not form.endswith(JOIN))
        return self._spelling

    def _counts(self, stem: str) -> StemCounts:
        known = self._known.get(stem)
        if known is None:
            known = self._found(stem)
            with self._lock:
                if len(self._known) >= _MAX_KNOWN:
                    self._known = {}
                self._known[stem] = known
        return known

    def _found(self, stem: str) -> StemCounts:
        number, wanted = chunk_of(stem), f"\n{stem}\t"
        parts: list[StemCounts] = []
        for chunks in self._layers:
            chunk = chunks.get(number, "")
            start = chunk.find(wanted)
            if start >= 0:
                rest = chunk[start + len(wanted) : chunk.index("\n", start + 1)]
                parts.append(_counts(rest))
        if not parts:
            return _NOTHING
        forms: Counter[str] = Counter()
        for part in parts:
            forms.update(part.forms)
        return StemCounts(
            sum(part.documents for part in parts), sum(part.sections for part in parts), forms
        )
