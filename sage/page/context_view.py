"""The context preview: the answer an agent would get, where each passage comes from, and what if.

A page that was left out can be forced in: it takes its tokens first, and what no longer fits
beside it is named.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sage.answers import ContextAnswer, ContextSource
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from sage.page.patience import Patience, deadline_of
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.sanitize import heading_sources
from sage.values import DEFAULT_BUDGET, MAX_BUDGET

COLOURS = 8
BAR = 1_000
"""Width of the bar that shows a budget, in its own units."""
_SMALLEST = 100
_SLIDER_MOST = 16_000

Packed = tuple[ContextAnswer, Sequence[str]]
"""A context and why each topic that it omits is not in it."""


@dataclass(frozen=True, slots=True)
class ContextForm:
    """What the form says."""

    task_type: str
    compare: str
    task: str
    language: str
    files: list[str]
    budget: int
    force: list[str]
    is_asked: bool

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The form again, without what was forced in."""
        return [
            ("task_type", self.task_type),
            ("compare", self.compare),
            ("language", self.language),
            ("task", self.task),
            ("files", "\n".join(self.files)),
            ("budget", str(self.budget)),
        ]


class ContextView:
    """Packs contexts as an agent would be given them."""

    def __init__(self, knowledge: KnowledgeBase, templates: Templates) -> None:
        self._knowledge = knowledge
        self._templates = templates
        self._patience = Patience(knowledge)

    def page(self, request: PageRequest) -> PageResponse:
        """The form and the answer; only the answer when the script asks."""
        asked = self._asked(request)
        names = list(dict.fromkeys(filter(None, (asked.task_type, asked.compare))))
        packs = [self._pack(asked, name) for name in names] if asked.is_asked else []
        _paint(packs)
        return self._templates.page(
            "context.html",
            request,
            asked=asked,
            task_types=self._knowledge.task_types,
            packs=packs,
            least=_SMALLEST,
            most=max(_SLIDER_MOST, asked.budget),
            greatest=MAX_BUDGET,
            bar=BAR,
        )

    def _asked(self, request: PageRequest) -> ContextForm:
        task_types = self._knowledge.task_types
        chosen, other = request.text("task_type"), request.text("compare")
        return ContextForm(
            task_type=chosen if chosen in task_types else task_types[0],
            compare=other if other in task_types else "",
            task=request.text("task"),
            language=request.text("language").strip(),
            files=[one.strip() for one in request.text("files").split("\n") if one.strip()],
            budget=request.number("budget", DEFAULT_BUDGET, _SMALLEST, MAX_BUDGET),
            force=list(dict.fromkeys(request.texts("force"))),
            is_asked="task_type" in request.query,
        )

    def _pack(self, asked: ContextForm, task_type: str) -> dict[str, Any]:
        pack: dict[str, Any] = {"task_type": task_type, "error": "", "progress": None}
        try:
            packed = before = self._answer(asked, task_type, asked.budget)
            forced = [self._forced(topic) for topic in asked.force]
            left = asked.budget - sum(one["tokens"] for one in forced)
            if packed is not None and forced:
                packed = self._answer(asked, task_type, max(left, _SMALLEST))
        except SageError as error:
            return {**pack, "error": str(error)}
        progress = self._patience.progress
        if packed is None or before is None or progress is not None:
            return {**pack, "progress": progress or 0}
        answer, reasons = packed
        json_tokens = self._knowledge.counter.count(
            json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        )
        total = json_tokens + sum(one["tokens"] for one in forced)
        return {
            **pack,
            "answer": answer,
            "total": total,
            "passages": self._passages(answer, total - json_tokens),
            "forced": forced,
            "changes": _changes(before[0], answer) if forced else None,
            "left_out": [
                {"topic": topic, "why": why}
                for topic, why in zip(answer.get("omitted", ()), reasons, strict=True)
                if topic not in asked.force
            ],
            "left": asked.budget - total,
            "text": "\n\n".join((*(one["text"] for one in forced), answer["context"])),
            "call": json.dumps(_call(asked, task_type), ensure_ascii=False, indent=2),
        }

    def _answer(self, asked: ContextForm, task_type: str, budget: int) -> Packed | None:
        return self._patience.ask(
            lambda deadline: self._knowledge.explain_context(
                task_type,
                token_budget=budget,
                task=asked.task,
                current_files=asked.files,
                language=asked.language or None,
                deadline=deadline,
            )
        )

    def _forced(self, topic: str) -> dict[str, Any]:
        answer = self._knowledge.get("all", topic, deadline=deadline_of(self._knowledge))
        tokens = answer["metadata"]["token_count"]
        return {"topic": topic, "tokens": tokens, "text": answer["content"]}

    def _passages(self, answer: ContextAnswer, running: int) -> list[dict[str, Any]]:
        """The context divided at its sources, each with its tokens.

        Args:
            running: the tokens of what was forced in before them.
        """
        text, sources = answer["context"], answer["sources"]
        starts = [start for start, _ in heading_sources(text)]
        passages = []
        for number, (source, start) in enumerate(zip(sources, starts, strict=True), 1):
            end = starts[number] if number < len(starts) else len(text)
            part = text[start:end].strip("\n")
            tokens = self._knowledge.counter.count(part)
            running += tokens
            passages.append(
                {
                    "source": source,
                    "text": part,
                    "tokens": tokens,
                    "running": running,
                    "number": number,
                }
            )
        return passages


def _paint(packs: Sequence[dict[str, Any]]) -> None:
    """Give a source the same colour in every pack, and each passage its part of the bar."""
    shown = [pack for pack in packs if "passages" in pack]
    topics = dict.fromkeys(_page(one["source"]) for pack in shown for one in pack["passages"])
    colours = {topic: number % COLOURS for number, topic in enumerate(topics)}
    for pack in shown:
        scale = BAR / max(pack["total"], pack["total"] + pack["left"], 1)
        others = {
            _page(one["source"])
            for other in shown
            if other is not pack
            for one in other["passages"]
        }
        place = sum(one["tokens"] for one in pack["forced"]) * scale
        pack["forced_width"] = round(place, 1)
        for one in pack["passages"]:
            one["colour"] = colours[_page(one["source"])]
            one["only_here"] = len(shown) > 1 and _page(one["source"]) not in others
            one["x"], one["width"] = round(place, 1), round(one["tokens"] * scale, 1)
            place += one["tokens"] * scale
        pack["rest_x"] = round(place, 1)
        pack["rest_width"] = round(max(0.0, pack["total"] * scale - place), 1)


def _changes(before: ContextAnswer, after: ContextAnswer) -> dict[str, list[str]]:
    """The pages that are no longer in a context, and those of which less is."""
    then = {_page(one): one for one in before["sources"]}
    now = {_page(one): one["lines"] for one in after["sources"]}
    fewer = [one for page, one in then.items() if page in now and now[page] != one["lines"]]
    return {
        "fell_out": [one["topic"] for page, one in then.items() if page not in now],
        "cut": [one["topic"] for one in fewer],
    }


def _page(source: ContextSource) -> str:
    return source["topic"].partition("#")[0]


def _call(asked: ContextForm, task_type: str) -> dict[str, Any]:
    """The call that gives the same answer over MCP."""
    arguments: dict[str, Any] = {"task_type": task_type, "token_budget": asked.budget}
    if asked.task:
        arguments["task"] = asked.task
    if asked.language:
        arguments["language"] = asked.language
    if asked.files:
        arguments["current_files"] = asked.files
    return {"tool": "sage_get_context", "arguments": arguments}
