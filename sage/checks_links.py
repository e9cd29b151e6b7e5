"""Rules about what a page points to: links, anchors and paths in backticks.

A finding must be true: what may be a placeholder, or lie where nobody can look, is let pass.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from sage.containment import MARKDOWN_SUFFIXES
from sage.masking import Span
from sage.pages import Base, Page, folded
from sage.places import KNOWLEDGE_DIR
from sage.problems import Problem
from sage.rules import DEAD_ANCHOR, DEAD_LINK, DEAD_PATH

_LINK = re.compile(
    r"(?<!\\)\[(?:[^\[\]\\]|\\.|\[[^\[\]]{0,200}\]){0,500}\]\([ \t]*"
    r"(?P<target><[^<>\n]{0,1000}>|[^\s()<>]{1,1000}(?:\([^\s()]{0,200}\)[^\s()]{0,200})?)"
    r"(?:\s+(?:\"[^\"]{0,300}\"|'[^']{0,300}'))?\s{0,20}\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[[^\]^\n]{1,200}\]:[ \t]*(?P<target><[^<>\n]+>|\S+)", re.MULTILINE
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_PLACEHOLDER = re.compile(
    r"[{}$*<>|]|\.\.\.|…|path/to|^path/"
    r"|(?:^|[/_-])(?:x{2,}|n{3,}|y{4}|name|file|foo|bar|your)(?=[/._-])",
    re.IGNORECASE,
)
_PAGE_SUFFIXES = "md|markdown"
_CODE_SUFFIXES = "txt|rst|py|pyi|toml|yaml|yml|json|sh|js|jsx|ts|tsx|go|rs|java|kt|rb|sql|css|html"
_PATH = re.compile(
    r"(?P<path>(?:\.{1,2}/)*[\w.@+-]+(?:/[\w.@+-]+)+"
    rf"\.(?:(?P<page>{_PAGE_SUFFIXES})|(?:{_CODE_SUFFIXES})))"
    r"(?:#(?P<anchor>[\w-]+)|:\d+(?:-\d+)?)?"
)


class Target(NamedTuple):
    """Where a link leads: a path below the root, empty for the page itself, and an anchor."""

    path: str
    anchor: str


def check_links(page: Page, base: Base) -> Iterator[Problem]:
    """Links that lead to no file or no heading."""
    for raw, start in _targets(page.masked.prose):
        target = _target(page, raw)
        if target is None:
            continue
        line = page.line(start)
        if target.path and not _leads_somewhere(base, target.path):
            if _leads_somewhere_on_a_site(page, base, raw, target):
                continue
            message = f"{raw} does not exist{_suggestion(page, base, target.path)}"
            yield DEAD_LINK.problem(page.path, message, line)
        elif target.anchor and not _has_anchor(page, base, target):
            near = _near_anchor(page, base, target)
            yield DEAD_ANCHOR.problem(page.path, f"{raw}: no heading has that anchor{near}", line)


def check_paths(page: Page, base: Base) -> Iterator[Problem]:
    """Paths in backticks that begin at something real and end at nothing."""
    for span in page.masked.spans:
        match = _PATH.fullmatch(span.text.strip("`").strip())
        if match is None or _PLACEHOLDER.search(match["path"]):
            continue
        path = match["path"]
        folders = _starts(page)
        if any(_leads_somewhere(base, place) for place in _joined(folders, path)):
            continue
        if _is_anchored(base, folders, path, bool(match["page"])) and not _ends_a_page(base, path):
            message = f"`{path}` does not exist{_suggestion(page, base, path)}"
            yield DEAD_PATH.problem(page.path, message, page.line(span.start))


def _targets(prose: str) -> Iterator[Span]:
    for pattern in (_LINK, _DEFINITION):
        for match in pattern.finditer(prose):
            yield Span(match["target"].strip("<>"), match.start())


def _target(page: Page, raw: str) -> Target | None:
    """Where a link leads, if that is for us to know."""
    if not raw or _SCHEME.match(raw) or _PLACEHOLDER.search(raw):
        return None
    path, _, anchor = raw.partition("#")
    path = unquote(path.partition("?")[0])
    if not path:
        return Target("", unquote(anchor))
    if "/" not in path and "." not in path:
        return None  # [words](url): a word in the place of a target
    folder = "" if path.startswith("/") else posixpath.dirname(page.path)
    return Target(posixpath.normpath(posixpath.join(folder, path.lstrip("/"))), unquote(anchor))


def _leads_somewhere(base: Base, path: str) -> bool:
    if path.startswith(".."):
        return False
    return base.exists(path) or base.exists(f"{path}.md") or base.exists(f"{KNOWLEDGE_DIR}/{path}")


def _leads_somewhere_on_a_site(page: Page, base: Base, raw: str, target: Target) -> bool:
    """Whether it may be an address of a site made of these pages, each a folder of its own name."""
    path = raw.partition("#")[0]
    if path.startswith("/"):
        names_a_page = path.lower().endswith(MARKDOWN_SUFFIXES)
        return not names_a_page and not base.exists(target.path.split("/")[0])
    folder = posixpath.splitext(page.path)[0]
    return path.endswith("/") and _leads_somewhere(
        base, posixpath.normpath(posixpath.join(folder, unquote(path)))
    )


def _has_anchor(page: Page, base: Base, target: Target) -> bool:
    named = base.page(target.path) if target.path else page
    if named is None:
        return True  # not a page that can be read: its headings are unknown
    return target.anchor.lower() == "top" or folded(target.anchor) in named.anchors


def _near_anchor(page: Page, base: Base, target: Target) -> str:
    named = (base.page(target.path) if target.path else None) or page
    wanted = re.sub(r"[\W\d_]+", "", target.anchor.lower())
    for section in named.document.sections:
        if wanted and section.anchor and re.sub(r"[\W\d_]+", "", section.anchor) == wanted:
            return f"; did you mean #{section.anchor}?"
    return ""


def _starts(page: Page) -> list[str]:
    """The folders from which a path in backticks may be meant, the page's own first."""
    folder = posixpath.dirname(page.path)
    above = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        above.append(folder)
    return above


def _joined(folders: list[str], path: str) -> Iterator[str]:
    for folder in folders:
        yield posixpath.normpath(posixpath.join(folder, path))


def _is_anchored(base: Base, folders: list[str], path: str, is_page: bool) -> bool:
    """Whether a path begins in a folder that exists; code must lie two folders deep in those."""
    parent = posixpath.dirname(path)
    first = parent.split("/")[0]
    if first in (".", ".."):
        return is_page
    if not is_page and "/" not in parent:
        return False
    wanted = first if is_page else parent
    return any(base.exists(place) for place in _joined(folders, wanted))


def _ends_a_page(base: Base, path: str) -> bool:
    """Whether some page's path ends so: its topic is found by that name."""
    ending = "/" + path.lower().lstrip("./")
    named = base.by_name.get(posixpath.basename(ending), ())
    return any(known.lower().endswith(ending) for known in named)


def _suggestion(page: Page, base: Base, path: str) -> str:
    named = base.by_name.get(posixpath.basename(path).lower(), ())
    if len(named) != 1:
        return ""
    return f"; did you mean {posixpath.relpath(named[0], posixpath.dirname(page.path))}?"
