"""Rules about what a page points to: links, anchors and paths in backticks.

A finding must be true: what may be a placeholder, or lie where nobody can look, is let pass.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from sage.check.masking import Span
from sage.check.pages import Base, CheckedPage, folded
from sage.check.rules import DEAD_ANCHOR, DEAD_LINK, DEAD_PATH
from sage.documents.problems import Problem
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES

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
_PAGE_SUFFIXES = ("md", "markdown")
_CODE_SUFFIXES = frozenset(
    "txt|rst|py|pyi|toml|yaml|yml|json|sh|js|jsx|ts|tsx|go|rs|java|kt|rb|sql|css|html".split("|")  # noqa: SIM905 - one line
)
_PATH = re.compile(r"(?P<path>[\w.@+/-]{3,400}+)(?:#[\w-]++|:\d++(?:-\d++)?)?")


class Target(NamedTuple):
    """Where a link leads: a path below the root, empty for the page itself, and an anchor."""

    path: str
    anchor: str


def check_links(page: CheckedPage, base: Base) -> Iterator[Problem]:
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


def check_paths(page: CheckedPage, base: Base) -> Iterator[Problem]:
    """Paths in backticks that begin at something real and end at nothing."""
    for span in page.masked.spans:
        path = _path_in(span.text)
        if not path or _PLACEHOLDER.search(path):
            continue
        folders = _starts(page)
        if any(_leads_somewhere(base, place) for place in _joined(folders, path)):
            continue
        is_page = path.rpartition(".")[2] in _PAGE_SUFFIXES
        if _is_anchored(base, folders, path, is_page) and not _ends_a_page(base, path):
            message = f"`{path}` does not exist{_suggestion(page, base, path)}"
            yield DEAD_PATH.problem(page.path, message, page.line(span.start))


def _path_in(code: str) -> str:
    """The path that a code span holds: folders and a file of a known kind; empty when none."""
    match = _PATH.fullmatch(code.strip("`").strip())
    path = match["path"] if match else ""
    names = [part for part in path.split("/") if part not in (".", "..")]
    stem, _, suffix = names[-1].rpartition(".") if names else ("", "", "")
    known = suffix in _PAGE_SUFFIXES or suffix in _CODE_SUFFIXES
    return path if known and stem and "/" in path and all(names) else ""


def link_targets(prose: str) -> Iterator[tuple[int, str]]:
    """What links and definitions of links lead to, and where in the text that is written."""
    for match in _links(prose):
        target = match["target"]
        bare = target.strip("<>")
        yield match.start("target") + target.index(bare), bare


def _targets(prose: str) -> Iterator[Span]:
    for match in _links(prose):
        yield Span(match["target"].strip("<>"), match.start())


def _links(prose: str) -> Iterator[re.Match[str]]:
    for pattern in (_LINK, _DEFINITION):
        yield from pattern.finditer(prose)


def _target(page: CheckedPage, raw: str) -> Target | None:
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


def _leads_somewhere_on_a_site(page: CheckedPage, base: Base, raw: str, target: Target) -> bool:
    """Whether it may be an address of a site made of these pages, each a folder of its own name."""
    path = raw.partition("#")[0]
    if path.startswith("/"):
        names_a_page = path.lower().endswith(MARKDOWN_SUFFIXES)
        return not names_a_page and not base.exists(target.path.split("/")[0])
    folder = posixpath.splitext(page.path)[0]
    return path.endswith("/") and _leads_somewhere(
        base, posixpath.normpath(posixpath.join(folder, unquote(path)))
    )


def _has_anchor(page: CheckedPage, base: Base, target: Target) -> bool:
    named = base.page(target.path) if target.path else page
    if named is None:
        return True  # not a page that can be read: its headings are unknown
    return target.anchor.lower() == "top" or folded(target.anchor) in named.anchors


def _near_anchor(page: CheckedPage, base: Base, target: Target) -> str:
    named = (base.page(target.path) if target.path else None) or page
    near = named.near_anchor(target.anchor)
    return f"; did you mean #{near}?" if near else ""


def _starts(page: CheckedPage) -> list[str]:
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
    return path.lower().lstrip("./") in base.endings


def _suggestion(page: CheckedPage, base: Base, path: str) -> str:
    """The page that is meant: the only one of that name, or the one with the nearest path."""
    named = base.by_name.get(posixpath.basename(path).lower(), ())
    meant = named[0] if len(named) == 1 else base.near_paths.nearest(path)
    if not meant or meant == page.path:
        return ""
    return f"; did you mean {posixpath.relpath(meant, posixpath.dirname(page.path))}?"
