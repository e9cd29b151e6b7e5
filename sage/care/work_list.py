"""The work list of whoever looks after the base: what to do, in order, and what settles each.

Only pages of the repository's own source are work: those of others are read, never written.
"""

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sage.care.history import History, day
from sage.care.usage import UsageSummary
from sage.documents.document import Document
from sage.documents.scopes import matching_glob
from sage.documents.topics import topic_parts
from sage.errors import counted
from sage.git import Commit
from sage.notes.duplicates import Duplicate, duplicates
from sage.notes.links import Link, Links
from sage.values import OWN

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness

KINDS: Mapping[str, str] = {
    "review": "Review is due",
    "code": "Code changed since the page did",
    "unanswered": "Asked and not answered",
    "superseded": "Links to replaced pages",
    "duplicate": "Sections that say the same",
    "orphan": "Pages that nothing links to or from",
    "unread": "Pages that nobody reads",
    "draft": "Drafts that wait for review",
}
"""The kinds of work in the order they are listed, each with its heading."""
_NEXT_REVIEW = timedelta(days=182)
_MOST_DUPLICATES = 50
_MOST_FILES = 20_000
"""Changed files that are compared with the scopes of pages, the newest first."""
_SHOWN_FILES = 3
_NAMED = re.compile(r"`([\w./@+-]{3,200})`")
_WILD = re.compile(r"[*?{\[]")


class Task(NamedTuple):
    """One thing to do."""

    kind: str
    topic: str
    """Empty where no page is to blame."""
    path: str
    line: int
    what: str
    command: str
    """What settles it, after somebody looked."""


@dataclass(frozen=True)
class CareEvidence:
    """Everything that the list is made from."""

    documents: Sequence[Document]
    history: History
    changed_files: Mapping[str, Commit]
    """The newest commit of the files beside the pages."""
    usage: UsageSummary | None
    is_answered: Callable[[str], bool]
    """Whether the base answers a query now."""
    today: date
    nearness: "Callable[[], Nearness | None]" = lambda: None
    """Tells what is near in meaning, where that is known."""

    @cached_property
    def in_force(self) -> list[Document]:
        """The pages that are settled knowledge."""
        return [one for one in self.documents if _state(one) == "published"]

    @cached_property
    def own(self) -> list[Document]:
        """Those in force that can be written here."""
        return [one for one in self.in_force if _is_own(one)]

    @cached_property
    def links(self) -> list[Link]:
        """Every link of a page in force to another page."""
        links = Links(self.documents)
        return [link for document in self.in_force for link in links.of(document)]


def work_list(evidence: CareEvidence, kinds: Sequence[str] = tuple(KINDS)) -> list[Task]:
    """What there is to do, in order."""
    finders = {
        "review": _reviews,
        "code": _code,
        "unanswered": _unanswered,
        "superseded": _superseded,
        "duplicate": _duplicates,
        "orphan": _orphans,
        "unread": _unread,
        "draft": _drafts,
    }
    return [task for kind in KINDS if kind in kinds for task in finders[kind](evidence)]


def _reviews(evidence: CareEvidence) -> Iterator[Task]:
    due = []
    for document in evidence.own:
        try:
            on = date.fromisoformat(document.meta.review_by)
        except ValueError:
            continue
        if on < evidence.today:
            due.append((on, document))
    following = evidence.today + _NEXT_REVIEW
    for on, document in sorted(due, key=lambda one: (one[0], one[1].topic)):
        by = f", owner {document.meta.owner}" if document.meta.owner else ""
        command = f"sage accept {_name(document)} --review-by {following}"
        yield _task("review", document, f"review was due on {on}{by}", command)


def _code(evidence: CareEvidence) -> Iterator[Task]:
    """Pages whose files changed after they did, the longest behind first."""
    pages = {document.path for document in evidence.documents}
    newest_first = sorted(
        ((commit.seconds, path) for path, commit in evidence.changed_files.items()), reverse=True
    )
    files = [one for one in newest_first if one[1] not in pages][:_MOST_FILES]
    behind = []
    for document in evidence.own:
        since = _changed_at(document, evidence.history)
        changed = _files_of(document, since, files) if since is not None else []
        if since is not None and changed:
            behind.append((since, document, changed))
    for since, document, changed in sorted(behind, key=lambda one: (one[0], one[1].topic)):
        shown = ", ".join(changed[:_SHOWN_FILES])
        more = f" and {len(changed) - _SHOWN_FILES} more" if len(changed) > _SHOWN_FILES else ""
        what = f"{shown}{more} changed since {day(since)}"
        yield _task("code", document, what, f"sage accept {_name(document)}")


def _unanswered(evidence: CareEvidence) -> Iterator[Task]:
    for query, count in evidence.usage.empty_queries if evidence.usage else ():
        if not evidence.is_answered(query):
            what = f"asked {counted(count, 'time')} and not found: {query}"
            command = f"sage note --title {shlex.quote(query)}"
            yield Task("unanswered", "", "", 0, what, command)


def _superseded(evidence: CareEvidence) -> Iterator[Task]:
    for link in evidence.links:
        successor = link.target.meta.superseded_by
        is_replaced = _state(link.target) == "superseded" and _is_own(link.page)
        if is_replaced and not _names(successor, link.page):
            instead = f", which {successor} replaces" if successor else ", which is superseded"
            command = f"${{EDITOR:-vi}} +{link.line} {shlex.quote(link.page.path)}"
            what = f"links to {link.target.topic}{instead}"
            yield _task("superseded", link.page, what, command, link.line)


def _duplicates(evidence: CareEvidence) -> Iterator[Task]:
    return itertools.islice(_doubled(evidence), _MOST_DUPLICATES)


def _doubled(evidence: CareEvidence) -> Iterator[Task]:
    pages = {document.topic: document for document in evidence.in_force}
    for one in duplicates(evidence.in_force, nearness=evidence.nearness()):
        first, second = _page_of(one.first, pages), _page_of(one.second, pages)
        if first is None or second is None:
            continue
        # Of two pages the second goes; where it cannot be written, the first.
        goes, stays = (second, first) if _is_own(second) else (first, second)
        if _is_own(goes):
            yield _task("duplicate", goes, _same(one), _settling(stays, goes))


def _same(one: Duplicate) -> str:
    if one.by:
        return f"{one.second} says in other words what {one.first} says (by {one.by})"
    said = f": “{one.sentences[0]}”" if one.sentences else ""
    return f"{one.second} says {one.likeness:.0%} the same as {one.first}{said}"


def _settling(stays: Document, goes: Document) -> str:
    if stays.path == goes.path:
        return f"${{EDITOR:-vi}} {shlex.quote(goes.path)}"
    return f"sage supersede {_name(goes)} {_name(stays)}"


def _page_of(topic: str, pages: Mapping[str, Document]) -> Document | None:
    return pages.get(topic.partition("#")[0])


def _orphans(evidence: CareEvidence) -> Iterator[Task]:
    """Pages without a link to or from another; none where pages do not link at all."""
    linked = {page.path for link in evidence.links for page in (link.page, link.target)}
    for document in evidence.own if linked else ():
        if document.path in linked or document.is_index or document.meta.applies_to:
            continue
        what = "no page links to it, and it links to none"
        yield _task("orphan", document, what, f"sage related {_name(document)}")


def _unread(evidence: CareEvidence) -> Iterator[Task]:
    """Pages that are older than the usage log and in none of its lines as read."""
    if evidence.usage is None or not evidence.usage.calls:
        return
    since = evidence.usage.since[:10]
    never = set(evidence.usage.never_read)
    for document in evidence.own:
        changed = evidence.history.day_of(document.path)
        is_newer = changed is not None and changed.isoformat() > since
        if document.path in never and not document.is_index and not is_newer:
            command = f"sage resolve {_name(document)} --reason 'nobody reads it'"
            yield _task("unread", document, f"nobody has read it since {since}", command)


def _drafts(evidence: CareEvidence) -> Iterator[Task]:
    for document in evidence.documents:
        if document.meta.status == "draft" and _is_own(document):
            since = document.meta.last_updated
            what = f"a draft{f' since {since}' if since else ''}: {document.title}"
            yield _task("draft", document, what, f"sage accept {_name(document)}")


def _changed_at(document: Document, history: History) -> int | None:
    """When a page was last changed or looked at, in seconds; None when git does not know it."""
    commit = history.last.get(document.path)
    if commit is None:
        return None
    try:
        said = date.fromisoformat(document.meta.last_updated)
    except ValueError:
        return commit.seconds
    end_of_day = datetime.combine(said, time.max, UTC)
    return max(commit.seconds, int(end_of_day.timestamp()))


def _files_of(document: Document, since: int, files: Sequence[tuple[int, str]]) -> list[str]:
    """The files of a page's scope, and those it names, that changed after it did."""
    globs = document.meta.applies_to
    starts = tuple(_WILD.split(glob.removeprefix("./"))[0] for glob in globs if "/" in glob)
    anywhere = len(starts) < len(globs)
    named = {name.removeprefix("./") for name in _NAMED.findall(document.body) if _is_code(name)}
    found = []
    for seconds, path in files:
        if seconds <= since:
            break
        in_scope = globs and (anywhere or path.startswith(starts)) and matching_glob(globs, path)
        if path in named or in_scope:
            found.append(path)
    return found


def _is_code(name: str) -> bool:
    return "/" in name and not name.casefold().endswith((".md", ".markdown"))


def _is_own(document: Document) -> bool:
    return document.source == OWN


def _state(document: Document) -> str:
    meta = document.meta
    return "superseded" if meta.superseded_by and meta.status == "published" else meta.status


def _names(name: str, document: Document) -> bool:
    """Whether a page is named: the one that replaces another may link to it."""
    parts = topic_parts(name.partition("#")[0])
    address = topic_parts(document.topic)
    return (bool(parts) and address[-len(parts) :] == parts) or name == document.meta.id != ""


def _name(document: Document) -> str:
    return shlex.quote(document.meta.id or document.topic)


def _task(kind: str, document: Document, what: str, command: str, line: int = 1) -> Task:
    return Task(kind, document.topic, document.path, line, what, command)
