"""A knowledge base as the rules of `sage check` see it: every page with its exact text.

Unlike the library that answers from it, nothing is cached and nothing is waited for.
"""

import bisect
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sage.check.masking import Masked, mask
from sage.check.near_names import NearNames
from sage.deadline import no_deadline
from sage.documents.containment import read_file
from sage.documents.document import Document, parse_document, slug
from sage.documents.exported import EXPORTED, is_exported, without_export
from sage.documents.files import Rules
from sage.documents.library import decoded
from sage.documents.markdown import plain_text
from sage.documents.places import Place, Places
from sage.documents.problems import Problem
from sage.documents.source_roots import open_sources
from sage.documents.walk import walk_layer
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.sanitize import clean, is_clean
from sage.settings import Settings
from sage.values import OWN

_BOM = "\ufeff"
_EXPLICIT_ANCHOR = re.compile(r"(?:\b(?:id|name)=[\"']?|\{#)([\w:.-]+)")
_INNER_HEADING = re.compile(r"^[ \t>*+-]++#{1,6}[ \t]++([^\r\n]++)", re.MULTILINE)


@dataclass(frozen=True)
class CheckedPage:
    """A document and the text of its file, in which lines are counted."""

    document: Document
    text: str

    @property
    def path(self) -> str:
        """The path below the root, with forward slashes."""
        return self.document.path

    @cached_property
    def masked(self) -> Masked:
        """The text divided into prose, code and comments; front matter is neither."""
        start = len(self.text) - len(self.document.body)
        blank = "".join(c if c in "\r\n" else " " for c in self.text[:start])
        return mask(blank + self.document.body)

    @cached_property
    def cleaned(self) -> "CheckedPage":
        """The page as readers get it, with the same lines: what is removed hides nothing."""
        text = self.text.replace("\r\n", "\n").replace("\r", " ")
        if is_clean(text):
            return self
        text = clean(text)
        return CheckedPage(parse_document(text, self.path, self.document.layer), text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Every anchor that a reader's browser may know, also of headings in lists and quotes."""
        found = {section.anchor for section in self.document.sections}
        found.update(_EXPLICIT_ANCHOR.findall(self.text))
        for words in _INNER_HEADING.findall(self.text):
            found.add(slug(plain_text(words.rstrip().rstrip("#").rstrip())))
        return frozenset(map(folded, found))

    def near_anchor(self, anchor: str) -> str:
        """The anchor of the heading that most likely is meant; empty when none is close."""
        exact = self._letters_of_anchors.get(_letters(anchor), "")
        return exact or self._near_anchors.nearest(anchor)

    @cached_property
    def _letters_of_anchors(self) -> dict[str, str]:
        """The headings' anchors by their letters alone: numbers and hyphens are often mistaken."""
        anchors = [section.anchor for section in self.document.sections if section.anchor]
        return {_letters(one): one for one in reversed(anchors) if _letters(one)}

    @cached_property
    def _near_anchors(self) -> NearNames:
        return NearNames(section.anchor for section in self.document.sections if section.anchor)

    def line(self, position: int) -> int:
        """The line of a position in the text, counted from 1."""
        return bisect.bisect_right(self._line_starts, position)

    def line_text(self, number: int) -> str:
        """A line of the text, without its end."""
        starts = self._line_starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts


@dataclass(frozen=True)
class Base:
    """All pages of the layers, and what reading them found."""

    settings: Settings
    pages: tuple[CheckedPage, ...]
    problems: tuple[Problem, ...]
    outside: tuple[tuple[str, int], ...]
    """What lies in no layer: a page, or a folder with the number of its pages."""
    hidden: tuple[Place, ...] = ()
    """Where the pages lie that whoever asks may not know of."""
    _existing: dict[str, bool] = field(default_factory=dict)
    _others: dict[str, CheckedPage | None] = field(default_factory=dict)

    @cached_property
    def by_path(self) -> dict[str, CheckedPage]:
        """The pages by their paths."""
        return {page.path: page for page in self.pages}

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """The paths of the pages by their last part, in lower case."""
        found: dict[str, list[str]] = {}
        for path in self.by_path:
            found.setdefault(posixpath.basename(path).lower(), []).append(path)
        return found

    @cached_property
    def endings(self) -> frozenset[str]:
        """What a page's path ends with, after each of its folders, in lower case."""
        found: set[str] = set()
        for path in self.by_path:
            parts = path.lower().split("/")
            found.update("/".join(parts[at:]) for at in range(1, len(parts)))
        return frozenset(found)

    @cached_property
    def near_paths(self) -> NearNames:
        """The paths of the pages, to be asked for one that is nearly right."""
        return NearNames(self.by_path)

    def page(self, path: str) -> CheckedPage | None:
        """The page at a path below the root, in a layer or not; None when that is no page."""
        if path in self.by_path:
            return self.by_path[path]
        if self._is_hidden(path):
            return None
        if path not in self._others:
            self._others[path] = self._read_other(path)
        return self._others[path]

    def _read_other(self, path: str) -> CheckedPage | None:
        if not path.lower().endswith(MARKDOWN_SUFFIXES):
            return None
        read = _read_page(self.settings, path, "", "")
        return read if isinstance(read, CheckedPage) else None

    def exists(self, relative: str) -> bool:
        """Whether something lies at a normal path below the root; of what is hidden, always."""
        known = self._existing.get(relative)
        if known is None:
            known = self._is_hidden(relative) or os.path.lexists(self.settings.root / relative)
            self._existing[relative] = known
        return known

    def _is_hidden(self, path: str) -> bool:
        if path in self.by_path:
            return False
        return any(place.holds(path) or place.folder == path for place in self.hidden)


def folded(anchor: str) -> str:
    """An anchor for comparison: GitLab and mkdocs join hyphens that GitHub keeps apart."""
    return re.sub(r"[-_]+", "-", anchor.lower()).strip("-")


def _letters(anchor: str) -> str:
    return "".join(filter(str.isalpha, anchor.lower()))


def read_base(settings: Settings) -> Base:
    """Read every page of the repository's layers, whatever is wrong with it.

    The pages of further sources are checked where they are written; here it is only told when one
    of them is not there.
    """
    pages: list[CheckedPage] = []
    problems: list[Problem] = []
    outside: list[tuple[str, int]] = []
    for name, root in open_sources(settings).items():
        if name != OWN:
            problems += root.missing
            continue
        outside += [] if settings.is_narrowed else _outside(settings, root.rules)
        for layer in root.source.layers:
            listed = root.list_files(layer, no_deadline())
            problems += listed.problems
            read = [_read_page(settings, one.path, layer, one.topic) for one in listed.files]
            pages += [page for page in read if isinstance(page, CheckedPage)]
            problems += [page for page in read if isinstance(page, Problem)]
    problems += [problem for page in pages for problem in page.document.problems]
    return Base(settings, tuple(pages), tuple(problems), tuple(outside), tuple(_hidden(settings)))


def _hidden(settings: Settings) -> Iterator[Place]:
    """Where pages of the repository lie that whoever asks may not know of."""
    if not settings.is_narrowed:
        return
    repository = settings.repository
    places = Places(repository.layers, repository.layer_paths)
    for layer in repository.layers:
        if layer not in settings.layers:
            yield from places.of(layer)
    seen = [source.name for source in settings.served]
    for source in settings.further:
        if source.folder and source.name not in seen:
            yield Place(source.folder)


def _read_page(settings: Settings, path: str, layer: str, topic: str) -> CheckedPage | Problem:
    try:
        read = read_file(settings.root, path, settings.limits.max_file_bytes)
        if read is None:
            return Problem(path, "being-written", "is being written; run it again")
        if is_exported(read[0]):
            return Problem(path, *EXPORTED, level="note")
        text = without_export(decoded(read[0])).lstrip(_BOM)
    except OSError as error:
        reason = error.strerror or str(error)
        return Problem(path, "unreadable", f"cannot be read: {reason}")
    except ValueError as error:
        return Problem(path, "not-text", f"left out: {error}")
    return CheckedPage(parse_document(text, path, layer, topic), text)


def _outside(settings: Settings, walk_rules: Rules) -> Iterator[tuple[str, int]]:
    """The markdown beside the layers."""
    if not settings.knowledge_dir.is_dir():
        return
    for path in sorted(settings.knowledge_dir.iterdir()):
        if path.name in _served_folders(settings) or path.name.startswith("."):
            continue
        if walk_rules.ignores(path.name):
            continue
        relative = f"{KNOWLEDGE_DIR}/{path.name}"
        if path.is_dir() and not path.is_symlink():
            walk = walk_layer(settings.root, path.name, walk_rules, no_deadline())
            if walk.files:
                yield relative, len(walk.files)
        elif path.is_file() and path.suffix.lower() in MARKDOWN_SUFFIXES:
            yield relative, 0


def _served_folders(settings: Settings) -> set[str]:
    """The folders of the knowledge folder that layers are served from."""
    mapped = {path for paths in settings.layer_paths.values() for path in paths}
    inner = {path.split("/")[1] for path in mapped if path.startswith(f"{KNOWLEDGE_DIR}/")}
    return inner | {one for one in settings.repository_layers if one not in settings.layer_paths}
