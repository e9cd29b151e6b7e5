"""The health page: what is served and what is not, what a check finds, and what there is to do."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sage.care.evidence import gather_evidence
from sage.care.work_list import KINDS, Task, work_list
from sage.check.run import Report, check_knowledge
from sage.documents.document import Document
from sage.git import find_repository
from sage.knowledge import KnowledgeBase
from sage.page.once import Once
from sage.page.pages import PageSource, ShownPages, last_part
from sage.page.patience import deadline_of
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.page.treemap import Tile, treemap

WIDTH, HEIGHT = 960, 360
COLOURS = 8
_HEAD, _EDGE = 22, 3
_LETTER, _LINE = 7, 20
_LEAST_LETTERS = 6
_MOST_TILES = 40
"""Folders of a layer that a map of them can show."""
_OLDEST = 12
_MAX_FINDINGS = 200
_MAX_TASKS = 200
_NARROWED_KINDS = ("review", "superseded", "duplicate", "draft")
"""What a page says by itself. Git knows every layer, and a hidden page may link to an orphan."""
_MAX_NOTE = 200
_MONTH_DAYS = 365.25 / 12
_AGES = ((1, "a month"), (3, "3 months"), (6, "6 months"), (12, "a year"))

Unanswered = Callable[[], Sequence[tuple[str, int]]]
"""What was asked and not found, with how often."""


class HealthView:
    """Shows how the knowledge base is."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        source: PageSource,
        templates: Templates,
        unanswered: Unanswered | None,
    ) -> None:
        self._knowledge = knowledge
        self._source = source
        self._templates = templates
        self._unanswered = unanswered
        self._checked: Once[Report] = Once()
        self._tasks: Once[Sequence[Task]] = Once()

    def page(self, request: PageRequest) -> PageResponse:
        """Everything that is known at once; findings and tasks follow."""
        pages = self._source.now()
        asked = list(self._unanswered()) if self._unanswered else None
        return self._templates.page(
            "health.html",
            request,
            info=self._knowledge.info(deadline_of(self._knowledge)),
            tiles=self._tiles(pages.documents),
            width=WIDTH,
            height=HEIGHT,
            ages=list(_ages(pages, _today())),
            oldest=pages.dated[:_OLDEST],
            is_narrowed=self._knowledge.settings.is_narrowed,
            unanswered=None if asked is None else [_with_command(*one) for one in asked],
        )

    def findings(self, request: PageRequest) -> PageResponse:
        """What `sage check` finds; it reads files, which a replica of a cluster has not."""
        if self._knowledge.library.is_published:
            return self._templates.page("findings.html", request, has_files=False)
        report, pages = self._report(), self._source.now()
        counts = Counter((problem.level, problem.rule) for problem in report.problems)
        return self._templates.page(
            "findings.html",
            request,
            has_files=True,
            pages=report.pages,
            counts=[(level, rule, number) for (level, rule), number in counts.most_common()],
            problems=[
                {
                    "level": one.level,
                    "rule": one.rule,
                    "path": one.path,
                    "topic": pages.topic_at(one.path),
                    "line": one.line,
                    "message": one.message,
                }
                for one in report.problems[:_MAX_FINDINGS]
            ],
            left=max(0, len(report.problems) - _MAX_FINDINGS),
        )

    def care(self, request: PageRequest) -> PageResponse:
        """The work list of whoever looks after the base; the commands are theirs to run."""
        tasks = self._work_list()
        counts = Counter(task.kind for task in tasks)
        shown = tasks[:_MAX_TASKS]
        return self._templates.page(
            "care.html",
            request,
            kinds=[
                (heading, counts[kind], [task for task in shown if task.kind == kind])
                for kind, heading in KINDS.items()
                if any(task.kind == kind for task in shown)
            ],
            left=len(tasks) - len(shown),
        )

    def _report(self) -> Report:
        settings, today = self._knowledge.settings, _today()
        state = (self._source.version(), today)
        return self._checked.get(state, lambda: check_knowledge(settings, today))

    def _work_list(self) -> Sequence[Task]:
        knowledge, today = self._knowledge, _today()
        is_narrowed = knowledge.settings.is_narrowed
        kinds = _NARROWED_KINDS if is_narrowed else tuple(KINDS)
        repository = None if is_narrowed else find_repository(knowledge.settings.root)
        # A commit settles work without changing a file.
        head = repository.head if repository else ""
        meaning = knowledge.meaning
        state = (self._source.version(), head, today, meaning.generation if meaning else 0)

        def work() -> Sequence[Task]:
            documents = self._source.now().documents
            # What was asked and not found is on the page already.
            return work_list(gather_evidence(knowledge, None, today, documents=documents), kinds)

        return self._tasks.get(state, work)

    def _tiles(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        """The layers, largest first, each divided into its folders."""
        count = self._knowledge.counter.count_slice
        folders: dict[str, Counter[str]] = {name: Counter() for name in self._layers}
        for one in documents:
            folder = one.topic.rpartition("/")[0]
            folders[one.layer][folder] += count(one, 0, len(one.body))
        folders = {name: _summed_up(held) for name, held in folders.items()}
        sizes = [(name, held.total()) for name, held in folders.items()]
        tiles = []
        for layer in treemap(sizes, WIDTH, HEIGHT):
            width = max(layer.width - 2 * _EDGE, 1.0)
            height = max(layer.height - _HEAD - _EDGE, 1.0)
            inner = [
                one._replace(x=one.x + layer.x + _EDGE, y=one.y + layer.y + _HEAD)
                for one in treemap(list(folders[layer.name].items()), width, height)
            ]
            tiles.append(self._tile(layer, layer.name))
            # The pages of the layer's own folder are part of what its name stands above.
            tiles += [self._tile(one, layer.name, own=one.name == layer.name) for one in inner]
        return tiles

    @property
    def _layers(self) -> tuple[str, ...]:
        return self._knowledge.settings.layers

    def _tile(self, tile: Tile, layer: str, own: bool = False) -> dict[str, Any]:
        is_layer = tile.name == layer and not own
        label = "" if own else _label(tile)
        lines = 2 if label else 1
        return {
            "topic": tile.name,
            "tokens": tile.size,
            "x": round(tile.x, 1),
            "y": round(tile.y, 1),
            "width": round(tile.width, 1),
            "height": round(tile.height, 1),
            "colour": self._layers.index(layer) % COLOURS,
            "is_layer": is_layer,
            "label": label,
            # The size of a layer is in the table below.
            "has_size": not is_layer
            and tile.height > lines * _LINE
            and tile.width > _LETTER * _LEAST_LETTERS,
        }


def _summed_up(sizes: Counter[str]) -> Counter[str]:
    """The folders of a layer; of very many only those further up, with all that is in them."""
    depth = max((name.count("/") for name in sizes), default=0)
    while len(sizes) > _MOST_TILES and depth > 1:
        depth -= 1
        above: Counter[str] = Counter()
        for name, size in sizes.items():
            above["/".join(name.split("/")[: depth + 1])] += size
        sizes = above
    return sizes


def _label(tile: Tile) -> str:
    """As much of the folder's name, below its layer, as there is room for."""
    room = int((tile.width - 10) / _LETTER)
    whole = tile.name.partition("/")[2] or tile.name
    name = whole if len(whole) <= room else last_part(tile.name)
    if tile.height < _LINE or room < _LEAST_LETTERS:
        return ""
    return name if len(name) <= room else f"{name[: room - 1]}…"


def _today() -> date:
    return datetime.now(UTC).date()


def _ages(pages: ShownPages, today: date) -> Iterator[Mapping[str, Any]]:
    """How many pages were last updated how long ago."""
    ages = [(today - day).days / _MONTH_DAYS for day, _ in pages.dated]
    rows = []
    for number, (months, words) in enumerate(_AGES):
        least = _AGES[number - 1][0] if number else float("-inf")
        rows.append((f"less than {words}", sum(least <= age < months for age in ages)))
    rows.append(("a year or more", sum(age >= _AGES[-1][0] for age in ages)))
    rows.append(("no date", len(pages.documents) - len(ages)))
    most = max((count for _, count in rows), default=0) or 1
    for words, count in rows:
        yield {"words": words, "count": count, "width": round(100 * count / most)}


def _with_command(query: str, count: int) -> dict[str, Any]:
    """A question and the command that drafts the page that would have answered it."""
    asked = query[:_MAX_NOTE]
    text = shlex.quote(f"Asked and not found: {asked}")
    return {"query": query, "count": count, "command": f"sage note {text} --type discovery"}
