"""The work list as markdown, ready to be an issue."""

from collections.abc import Iterator, Sequence
from datetime import date

from sage.care.work_list import KINDS, Task
from sage.errors import counted
from sage.sanitize import clean


def markdown_report(tasks: Sequence[Task], today: date) -> str:
    """A heading for each kind of work, a box to tick for each task."""
    return "\n".join(_lines(tasks, today)) + "\n"


def _lines(tasks: Sequence[Task], today: date) -> Iterator[str]:
    count = f"{counted(len(tasks), 'thing')} to do" if tasks else "Nothing to do"
    yield f"# Care of the knowledge base, {today}"
    yield ""
    yield f"{count}."
    for kind, heading in KINDS.items():
        of_kind = [task for task in tasks if task.kind == kind]
        if not of_kind:
            continue
        yield ""
        yield f"## {heading} ({len(of_kind)})"
        yield ""
        for task in of_kind:
            where = f"{_code(f'{task.path}:{task.line}')}: " if task.path else ""
            yield f"- [ ] {where}{_plain(task.what)}; {_code(task.command)}"


def _code(text: str) -> str:
    """A code span: nothing in it is markup, a link or a name that is notified."""
    line = " ".join(clean(text).split())
    fence = "``" if "`" in line else "`"
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def _plain(text: str) -> str:
    """Words of pages and callers without what an issue would make of them."""
    line = " ".join(clean(text).split())
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>#|~" else c for c in line)
    return escaped.replace("@", "@<!-- -->")  # nobody is notified
