"""How a markdown text may end: where it can be cut, what ends it without saying anything, and
what closes a fence or a comment that it leaves open.
"""

import re
from collections.abc import Collection, Iterator
from itertools import pairwise

from sage.markdown import Block, line_starts, list_items, parse_blocks

_RULE = re.compile(r"[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_MAY_STAY_OPEN = re.compile(r"^ {0,3}(?:```|~~~|<)", re.MULTILINE)
_CLOSERS = ("-->", "?>", "]]>", "</pre>", "</script>", "</style>", "</textarea>", ">")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def cut_points(text: str) -> list[int]:
    """The numbers of lines after which the text may end, in order, short of the whole."""
    blocks = parse_blocks(text)
    items = [block.end for block in list_items(text)]
    points: set[int] = set()
    for block in blocks:
        points.update(_inner_points(block, items))
    for block, following in pairwise(blocks):
        if not _leads_on(block, following):
            points.add(block.end)
    return sorted(points)


def without_ending(text: str, footers: Collection[str] = ()) -> str:
    """Without the blank lines, rules and footers that end it."""
    end = len(text)
    for start in reversed(line_starts(text)[:-1]):
        line = text[start:end].rstrip()
        if line and not _RULE.fullmatch(line) and line.strip() not in footers:
            break
        end = start
    return text[:end].rstrip()


def closer(text: str) -> str:
    """What closes the fence, comment or tag that runs to the end of a document."""
    if not _MAY_STAY_OPEN.search(text) or _is_closed(text):
        return ""
    blocks = parse_blocks(text)
    fence = _FENCE.match(text, line_starts(text)[blocks[-1].start]) if blocks else None
    candidates = (fence.group(1), *_CLOSERS) if fence else _CLOSERS
    return next(("\n" + one for one in candidates if _is_closed(f"{text}\n{one}")), "")


def _inner_points(block: Block, items: list[int]) -> Iterator[int]:
    if block.kind == "list":
        yield from (end for end in items if block.start < end < block.end)
    elif block.kind == "table":
        # The head, the line below it and one row are the least that is a table.
        yield from range(block.start + 3, block.end)


def _leads_on(block: Block, following: Block) -> bool:
    """Whether a block only announces the next: a heading, or a paragraph that ends in a colon."""
    if block.kind in ("heading", "rule"):
        return True
    return (
        block.kind == "paragraph"
        and following.kind not in ("heading", "paragraph", "rule")
        and block.text.rstrip("*_ \n").endswith((":", "："))
    )


def _is_closed(text: str) -> bool:
    blocks = parse_blocks(f"{text}\n\n# end")
    return bool(blocks) and blocks[-1].kind == "heading" and blocks[-1].text == "end"
