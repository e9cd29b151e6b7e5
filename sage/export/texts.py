"""The texts of an export: an overview within a budget, and single pages for some files only."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sage.documents.document import Document
from sage.export.hosts import RULES_OF, SKILLS, ExportHost, is_skill, skill_head
from sage.export.page_text import address, inline, page_line, page_text
from sage.export.selection import ExportSelection
from sage.sanitize import clean
from sage.token_counter import TokenCounter

_LEAST_PAGE = 40
_MOST_CHARACTERS_OF_A_TOKEN = 12
_MAX_NAME = 58  # a skill's name has at most 64 characters, ours begin with `sage-`
_MAX_OUTLINE = 60


class WantedFile(NamedTuple):
    """A file as it should be: all of it, or our block in it."""

    path: str
    text: str
    is_block: bool


def overview(
    documents: Sequence[Document],
    host: ExportHost,
    selection: ExportSelection,
    counter: TokenCounter,
) -> WantedFile:
    """The file that a host always reads: the first pages whole, the others by a line."""
    folder = host.main.rpartition("/")[0]
    # A file that is a page itself does not repeat its own text.
    others = (one for one in documents if one.path != host.main)
    own = [one for one in others if not (host.head and one.meta.applies_to)]
    packed = _Packed(own, folder, counter, selection.budget_tokens)
    text = packed.text()
    if host.shares_main:
        begin = f"<!-- sage:export:begin {selection.words} -->"
        return WantedFile(
            host.main, f"{begin}\n{_notice(host.name)}\n\n{text}\n<!-- sage:export:end -->", True
        )
    mark = f"<!-- sage:export:file {selection.words} -->\n{_notice(host.name)}"
    return WantedFile(host.main, f"{host.main_head}{mark}\n\n{text}\n", False)


def rules(
    documents: Sequence[Document],
    host: ExportHost,
    selection: ExportSelection,
    counter: TokenCounter,
) -> Iterator[WantedFile]:
    """The files that a host reads when a file in their scope is touched."""
    if host.head is None:
        return
    scoped = [one for one in documents if one.meta.applies_to]
    mark = f"<!-- sage:export:file -->\n{_notice(host.name)}"
    for name, document in _named(scoped):
        text = _page(document, host.folder, counter, selection.budget_tokens)
        path = f"{host.folder}/{name}{host.suffix}"
        yield WantedFile(path, f"{host.head(document)}{mark}\n\n{text}\n", False)


def skills(
    documents: Sequence[Document],
    folder: str,
    selection: ExportSelection,
    counter: TokenCounter,
    layers: Sequence[str],
) -> Iterator[WantedFile]:
    """One skill for each page that says what it is for."""
    asked = selection.layers or tuple(layers)
    mark = f"<!-- sage:export:file {selection.words} -->\n{_notice(SKILLS)}"
    for name, document in _named([one for one in documents if is_skill(one, asked)]):
        own = f"{folder}/{skill_name(name)}"
        text = _page(document, own, counter, selection.budget_tokens)
        head = skill_head(skill_name(name), document)
        yield WantedFile(f"{own}/SKILL.md", f"{head}{mark}\n\n{text}\n", False)


def _notice(name: str) -> str:
    return f"<!-- Written from the pages it links to. Edit those, then run: sage export {name} -->"


def skill_name(name: str) -> str:
    """What a skill is called whose page has this name."""
    return f"{RULES_OF}-{name}"


def names_of(topics: Iterable[str]) -> dict[str, str]:
    """A name of small letters and digits for each topic; a number tells two apart."""
    names: dict[str, str] = {}
    taken: dict[str, int] = {}
    for topic in sorted(topics):
        name = re.sub(r"[^a-z0-9]+", "-", topic.casefold()).strip("-")[:_MAX_NAME]
        name = name.strip("-") or "page"
        number = taken[name] = taken.get(name, 0) + 1
        names[topic] = f"{name[: _MAX_NAME - 4].strip('-')}-{number}" if number > 1 else name
    return names


def _named(documents: Sequence[Document]) -> Iterator[tuple[str, Document]]:
    """A file name for each page, from its topic."""
    names = names_of(document.topic for document in documents)
    for document in sorted(documents, key=lambda one: (one.topic, one.path)):
        yield names[document.topic], document


def _page(document: Document, folder: str, counter: TokenCounter, most: int) -> str:
    """A page whole, or its outline when it does not fit."""
    text = page_text(document, folder, level=1)
    if counter.count(text) <= most:
        return text
    place = address(document.path, folder)
    headings = [one for one in document.sections if one.heading and one.anchor][:_MAX_OUTLINE]
    lines = [f"- [{inline(one.heading)}]({place}#{one.anchor})" for one in headings]
    head = [f"# {inline(document.title)}", clean(document.summary)]
    end = (
        f"The page is longer than {most} tokens; read it there: [{inline(document.topic)}]({place})"
    )
    while lines and counter.count("\n".join([*head, *lines, end])) > most:
        lines.pop()
    return "\n\n".join(filter(None, (*head, "\n".join(lines), end)))


class _Packed:
    """As many pages as fit: each by a line, then as many as possible whole."""

    def __init__(
        self, documents: Sequence[Document], folder: str, counter: TokenCounter, most: int
    ) -> None:
        self._documents, self._counter, self._most = documents, counter, most
        self._lines = [page_line(document, folder) for document in documents]
        self._whole: dict[int, str] = {}
        self._shown = len(documents)
        self._drop_lines()
        self._take_whole(folder)

    def text(self) -> str:
        """What they are together."""
        shown = range(self._shown)
        parts = ["## Knowledge base"]
        parts += [self._whole[at] for at in shown if at in self._whole]
        lines = [self._lines[at] for at in shown if at not in self._whole]
        left = len(self._documents) - self._shown
        if left:
            lines.append(f"- {left} more; `sage ls` lists them all")
        parts += ["\n".join(lines)] if lines else []
        return "\n\n".join(parts if self._documents else [*parts, "No page is chosen."])

    def _drop_lines(self) -> None:
        """Leave out the last lines until the rest fits."""
        costs = [self._counter.count(line) + 1 for line in self._lines]
        total = sum(costs)
        while self._shown and total > self._most - 30:
            self._shown -= 1
            total -= costs[self._shown]
        while self._shown and self._counter.count(self.text()) > self._most:
            self._shown -= 1

    def _take_whole(self, folder: str) -> None:
        spent = self._counter.count(self.text())
        for at in range(self._shown):
            document, left = self._documents[at], self._most - spent
            if left < _LEAST_PAGE:
                break
            if len(document.body) > left * _MOST_CHARACTERS_OF_A_TOKEN:
                continue
            self._whole[at] = page_text(document, folder, level=3)
            now = self._counter.count(self.text())
            if now > self._most:
                del self._whole[at]
            else:
                spent = now
