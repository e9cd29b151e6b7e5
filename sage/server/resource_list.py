"""The pages that `resources/list` names, from what the index knows of them.

A page that is not indexed as it is now is read; a list loads no other.
"""

from dataclasses import dataclass

from sage.deadline import Deadline
from sage.documents.document import reading_order
from sage.documents.source_roots import files_of
from sage.knowledge import KnowledgeBase


@dataclass(frozen=True, slots=True)
class ListedPage:
    """One page of the list."""

    topic: str
    title: str
    summary: str
    size: int
    """The bytes of its file."""


def list_pages(
    knowledge: KnowledgeBase, start: int, size: int, deadline: Deadline
) -> tuple[list[ListedPage], bool]:
    """So many pages from a position on, and whether more follow.

    Raises:
        TimeoutExceeded: those that are not indexed could not be read in time.
    """
    library, indexed = knowledge.library, knowledge.indexed
    files = files_of(library.refresh(knowledge.settings.layers, deadline))
    rank = {layer: position for position, layer in enumerate(library.layers)}
    pages: list[tuple[tuple[object, ...], ListedPage]] = []
    for source in files[start : start + size]:
        known = indexed.get(source.path)
        if known is not None and known.stamp == source.stamp:
            title, summary = known.title, known.summary
            order = reading_order(known.path, known.is_index, known.order)
        else:
            deadline.check()
            document = library.load(source, deadline)
            if document is None:
                continue
            title, summary, order = document.title, document.summary, document.reading_order
        page = ListedPage(source.topic, title, summary, source.stamp.size)
        pages.append(((rank[source.layer], order), page))
    pages.sort(key=lambda one: one[0])
    return [page for _, page in pages], start + size < len(files)
