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

from sage.containment import MARKDOWN_SUFFIXES
from sage.deadline import no_deadline
from sage.documents import Document, parse_document, slug
from sage.files import Rules, read_file, walk_layer
from sage.library import decoded
from sage.markdown import plain_text
from sage.masking import Masked, mask
from sage.patterns import ignore_rule
from sage.places import KNOWLEDGE_DIR
from sage.problems import Problem
from sage.settings import Settings

_BOM = "\ufeff"
_EXPLICIT_ANCHOR = re.compile(r"(?:\b(?:id|name)=[\"']?|\{#)([\w:.-]+)")
_INNER_HEADING = re.compile(r"^[ \t>*+-]+#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
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
    def anchors(self) -> frozenset[str]:
        """Every anchor that a reader's browser may know, also of headings in lists and quotes."""
        found = {section.anchor for section in self.document.sections}
        found.update(_EXPLICIT_ANCHOR.findall(self.text))
        found.update(slug(plain_text(words)) for words in _INNER_HEADING.findall(self.text))
        return frozenset(map(folded, found))

    def line(self, position: int) -> int:
        """The line of a position in the text, counted from 1."""
        return bisect.bisect_right(self._line_starts, position)

    def line_text(self, number: int) -> str:
        """A line of the text, without its end."""
        starts = [*self._line_starts, len(self.text)]
        return self.text[starts[number - 1] : starts[number]].rstrip("\r\n")

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
    pages: tuple[Page, ...]
    problems: tuple[Problem, ...]
    outside: tuple[tuple[str, int], ...]
    """What lies in no layer: a page, or a folder with the number of its pages."""
    _existing: dict[str, bool] = field(default_factory=dict)
    _others: dict[str, Page | None] = field(default_factory=dict)

    @cached_property
    def by_path(self) -> dict[str, Page]:
        """The pages by their paths."""
        return {page.path: page for page in self.pages}

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """The paths of the pages by their last part, in lower case."""
        found: dict[str, list[str]] = {}
        for path in self.by_path:
            found.setdefault(posixpath.basename(path).lower(), []).append(path)
        return found

    def page(self, path: str) -> Page | None:
        """The page at a path below the root, in a layer or not; None when that is no page."""
        if path in self.by_path:
            return self.by_path[path]
        if path not in self._others:
            self._others[path] = self._read_other(path)
        return self._others[path]

    def _read_other(self, path: str) -> Page | None:
        if not path.lower().endswith(MARKDOWN_SUFFIXES):
            return None
        read = _read_page(self.settings, path, "")
        return read if isinstance(read, Page) else None

    def exists(self, relative: str) -> bool:
        """Whether something lies at a normal path below the root."""
        known = self._existing.get(relative)
        if known is None:
            known = self._existing[relative] = os.path.lexists(self.settings.root / relative)
        return known


def folded(anchor: str) -> str:
    """An anchor for comparison: GitLab and mkdocs join hyphens that GitHub keeps apart."""
    return re.sub(r"[-_]+", "-", anchor.lower()).strip("-")


def read_base(settings: Settings) -> Base:
    """Read every page of every layer, whatever is wrong with it."""
    limits = settings.limits
    walk_rules = Rules(limits.max_file_bytes, limits.max_files, ignore_rule(settings.ignore))
    pages: list[Page] = []
    problems: list[Problem] = []
    for layer in settings.layers:
        walk = walk_layer(settings.root, layer, walk_rules, no_deadline())
        problems += walk.problems
        for source in walk.files:
            page = _read_page(settings, source.path, source.layer)
            if isinstance(page, Problem):
                problems.append(page)
            else:
                pages.append(page)
                problems += page.document.problems
    outside = tuple(_outside(settings, walk_rules))
    return Base(settings, tuple(pages), tuple(problems), outside)


def _read_page(settings: Settings, path: str, layer: str) -> Page | Problem:
    try:
        read = read_file(settings.root, path, settings.limits.max_file_bytes)
        if read is None:
            return Problem(path, "being-written", "is being written; run it again")
        text = decoded(read[0]).lstrip(_BOM)
    except OSError as error:
        reason = error.strerror or str(error)
        return Problem(path, "unreadable", f"cannot be read: {reason}")
    except ValueError as error:
        return Problem(path, "not-text", f"left out: {error}")
    return Page(parse_document(text, path, layer), text)


def _outside(settings: Settings, walk_rules: Rules) -> Iterator[tuple[str, int]]:
    """The markdown beside the layers."""
    for path in sorted(settings.knowledge_dir.iterdir()):
        if path.name in settings.layers or path.name.startswith("."):
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
