"""Rich's home: what a person sees. In a pipe everything is plain text."""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sage.answers import ContextAnswer, InfoAnswer, KnowledgeAnswer, LayerInfo, SearchAnswer
from sage.scrub import clean

if TYPE_CHECKING:
    from rich.console import Console

    from sage.evaluation import Evaluation
    from sage.explaining import Explanation

Progress = Callable[[int, int], None]
Row = tuple[str, ...]
# A build of fewer documents is over before a bar would be read.
MANY_DOCUMENTS = 300

notes = logging.getLogger("sage.notes")


class _Notes(logging.Handler):
    """Prints to what stderr is now, not to what it was when logging began."""

    def emit(self, record: logging.LogRecord) -> None:
        print_error(record.getMessage())


def print_json(answer: object) -> None:
    """The exact object, for programs."""
    sys.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2) + "\n")


def print_error(message: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"sage: {' '.join(clean(message).splitlines())}\n")


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


def print_content(content: str) -> None:
    """Markdown: rendered and paged on a terminal, as it is in a pipe."""
    if not sys.stdout.isatty():
        sys.stdout.write(content + "\n")
        return
    from rich.markdown import Markdown

    console = _console()
    if content.count("\n") < console.height:
        console.print(Markdown(content))
        return
    os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no pager for one page
    with console.pager(styles=True):
        console.print(Markdown(content))


def print_knowledge(answer: KnowledgeAnswer) -> None:
    """The content of documents, and on stderr what did not fit."""
    print_content(answer["content"])
    metadata = answer["metadata"]
    if not metadata["complete"]:
        print_note(
            f"not complete: {len(metadata['omitted'])} or more parts left out; "
            "see the last line, or allow more with --max-tokens or --timeout-ms"
        )


def print_results(query: str, answer: SearchAnswer) -> None:
    """Search results with the words of the query marked."""
    for result in answer["results"]:
        lines = "-".join(map(str, result["lines"]))
        _print_styled(f"{result['title']}", "bold", f"  {result['score']:.2f}")
        if result["heading"] != result["title"]:
            _print_styled(f"  {result['heading']}", "")
        _print_styled(f"  {result['path']}:{lines}  {result['topic']}", "dim")
        _print_marked(f"  {result['snippet']}\n", query)
    found = f"{len(answer['results'])} of {answer['total']} documents"
    note = f"; {answer['note']}" if "note" in answer else ""
    if not is_quiet():
        _print_styled(found + note, "dim")


def print_reasons(reasons: Sequence["Explanation"]) -> None:
    """What each result of a search owes its place to."""
    for one in reasons:
        _print_styled(one.path, "bold", f"  {one.score:.3f}")
        parts = f"document {one.document_part:.2f} + section {one.section_part:.2f}"
        _print_styled(f"  {one.heading}: ({parts}) x {one.standing:.2f}", "")
        rows = [
            (f"  {share.word}", f"in {share.documents} documents", _amounts(share.fields))
            for share in one.shares
        ]
        print_table(("  word", "rarity", "strength by field"), rows)
        sys.stdout.write("\n")


def print_evaluation(result: "Evaluation") -> None:
    """The measures, and each query that did not find its first topic at once."""
    rows = [
        (str(one.best or "-"), one.query, ", ".join(one.expected))
        for one in result.outcomes
        if one.best != 1
    ]
    if rows:
        print_table(("rank", "query", "expected"), rows)
        sys.stdout.write("\n")
    sys.stdout.write(
        f"{len(result.outcomes)} queries: hit rate {result.hit_rate:.3f}, "
        f"MRR {result.mrr:.3f}, nDCG {result.ndcg:.3f}\n"
    )


def print_choices(answer: ContextAnswer) -> None:
    """What a context holds, what came next, and why."""
    rows = [(str(one["tokens"]), one["topic"], one["why"]) for one in answer["sources"]]
    print_table(("tokens", "included", "why"), rows)
    if answer["omitted"]:
        left = [(str(one["tokens"]), one["topic"], one["why"]) for one in answer["omitted"]]
        sys.stdout.write("\n")
        print_table(("tokens", "next, did not fit", "why"), left)
    sys.stdout.write(f"\n{answer['token_count']} tokens ({answer['encoding']})\n")


def print_info(info: InfoAnswer) -> None:
    """The state of the knowledge base as a table."""
    base, index = info["knowledge_base"], info["index"]
    rows = [
        ("version", info["version"]),
        ("status", info["status"]),
        *(("", reason) for reason in info["reasons"]),
        ("documents", f"{base['content_files']} ({base['total_size_kb']:,} KB)"),
        *((f"  {layer['name']}", _layer(layer)) for layer in base["layers"]),
        ("index", f"{index['state']}, {index['sections']:,} sections, in {index['where']}"),
        *((("", index["message"]),) if index["message"] else ()),
        ("encoding", info["encoding"]),
        ("problems", str(info["problems"]["count"])),
        *(("", f"{problem['path']}: {problem['what']}") for problem in info["problems"]["first"]),
    ]
    print_rows(rows)


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    if sys.stdout.isatty():
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False)
        for name, value in rows:
            table.add_row(Text(name, style="bold"), Text(clean(value)))
        _console().print(table)
        return
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        sys.stdout.write(f"{name:<{width}}  {clean(value)}".rstrip() + "\n")


def print_table(heading: Row, rows: Sequence[Row]) -> None:
    """Rows under a heading; in a pipe the columns are padded with spaces."""
    if sys.stdout.isatty():
        from rich.table import Table
        from rich.text import Text

        table = Table(*heading, box=None, header_style="bold")
        for row in rows:
            table.add_row(*(Text(clean(cell)) for cell in row))
        _console().print(table)
        return
    widths = [max(len(row[at]) for row in (heading, *rows)) for at in range(len(heading))]
    for row in (heading, *rows):
        cells = (f"{clean(cell):<{width}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def index_progress() -> Progress | None:
    """A bar for a long build when a person is watching; None when nobody is."""
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
            bar.add_task("indexing", total=total)
            bar.start()
        bar.update(bar.task_ids[0], completed=done)
        if done >= total:
            bar.stop()

    return show


def _amounts(fields: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in fields.items()) or "none"


def _layer(layer: LayerInfo) -> str:
    tokens = layer["tokens"]
    return f"{layer['files']} documents" + (f", {tokens:,} tokens" if tokens is not None else "")


def _print_styled(text: str, style: str, rest: str = "") -> None:
    if not sys.stdout.isatty():
        sys.stdout.write(clean(text + rest) + "\n")
        return
    from rich.text import Text

    _console().print(Text(clean(text), style=style) + Text(rest, style="dim"))


def _print_marked(text: str, query: str) -> None:
    if not sys.stdout.isatty():
        sys.stdout.write(clean(text) + "\n")
        return
    from rich.text import Text

    marked = Text(clean(text))
    for word in re.findall(r"\w{3,}", query):
        # Marks other endings of the word too: the search found them by its stem.
        stem = re.escape(word[: max(3, len(word) - 2)])
        marked.highlight_regex(re.compile(rf"\b{stem}\w*", re.IGNORECASE), "bold yellow")
    _console().print(marked)


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)
