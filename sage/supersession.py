"""Which page is in force: from a page that was replaced to the one that replaces it."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from sage.documents import Document
from sage.topics import documents_titled, split_heading, topic_parts

Addresses = Mapping[tuple[str, ...], Document]


def named_document(
    documents: Sequence[Document], addresses: Addresses, name: str, near: Document | None = None
) -> Document | None:
    """The document that a topic, a path or a title means; a link from `near` may be relative."""
    topic, _ = split_heading(name)
    ways = [tuple(topic_parts(topic))]
    if near is not None:
        joined = posixpath.join(posixpath.dirname(near.path), topic)
        ways.insert(0, tuple(topic_parts(posixpath.normpath(joined))))
    found = next((addresses[way] for way in ways if way in addresses), None)
    if found is None and ways[-1]:
        ending = [one for parts, one in addresses.items() if parts[-len(ways[-1]) :] == ways[-1]]
        found = next(iter(ending or documents_titled(documents, topic)), None)
    return found


def addresses_of(documents: Iterable[Document]) -> Addresses:
    """Documents by the parts of their topics."""
    return {tuple(topic_parts(document.topic)): document for document in documents}


def successors(documents: Sequence[Document]) -> Mapping[str, Document]:
    """For the path of every page that another replaces, the page that is in force."""
    replaced = [document for document in documents if document.meta.superseded_by]
    if not replaced:
        return {}
    addresses = addresses_of(documents)
    steps = {
        document.path: named_document(documents, addresses, document.meta.superseded_by, document)
        for document in replaced
    }
    return {path: last for path in steps if (last := _last(path, steps)) is not None}


def _last(path: str, steps: Mapping[str, Document | None]) -> Document | None:
    """Follow the replacements to their end; a circle leads nowhere."""
    seen = {path}
    document = steps[path]
    while document is not None and document.path in steps:
        if document.path in seen:
            return None
        seen.add(document.path)
        document = steps[document.path]
    return document
