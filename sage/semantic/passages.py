"""The text of a section that a model is given, and the key under which its vector is kept."""

import hashlib
from collections.abc import Iterator

from sage.documents.plain_text import section_prose
from sage.search.catalog import DocumentEntry
from sage.search.sections import SectionEntry, StoredDocument

MAX_CHARACTERS = 2_000
"""More than any model here reads of a text."""
KEY_BYTES = 16
FORMAT = 3
"""To be raised whenever what a model is given of a section changes."""


def passages(entry: DocumentEntry, stored: StoredDocument) -> Iterator[str]:
    """What a document says of itself, then what each indexed section does under its headings."""
    names = f" {', '.join((*entry.aliases, *entry.tags))}." if entry.aliases or entry.tags else ""
    yield f"{entry.title}: {stored.summary}{names}"[:MAX_CHARACTERS]
    for section in stored.sections:
        yield _passage(entry.title, section)


def key_of(passage: str) -> bytes:
    """A name for what a passage says, the same on every machine."""
    data = passage.encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def _passage(title: str, section: SectionEntry) -> str:
    prose = section_prose(section.text[: 4 * MAX_CHARACTERS], 1 if section.heading else 0)
    heading = (
        section.heading if section.heading.startswith(title) else f"{title}: {section.heading}"
    )
    return f"{heading}\n{prose.whole}"[:MAX_CHARACTERS]
