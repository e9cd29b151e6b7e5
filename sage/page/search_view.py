"""The search page: results as one types, why each is where it is, and why another is not there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sage.answers import SearchAnswer
from sage.documents.document import Document
from sage.errors import InvalidInput
from sage.knowledge import KnowledgeBase
from sage.page.highlighting import Highlighter
from sage.page.pages import PageSource
from sage.page.patience import Patience, deadline_of
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.search.explain import Explanation
from sage.values import ALL_LAYERS, DATE, MAX_OFFSET

FILTERS = ("type", "tag", "status", "source")
_RESULTS = 20
_MOST_TOKENS = 20_000
_NEAR = 5
_RECENT = 6


class SearchView:
    """Searches as an agent would, and shows it to a person."""

    def __init__(self, knowledge: KnowledgeBase, source: PageSource, templates: Templates) -> None:
        self._knowledge = knowledge
        self._source = source
        self._templates = templates
        self._highlighter = Highlighter()
        self._patience = Patience(knowledge)

    def page(self, request: PageRequest) -> PageResponse:
        """The page with its results; only the results when the script asks.

        Without a question the filters alone list what passes them, the newest first.
        """
        query, layer = request.text("q").strip(), self._layer(request)
        chosen = self._chosen(request)
        offset = request.number("from", 0, 0, MAX_OFFSET)
        is_asked = bool(query or layer != ALL_LAYERS or any(chosen.values()))
        answer = self._answer(query, chosen, layer, offset) if is_asked else None
        return self._templates.page(
            "search.html",
            request,
            query=query,
            layer=_told_layer(layer),
            layers=self._layers(),
            chosen=chosen,
            is_asked=is_asked,
            answer=answer,
            progress=self._patience.progress if is_asked else None,
            results=list(self._shown(answer, query)) if answer else [],
            offset=offset,
            previous=max(0, offset - _RESULTS) if offset else None,
            next=_next(answer, offset) if answer else None,
        )

    def choices(self, request: PageRequest) -> PageResponse:
        """What the filters can be set to."""
        pages = self._source.now()
        return self._templates.page(
            "choices.html",
            request,
            choices={name: pages.choices(name) for name in self._chosen(request)},
        )

    def recent(self, request: PageRequest) -> PageResponse:
        """The pages that say that they were updated last."""
        newest = self._source.now().dated[: -_RECENT - 1 : -1]
        return self._templates.page("recent.html", request, recent=newest)

    def why(self, request: PageRequest) -> PageResponse:
        """Why a page is where it is among the results, or what it lacks to be there."""
        query, topic = request.text("q").strip(), request.text("topic").strip()
        pages = self._source.now()
        document = pages.meant(topic)
        values = self._why(document, query, request) if document else {}
        return self._templates.page(
            "why.html",
            request,
            200 if document else 404,
            query=query,
            topic=topic,
            document=document,
            back=dict(self._chosen(request), q=query, layer=_told_layer(self._layer(request))),
            nearest=[] if document else pages.near(topic, _NEAR),
            **values,
        )

    def _why(self, document: Document, query: str, request: PageRequest) -> dict[str, Any]:
        """What the explanation of one page is made of."""
        layer, chosen = self._layer(request), self._chosen(request)
        excluded = _excluded(document, layer, chosen)
        # A page that the filters leave out is explained as if they were not there.
        where: dict[str, Any] = {} if excluded else {"layer": layer, **_arguments(chosen)}
        where["deadline"] = deadline_of(self._knowledge)
        shown = self._knowledge.explain(query, limit=_RESULTS, **where)
        own = [one for one in shown if one.path == document.path]
        if not own:
            own = self._knowledge.explain(query, path=document.path, **where)
        last = shown[-1] if shown else None
        return {
            "explanation": _told(own[0]) if own else None,
            "is_shown": bool(own) and 0 < own[0].place <= _RESULTS,
            "last": {**_told(last), "title": self._title(last.path)} if last else None,
            "words": self._compared(document, own, last, query),
            "excluded": excluded,
        }

    def _chosen(self, request: PageRequest) -> dict[str, str]:
        """What the filters are set to; sources only where there are several."""
        names = FILTERS if self._knowledge.has_sources else FILTERS[:-1]
        return {name: request.text(name).strip() for name in names}

    def _layer(self, request: PageRequest) -> str:
        layer = request.text("layer", ALL_LAYERS)
        return layer if layer in self._knowledge.settings.layers else ALL_LAYERS

    def _layers(self) -> list[dict[str, Any]]:
        """Every layer with its number of pages, from the names of the files alone."""
        listings = self._source.now().listings
        return [{"name": one.layer, "pages": len(one.files)} for one in listings]

    def _answer(
        self, query: str, chosen: Mapping[str, str], layer: str, offset: int
    ) -> SearchAnswer | None:
        arguments = _arguments(chosen)
        try:
            return self._patience.ask(
                lambda deadline: self._knowledge.search(
                    query,
                    limit=_RESULTS,
                    layer=layer,
                    **arguments,
                    sort=None if query else DATE,
                    offset=offset,
                    max_tokens=_MOST_TOKENS,
                    whole=False,
                    deadline=deadline,
                )
            )
        except InvalidInput as error:
            return SearchAnswer(results=[], total=0, query_time_ms=0.0, found="no", note=str(error))

    def _shown(self, answer: SearchAnswer, query: str) -> Iterator[dict[str, Any]]:
        for result in answer["results"]:
            heading = result["topic"].partition("#")[2]
            yield {
                **result,
                "heading": heading.replace("-", " "),
                "shown": self._highlighter.mark(result["snippet"], query),
            }

    def _compared(
        self,
        document: Document,
        own: Sequence[Explanation],
        last: Explanation | None,
        query: str,
    ) -> list[dict[str, Any]]:
        """What each word of a query is worth in a page, beside the last page that is shown."""
        text = f"{document.title}\n{document.body}"
        if not own or not own[0].shares:
            held = set(self._highlighter.held(text, query))
            words = self._highlighter.held(query, query)
            return [{"word": word, "documents": 0, "has": word in held} for word in words]
        rival = {share.word: share.fields for share in last.shares} if last else {}
        return [
            {
                "word": share.word,
                "documents": share.documents,
                # An engine that looked at the best pages only does not know what others hold.
                "has": bool(share.fields) or self._highlighter.holds(text, share.word),
                "here": _strongest_first(share.fields),
                "there": _strongest_first(rival.get(share.word, {})),
            }
            for share in own[0].shares
        ]

    def _title(self, path: str) -> str:
        pages = self._source.now()
        document = pages.document(pages.topic_at(path) or "")
        return document.title if document else path


def _told_layer(layer: str) -> str:
    """A layer as an address names it: all of them are named by none."""
    return "" if layer == ALL_LAYERS else layer


def _next(answer: SearchAnswer, offset: int) -> int | None:
    """Where the results go on; None when these are the last."""
    count = len(answer["results"])
    if "next_offset" in answer:
        return answer["next_offset"]
    # The first results of a question do not tell whether there are more.
    return count if not offset and count == _RESULTS < answer["total"] else None


def _arguments(chosen: Mapping[str, str]) -> dict[str, Any]:
    """The filters as a search takes them."""
    return {
        "types": [chosen["type"]] if chosen["type"] else [],
        "tags": [chosen["tag"]] if chosen["tag"] else [],
        "status": chosen["status"] or None,
        "source": chosen.get("source") or None,
    }


def _excluded(document: Document, layer: str, chosen: Mapping[str, str]) -> list[str]:
    """The filters that a page does not pass."""
    meta = document.meta
    own = {"type": (meta.type,), "tag": meta.tags, "status": (meta.status,)}
    own["source"] = (document.source,)
    excluded = [] if layer in (ALL_LAYERS, document.layer) else [f"layer {layer}"]
    for name, value in chosen.items():
        if value and value.casefold() not in {one.casefold() for one in own[name]}:
            excluded.append(f"{name} {value}")
    return excluded


def _strongest_first(fields: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(fields.items(), key=lambda one: -one[1])


def _told(explanation: Explanation) -> dict[str, Any]:
    whole = explanation.document_part + explanation.section_part
    strengths = [sum(share.fields.values()) for share in explanation.shares]
    strongest = max(strengths, default=0) or 1
    return {
        "score": explanation.score,
        "place": explanation.place,
        "document_share": round(100 * explanation.document_part / whole) if whole else 0,
        "section_share": round(100 * explanation.section_part / whole) if whole else 0,
        "standing": explanation.standing,
        "meaning": explanation.meaning,
        "words": [
            {
                "word": share.word,
                "documents": share.documents,
                "strength": strength,
                "width": round(100 * strength / strongest),
                "fields": _strongest_first(share.fields),
            }
            for share, strength in zip(explanation.shares, strengths, strict=True)
        ],
    }
