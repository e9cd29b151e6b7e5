"""A page accepted, resolved or superseded: only its front matter changes, in one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sage.atomic import read_bytes, replace_bytes
from sage.documents.document import Document
from sage.documents.topics import addresses_of, named_document
from sage.errors import InvalidInput, NotFound, did_you_mean
from sage.notes.draft import check_review_by
from sage.notes.front_matter_edit import set_keys
from sage.settings import Settings
from sage.values import OWN

_MAX_STEPS = 50


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page before and after."""

    document: Document
    before: bytes
    after: bytes
    said: str

    @property
    def is_needed(self) -> bool:
        """Whether the page differs from what it is to be."""
        return self.before != self.after


def page_of(documents: Sequence[Document], name: str) -> Document:
    """The page with that id, topic or path.

    Raises:
        NotFound: none has it; the message names the nearest.
        InvalidInput: several have that id.
    """
    wanted = name.strip()
    by_id = [document for document in documents if wanted and document.meta.id == wanted]
    if len(by_id) > 1:
        topics = ", ".join(document.topic for document in by_id[:5])
        raise InvalidInput(f"the id {name!r} is in {topics}; name one by its topic")
    found = by_id[0] if by_id else None
    if found is None and wanted:
        found = named_document(documents, addresses_of(documents), wanted)
    if found is None:
        known = [d.meta.id for d in documents if d.meta.id] + [d.topic for d in documents]
        raise NotFound(
            f"no page has the id or topic {name!r}{did_you_mean(wanted, known)}; sage ls lists them"
        )
    return found


def accepted(
    settings: Settings, document: Document, today: date, review_by: str = ""
) -> PageChange:
    """A page that somebody looked at and found right: a draft becomes settled knowledge.

    Raises:
        InvalidInput: the day of the next review is none.
    """
    values = {"status": "published", "last_updated": today.isoformat()}
    if review_by:
        check_review_by(review_by)
        values["review_by"] = review_by
    return _changed(settings, document, values, "is published")


def resolved(settings: Settings, document: Document, reason: str, today: date) -> PageChange:
    """A page whose matter is settled: it leaves the contexts, and stays findable and marked."""
    values = {"status": "resolved", "resolved_on": today.isoformat()}
    if reason.strip():
        values["resolution"] = " ".join(reason.split())
    return _changed(settings, document, values, "is resolved")


def superseded(
    settings: Settings,
    documents: Sequence[Document],
    document: Document,
    by: Document,
    reason: str = "",
) -> PageChange:
    """A page that another one replaces, the one at the end of the chain where there is one.

    Raises:
        InvalidInput: the other page is, in the end, replaced by this one.
    """
    last = _in_force(documents, by, document)
    values = {"status": "superseded", "superseded_by": last.topic}
    if reason.strip():
        values["resolution"] = " ".join(reason.split())
    return _changed(settings, document, values, f"is superseded by {last.topic}")


def carry_out(settings: Settings, change: PageChange) -> Path:
    """Write the page: whoever reads sees the old bytes or the new.

    Raises:
        ConfigError: it was changed meanwhile, a link is in the way, or it cannot be written.
    """
    path = settings.root / change.document.path
    if change.is_needed:
        replace_bytes(path, change.before, change.after, settings.root)
    return path


def _changed(
    settings: Settings, document: Document, values: dict[str, str], said: str
) -> PageChange:
    if document.source != OWN:
        raise InvalidInput(
            f"{document.topic} is a page of the source {document.source}, which is only read; "
            f"change it there, or write a page of that topic here"
        )
    before = read_bytes(settings.root / document.path, settings.root)
    if before is None:
        raise NotFound(f"{document.path} is gone")
    return PageChange(document, before, set_keys(before, values), f"{document.topic} {said}")


def _in_force(documents: Sequence[Document], by: Document, replaced: Document) -> Document:
    current = by
    for _ in range(_MAX_STEPS):
        if current.path == replaced.path:
            raise InvalidInput(
                f"{by.topic} is itself replaced by {replaced.topic}; change that one first"
            )
        if not current.meta.superseded_by:
            return current
        current = page_of(documents, current.meta.superseded_by)
    raise InvalidInput(f"the pages that replace {by.topic} go in a circle")
