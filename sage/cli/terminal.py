"""Rich's home: how lines, tables and markdown are printed. In a pipe everything is plain text."""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sage.sanitize import clean, json_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.text import Text

Progress = Callable[[int, int], None]
Row = tuple[str, ...]
Titles = Callable[[], Mapping[str, str]]
Piece = tuple[str, str]
"""A text and the style it has on a terminal."""
# A build of fewer documents is over before a bar would be read.
MANY_DOCUMENTS = 300
# A last column narrower than this goes below its row instead.
NARROWEST_COLUMN = 24

notes = logging.getLogger("sage.notes")
_bars: "list[Bar]" = []


class _Notes(logging.Handler):
    """Prints to what stderr is now, not to what it was when logging began."""

    def emit(self, record: logging.LogRecord) -> None:
        print_error(record.getMessage())


def begin_notes() -> None:
    """Let notes go to stderr, and details nowhere."""
    notes.handlers = [_Notes()]
    notes.propagate = False
    notes.setLevel(logging.WARNING)


def say_less() -> None:
    """No notes and no hints from now on."""
    notes.setLevel(logging.ERROR)


def say_more() -> None:
    """Details from now on."""
    notes.setLevel(logging.INFO)


def is_quiet() -> bool:
    """Whether only what was asked for is to be printed."""
    return not notes.isEnabledFor(logging.WARNING)


def is_verbose() -> bool:
    """Whether details are wanted."""
    return notes.isEnabledFor(logging.INFO)


def print_note(message: str) -> None:
    """Something worth knowing beside the answer, on stderr; not when asked to be quiet."""
    notes.warning("%s", message)


def print_detail(message: str) -> None:
    """What was used and found, on stderr; only when asked to be verbose."""
    notes.info("%s", message)


def print_error(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"sage: {' '.join(clean(message).splitlines())}\n")


def print_json(answer: object) -> None:
    """The exact object, for programs."""
    sys.stdout.write(json_text(answer, indent=2) + "\n")


def print_line(*pieces: Piece, indent: int = 0) -> None:
    """Pieces of text with their styles; on a terminal what is too long goes on at the indent.

    Lines break between words only: a path or a command can be copied whole.
    """
    if not sys.stdout.isatty():
        sys.stdout.write("".join(clean(text) for text, _ in pieces) + "\n")
        return
    from rich.text import Text

    _print_wrapped(Text.assemble(*((clean(text), style) for text, style in pieces)), indent)


def print_marked(text: str, words: Sequence[str], indent: int = 0) -> None:
    """A text with all forms of some words marked."""
    if not sys.stdout.isatty():
        sys.stdout.write(" " * indent + clean(text) + "\n")
        return
    from rich.text import Text

    marked = Text(" " * indent + clean(text))
    for word in words:
        # Marks other endings of the word too: the search found them by its stem.
        stem = re.escape(word[: max(3, len(word) - 2)])
        marked.highlight_regex(re.compile(rf"\b{stem}\w*", re.IGNORECASE), "bold yellow")
    _print_wrapped(marked, indent)


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    for row in _padded(rows):
        _print_row(row, ("bold", ""))


def print_table(heading: Row, rows: Sequence[Row]) -> None:
    """Rows under a heading; no cell is ever cut."""
    first, *rest = _padded([heading, *rows])
    _print_row(first, ("bold",) * len(heading))
    for row in rest:
        _print_row(row, ("",) * len(heading))


def print_content(content: str, titles: Titles | None = None) -> None:
    """Markdown: rendered and paged on a terminal, as it is in a pipe.

    Args:
        titles: finds the titles of pages by their paths, for those that begin without a heading.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(content + "\n")
        return
    console = _console()
    if content.count("\n") < console.height:
        _print_markdown(console, content, titles)
        return
    os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no pager for one page
    with console.pager(styles=True):
        _print_markdown(console, content, titles)


def index_progress() -> Progress | None:
    """A bar for a long build when a person is watching; None when nobody is."""
    return progress_bar("indexing")


def progress_bar(name: str) -> Progress | None:
    """A bar for work on many documents when a person is watching; None when nobody is."""
    if is_quiet() or not sys.stderr.isatty():
        return None
    bar = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if total < MANY_DOCUMENTS:
            return
        if bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            bar = Bar(console=Console(stderr=True), transient=True)
            bar.add_task(name, total=total)
            bar.start()
            _bars.append(bar)
        bar.update(bar.task_ids[0], completed=done)
        if done >= total:
            bar.stop()

    return show


def stop_bars() -> None:
    """Take away bars of work that did not come to its end: what is said next would go with them."""
    while _bars:
        _bars.pop().stop()


def _print_markdown(console: "Console", content: str, titles: Titles | None) -> None:
    """The lines that say where a text comes from are comments, which Markdown does not show."""
    from rich.markdown import Markdown
    from rich.segment import Segment, Segments
    from rich.text import Text

    from sage.sanitize import split_at_comments

    def show(text: str) -> None:
        # Markdown turns `&#x202e;` into the character, after the text was cleaned.
        shown = console.render(Markdown(text))
        parts = (Segment(clean(part.text), part.style, part.control) for part in shown)
        console.print(Segments(parts), end="")

    head, pages = split_at_comments(content)
    if head.strip():
        show(head)
    is_untitled = any(not text.lstrip().startswith("#") for _, _, text in pages)
    known = titles() if titles is not None and is_untitled else {}
    for path, lines, text in pages:
        console.print(Text(path + lines, style="dim"), soft_wrap=True)
        if not lines and path in known and not text.lstrip().startswith("#"):
            console.print(Text(clean(known[path]), style="bold"), soft_wrap=True)
        show(text)


def _print_row(cells: Row, styles: Row) -> None:
    """One row whose last cell may be long; every other one is padded to its column."""
    first, last = cells[:-1], cells[-1]
    indent = sum(len(cell) + 2 for cell in first)
    if not sys.stdout.isatty():
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
        return
    pieces = [(f"{cell}  ", style) for cell, style in zip(first, styles, strict=False)]
    if _console().width - indent >= NARROWEST_COLUMN:
        print_line(*pieces, (last, styles[-1]), indent=indent)
        return
    print_line(*((text.rstrip() if at == len(pieces) - 1 else text, style)
                 for at, (text, style) in enumerate(pieces)), indent=2)  # fmt: skip
    print_line((f"    {last}", styles[-1]), indent=4)


def _padded(rows: Sequence[Row]) -> Iterator[Row]:
    cleaned = [tuple(map(clean, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    for row in cleaned:
        padded = (f"{cell:<{width}}" for cell, width in zip(row[:-1], widths, strict=False))
        yield (*padded, row[-1])


def _print_wrapped(text: "Text", indent: int) -> None:
    """Lines that go on at the indent; Rich's own wrapping breaks words that are too long."""
    from rich.text import Text

    console = _console()
    for line in text.split("\n", allow_blank=True):
        first, *rest = line.divide(_breaks(line.plain, console.width, indent))
        for part in (first, *(Text(" " * indent) + part for part in rest)):
            part.rstrip()
            console.print(part, soft_wrap=True)


def _breaks(line: str, width: int, indent: int) -> Iterator[int]:
    """Where a line is broken: before a word that would pass the width."""
    from rich.cells import cell_len

    at, is_first = 0, True
    for word in re.finditer(r"(?:^\s*+)?\S+\s*", line):
        length = cell_len(word.group().rstrip())
        if not is_first and at + length > width:
            yield word.start()
            at = indent
        at += cell_len(word.group())
        is_first = False


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)
