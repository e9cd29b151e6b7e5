"""What the base already says on a note: what is alike, what shares its scope, what may disagree.

It lists and does not judge: whether two sentences contradict each other is a person's call.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sage.answers import KnownPage
from sage.deadline import Deadline, no_deadline
from sage.documents.document import Document, section_topic
from sage.documents.scopes import matching_glob
from sage.notes.draft import Note
from sage.notes.similarity import matter_of, share_held, words_of

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness

ALIKE = 0.5
"""The share of a note's matter above which a section is shown as saying much the same."""
_SHARED = 0.5
"""The share of a note's words that a sentence on its matter holds."""
MOST = 5
_NEVER = frozenset({"never", "not", "don", "avoid", "no", "without", "forbidden", "wrong", "nor"})
_ALWAYS = frozenset({"always", "must", "every", "do", "use", "prefer", "required", "should"})
_SENTENCE = re.compile(r"[^.!?。\n]{3,400}")


@dataclass(frozen=True, slots=True)
class Known:
    """Something that the base says already."""

    why: str
    """alike, near in meaning, same files, or may disagree."""
    topic: str
    title: str
    likeness: float
    sentence: str = ""

    @property
    def answer(self) -> KnownPage:
        """The same as an object for programs."""
        told = KnownPage(
            why=self.why, topic=self.topic, title=self.title, likeness=round(self.likeness, 2)
        )
        if self.sentence:
            told["sentence"] = self.sentence
        return told


def known_about(
    note: Note,
    documents: Sequence[Document],
    deadline: Deadline | None = None,
    nearness: "Nearness | None" = None,
) -> list[Known]:
    """What to look at before a note is written, the most alike first.

    Args:
        nearness: what is near in meaning; None to go by words alone.

    Raises:
        TimeoutExceeded: not every page could be compared in time.
    """
    deadline = deadline or no_deadline()
    words = words_of(f"{note.title} {note.text}")
    matter = matter_of(f"{note.title} {note.text}")
    alike: list[Known] = []
    disagreeing: list[Known] = []
    for document in documents:
        deadline.check()
        for section in document.sections:
            text = document.text(section)
            topic = section_topic(document, section)
            near = share_held(matter, text)
            if near >= ALIKE:
                alike.append(Known("alike", topic, document.title, near))
            sentence = _opposite(words, text)
            if sentence:
                disagreeing.append(Known("may disagree", topic, document.title, near, sentence))
    scoped = [
        Known("same files", document.topic, document.title, 0.0)
        for document in documents
        if any(matching_glob(document.meta.applies_to, name) for name in note.files)
    ]
    alike.sort(key=lambda one: (-one.likeness, one.topic))
    disagreeing.sort(key=lambda one: (-one.likeness, one.topic))
    meant = _meant(note, documents, alike[:MOST], nearness) if nearness is not None else []
    return [*alike[:MOST], *meant, *scoped[:MOST], *disagreeing[:MOST]]


def _meant(
    note: Note, documents: Sequence[Document], alike: Sequence[Known], nearness: "Nearness"
) -> list[Known]:
    """The sections that are about the same in other words."""
    shown = {one.topic for one in alike}
    return [
        Known("near in meaning", near.topic, near.title, near.similarity)
        for near in nearness.to_text(f"{note.title}\n{note.text}".strip(), documents, MOST)
        if near.topic not in shown
    ]


def _opposite(words: Sequence[str], text: str) -> str:
    """A sentence on the same matter that says never where the note says always, or reversed."""
    said = set(words)
    is_negative = bool(said & _NEVER)
    matter = matter_of(" ".join(said - _NEVER - _ALWAYS))
    if len(matter) < 2:
        return ""
    for match in _SENTENCE.finditer(text):
        held = set(words_of(match.group()))
        if is_negative == bool(held & _NEVER):
            continue
        if share_held(matter, match.group()) >= _SHARED:
            return " ".join(match.group().split())
    return ""
