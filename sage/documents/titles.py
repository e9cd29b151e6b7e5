"""Under which titles and aliases pages go, from the beginnings of their files, and their headings.

A title is needed of every page before one can be called unknown; parsing them all would take a
large base minutes. What is found here only says which pages to load.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sage.deadline import Deadline
from sage.documents.containment import close
from sage.documents.document import Document, name_title, slug
from sage.documents.files import SourceFile, Stamp, may_pass
from sage.documents.front_matter import split_front_matter
from sage.documents.markdown import plain_text
from sage.documents.nearest import Named
from sage.documents.plain_text import FENCE, SETEXT, split_heading_id
from sage.documents.topics import normalised

# Front matter may take 16 KB; a title stands right behind it.
_HEAD_BYTES = 20_000
_MAX_KEPT = 200_000
_HEADING = re.compile(r"^ {0,3}#{2,6}[ \t]([^\n]{1,300})$", re.MULTILINE)

ReadText = Callable[[SourceFile], str]
"""The text of a file; empty when it cannot be read."""


@dataclass(slots=True)
class Titled:
    """What a look at titles found."""

    files: list[SourceFile] = field(default_factory=list)
    """Those that go by the title."""
    failed: list[SourceFile] = field(default_factory=list)
    """Those that could not be read this time: one of them may have it."""
    unread: int = 0
    """How many were not reached in time."""


class Entry(Protocol):
    """A page as an index keeps it."""

    @property
    def path(self) -> str: ...
    @property
    def stamp(self) -> Stamp: ...
    @property
    def title(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


class KnownNames(NamedTuple):
    """What is known of one state of a file."""

    stamp: Stamp
    names: tuple[str, ...]
    normalised: tuple[str, ...]
    """The same as they are compared; folded once, not at every call."""


class Titles:
    """The titles and aliases of files, read once for each state of a file. Thread-safe."""

    def __init__(self, open_file: Callable[[SourceFile], int]) -> None:
        """Args:
        open_file: gives a descriptor of a listed file.
        """
        self._open = open_file
        self._known: dict[str, KnownNames] = {}
        self._entries: Mapping[str, Entry] = {}
        self._lock = threading.Lock()

    def learn(self, document: Document, stamp: Stamp) -> None:
        """Take the names of a document that was parsed anyway."""
        self._keep(document.path, stamp, (document.title, *document.meta.names))

    def consult(self, entries: Mapping[str, Entry]) -> None:
        """Take the names that an index keeps, each when it is asked for."""
        self._entries = entries

    def find(self, files: Sequence[SourceFile], title: str, deadline: Deadline) -> Titled:
        """The files that go by a title or an alias, as far as the deadline allows to know."""
        wanted = normalised(title)
        found = Titled()
        for position, source in enumerate(files):
            known = self._look_up(source)
            if known is None and deadline.expired:
                found.unread = sum(self._look_up(one) is None for one in files[position:])
                return found
            if known is None:
                known = self._read(source, found)
            if known is not None and wanted in known.normalised:
                found.files.append(source)
        return found

    def known(self, files: Iterable[SourceFile]) -> list[Named]:
        """The names that are known by now, with the topics they stand for."""
        looked_up = ((one, self._look_up(one)) for one in files)
        return [Named(name, one.topic) for one, known in looked_up if known for name in known.names]

    def _look_up(self, source: SourceFile) -> KnownNames | None:
        known = self._known.get(source.path)
        if known is not None and known.stamp == source.stamp:
            return known
        entry = self._entries.get(source.path)
        if entry is None or entry.stamp != source.stamp:
            return None
        return self._keep(entry.path, entry.stamp, (entry.title, *entry.aliases))

    def _keep(self, path: str, stamp: Stamp, names: tuple[str, ...]) -> KnownNames:
        before = self._known.get(path)
        if before is not None and (before.stamp, before.names) == (stamp, names):
            return before
        known = KnownNames(stamp, names, tuple(map(normalised, names)))
        with self._lock:
            if len(self._known) >= _MAX_KEPT and path not in self._known:
                self._known.clear()
            self._known[path] = known
        return known

    def _read(self, source: SourceFile, found: Titled) -> KnownNames | None:
        try:
            head = _head(self._open(source))
        except OSError as error:
            if may_pass(error):
                found.failed.append(source)
            return None
        return self._keep(source.path, source.stamp, _names_in(head, source.path))


def files_with_heading(
    files: Sequence[SourceFile], anchor: str, read: ReadText, deadline: Deadline
) -> list[SourceFile]:
    """The files that have a line like a heading with an id, as far as the deadline allows."""
    wanted = {anchor, slug(anchor)}
    return [
        source
        for source in files
        if not deadline.expired and any(one in wanted for _, one in _headings(read(source)))
    ]


def heading_lines(text: str) -> str:
    """The lines of a text that look like headings: all that is looked at here."""
    return "\n".join(line[0] for line in _HEADING.finditer(text))


def anchors_in(text: str) -> list[str]:
    """The ids of these headings, each once."""
    return list(dict.fromkeys(anchor for _, anchor in _headings(text)))


def headings_of(files: Sequence[SourceFile], read: ReadText, deadline: Deadline) -> Iterator[Named]:
    """The headings below the first level, and their topics, as far as the deadline allows."""
    for source in files:
        if deadline.expired:
            return
        for words, anchor in _headings(read(source)):
            topic = f"{source.topic}#{anchor}"
            yield Named(words, topic)
            if anchor != slug(words):
                yield Named(anchor, topic)


def _headings(text: str) -> Iterator[tuple[str, str]]:
    """The words and the id of every line that looks like a heading; code may look like one."""
    for line in _HEADING.finditer(text):
        words, named = split_heading_id(line[1].strip(" \t#\r"))
        yield words, named or slug(words)


def _head(descriptor: int) -> str:
    try:
        data = os.read(descriptor, _HEAD_BYTES)
    finally:
        close(descriptor)
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    return data.decode(encoding, "replace").lstrip("\ufeff")


def _names_in(head: str, path: str) -> tuple[str, ...]:
    split = split_front_matter(head, path)
    title = split.meta.title or _first_heading(head[split.body_start :]) or name_title(path)
    return (title, *split.meta.names)


def _first_heading(text: str) -> str:
    fence = ""
    above = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            if line.lstrip(" ").startswith("# "):
                return plain_text(split_heading_id(line.strip().strip("#"))[0])
            if above.strip() and "=" in line and SETEXT.match(line):
                return plain_text(split_heading_id(above)[0])
        above = line
    return ""
