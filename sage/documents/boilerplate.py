"""What says nothing of its own: tables of contents, lists of links, and the footers of a site.

A section that only points elsewhere is told by its lines; a footer by how many pages of its
layer end with it.
"""

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sage.documents.document import Page
from sage.documents.plain_text import RULE, below_heading

Footers = Mapping[tuple[str, str], frozenset[str]]
"""By source and layer, if it has any: its last lines, or their keys, that say nothing of a page.
Each layer stands alone: who may not see another must not learn of it from what is left out."""

_LISTING = re.compile(
    r"(?:table of )?contents|toc|on this page|in this (?:page|document|section|guide)"
    r"|related(?: \w+){0,2}|see also|further reading|(?:external |useful )?links|navigation"
    r"|目录|相关(?:文档|链接|内容|阅读)?|参见",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"[\d.]+[ \t]*")
_LINK_LINE = re.compile(
    # Possessive: a line of a million blanks would be tried once for each pair of them.
    r"[ \t]*+(?:[-*+]|\d{1,9}[.)])?[ \t]*+(?:\*\*)?"
    r"(?:\[[^\[\]]{0,500}\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])?"
    r"|`(?=[^`\n/.#]*[/.#])[^`\n]*+`|<?https?://\S+)"
    r"(?:\*\*)?[ \t]*(?P<after>[^\n]*)"
)
_MAX_REMARK = 120
FOOTER_LINES = 3
_MIN_FOOTER_DOCUMENTS = 4
_MIN_FOOTER_SHARE = 0.1
# The end of a fence or a table is no footer however often it is repeated.
_MAY_BE_FOOTER = re.compile(r"(?!```|~~~|\|)(?=[\W_]*+\w)")


def is_listing(heading: str, source: str, level: int) -> bool:
    """Whether a section only points elsewhere: a table of contents, related pages, links."""
    written = (line for line in below_heading(source, level) if line.strip())
    lines = (line for line in written if not RULE.match(line))
    if _LISTING.fullmatch(_NUMBERING.sub("", heading.strip(), count=1).strip(" :")):
        links = list(map(_points_elsewhere, lines))
        return bool(links) and sum(links) * 2 >= len(links)
    # Of most sections the first line says something: the others need no look.
    is_link = _only_points_elsewhere
    return level > 0 and is_link(next(lines, "")) and all(map(is_link, lines))


def last_lines(body: str) -> tuple[str, ...]:
    """The lines that may be a footer: the last ones of a document, rules left out."""
    lines = (line.strip() for line in reversed(body[-2000:].splitlines()) if not RULE.match(line))
    written = itertools.islice(filter(None, lines), FOOTER_LINES)
    return tuple(line for line in written if _MAY_BE_FOOTER.match(line))


def ending_keys(body: str) -> tuple[str, ...]:
    """A short name for each line that may be a footer, the same in every process."""
    return tuple(map(_line_key, last_lines(body)))


def footers_in(page: Page, footers: Footers) -> frozenset[str]:
    """The last lines of a page whose keys are those of footers of its layer."""
    known = footers.get((page.source, page.layer))
    if known is None:
        return frozenset()
    return frozenset(line for line in last_lines(page.body) if _line_key(line) in known)


def find_footers(endings: Iterable[tuple[str, str, tuple[str, ...]]]) -> Footers:
    """The last lines that so many documents of a layer share that they say nothing of one.

    Args:
        endings: for each document its source, its layer, and what `last_lines` or `ending_keys`
            gives.
    """
    layers: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for source, layer, lines in endings:
        layers.setdefault((source, layer), []).append(lines)
    shared = {layer: _shared(its_endings) for layer, its_endings in layers.items()}
    return {layer: lines for layer, lines in shared.items() if lines}


def _shared(endings: Sequence[tuple[str, ...]]) -> frozenset[str]:
    """The lines that many documents end with."""
    counts: Counter[str] = Counter()
    for lines in endings:
        counts.update(set(lines))
    least = max(_MIN_FOOTER_DOCUMENTS, len(endings) * _MIN_FOOTER_SHARE)
    return frozenset(line for line, count in counts.items() if count >= least)


def _line_key(line: str) -> str:
    return hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _points_elsewhere(line: str) -> bool:
    return _LINK_LINE.match(line) is not None


def _only_points_elsewhere(line: str) -> bool:
    """Whether a line says no more than a caption about what it points to."""
    match = _LINK_LINE.match(line)
    return match is not None and len(match["after"]) <= _MAX_REMARK
