"""Which pages a page links to, and in which line."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sage.documents.document import Document
from sage.documents.topics import addresses_of, named_document

LINK = re.compile(r"\]\(<?([^)\s>]{1,300})|`([\w./-]{1,200}\.md)`")


class Link(NamedTuple):
    """A link from one page to another."""

    page: Document
    target: Document
    line: int


class Links:
    """The links between the pages of one base."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._addresses = addresses_of(documents)

    def of(self, document: Document) -> Iterator[Link]:
        """The links of a page to other pages, in the order of its text."""
        for match in LINK.finditer(document.body):
            target = (match.group(1) or match.group(2)).partition("#")[0]
            if not target or "://" in target:
                continue
            found = named_document(self._documents, self._addresses, target, document)
            if found is not None and found.path != document.path:
                yield Link(document, found, _line(document, match.start()))


def _line(document: Document, position: int) -> int:
    for section in document.sections:
        if section.start <= position < section.end:
            return section.start_line + document.body.count("\n", section.start, position)
    return 1
