"""A page as it is written into another file: its headings lower, its links leading back.

What is left open at its end is closed, and a mark of ours in it is only quoted: nothing that a page
says may reach over the place it is given.
"""

import posixpath
import re
from itertools import pairwise
from urllib.parse import quote

from sage.check.links import link_targets
from sage.check.masking import mask
from sage.context.passages import closer
from sage.documents.document import MAX_SUMMARY, Document
from sage.documents.markdown import parse_blocks
from sage.documents.plain_text import line_starts
from sage.sanitize import clean

_OUTSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|/")
_MOST_LEVEL = 6
_OWN_MARK = re.compile(r"<!--(?=[ \t]*sage:export)")


def page_text(document: Document, folder: str, level: int) -> str:
    """The body of a page below a heading of its title, for a file in a folder of the repository.

    Args:
        level: of the heading of the title; the page's own follow below it.
    """
    body = clean(document.body).strip("\n")
    body = _with_links(body, posixpath.dirname(document.path), folder)
    body = _lowered(body, document.title, level).strip("\n")
    body = _OWN_MARK.sub("<!-- quoted:", body)
    body += closer(body)
    heading = f"{'#' * level} {inline(document.title)}"
    return "\n\n".join(filter(None, (heading, body, f"Source: {page_link(document, folder)}")))


def page_line(document: Document, folder: str) -> str:
    """One line that names a page and what it is about."""
    summary = _short(" ".join(clean(document.summary).split()))
    globs = ", ".join(f"`{one}`" for one in document.meta.applies_to[:5] if "`" not in one)
    line = f"- [{inline(document.title)}]({address(document.path, folder)})"
    line += f": {_OWN_MARK.sub('<!-- quoted:', summary)}" if summary else ""
    return line + (f" (for {globs})" if globs else "")


def page_link(document: Document, folder: str) -> str:
    """A link to a page that shows its topic."""
    return f"[{inline(document.topic)}]({address(document.path, folder)})"


def address(path: str, folder: str) -> str:
    """Where a file of the repository is, seen from a folder of it."""
    return quote(posixpath.relpath(path, folder or "."), safe="/.-_~!$&*+,;=:@")


def inline(words: str) -> str:
    """A text in one line that no bracket of it ends too early."""
    return re.sub(r"([\[\]\\<>`])", r"\\\1", " ".join(clean(words).split()))


def _with_links(body: str, own: str, folder: str) -> str:
    parts: list[str] = []
    at = 0
    for start, target in sorted(link_targets(mask(body).prose)):
        if start < at or _OUTSIDE.match(target) or not target:
            continue
        path, hash_mark, anchor = target.partition("#")
        moved = posixpath.relpath(
            posixpath.normpath(posixpath.join(own or ".", path)), folder or "."
        )
        moved += "/" if path.endswith("/") else ""
        parts += [body[at:start], moved, hash_mark, anchor]
        at = start + len(target)
    return "".join([*parts, body[at:]])


def _lowered(body: str, title: str, level: int) -> str:
    """The text with its headings below a level; a first one that says the title is left out."""
    headings = [block for block in parse_blocks(body) if block.kind == "heading"]
    if not headings:
        return body
    starts = line_starts(body)
    lines = [body[start:end] for start, end in pairwise(starts)]
    if headings[0].text == title and not "".join(lines[: headings[0].start]).strip():
        first = headings.pop(0)
        lines[first.start : first.end] = [""] * (first.end - first.start)
    least = min((block.level for block in headings), default=1)
    for block in headings:
        lowered = min(_MOST_LEVEL, block.level - least + level + 1)
        lines[block.start : block.end] = _heading(lines[block.start : block.end], lowered)
    return "".join(lines)


def _heading(lines: list[str], level: int) -> list[str]:
    """The lines of a heading, as many as before, with another level."""
    first = lines[0].lstrip(" ")
    if first.startswith("#"):
        return [f"{'#' * level}{first.lstrip('#')}", *lines[1:]]
    words = " ".join(line.strip() for line in lines[:-1])
    return [f"{'#' * level} {words}\n", *([""] * (len(lines) - 1))]


def _short(text: str) -> str:
    if len(text) <= MAX_SUMMARY:
        return text
    return f"{text[:MAX_SUMMARY].rsplit(' ', 1)[0]} …"
