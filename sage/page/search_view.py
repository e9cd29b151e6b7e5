"""The search page: results as one types, why each is where it is, and why another is not there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sage.answers import SearchAnswer
from sage.documents.document import Document
from sage.documents.nearest import Named, nearest_named
from sage.errors import InvalidInput
from sage.knowledge import KnowledgeBase
from sage.page.highlighting import Highlighter
from sage.page.pages import Pages, PageSource
from sage.page.patience import Patience
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.search.explain import Explanation
from sage.values import ALL_LAYERS

FILTERS = ("type", "tag", "status", "source")
_RESULTS = 20
_MOST_TOKENS = 20_000
_EXPLAINED = 50
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
        """The page with its results; only the results when the script asks."""
        query = request.text("q").strip()
        layer = self._layer(request)
        answer = self._answer(query, request, layer) if query else None
        return self._templates.page(
            "search.html",
            request,
            query=query,
            layer=layer,
            layers=self._layers(),
            chosen=self._chosen(request),
            answer=answer,
            progress=self._patience.progress if query else None,
            results=list(self._shown(answer, query)) if answer else [],
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
        layer = self._layer(request)
        chosen = self._chosen(request)
        explanations = self._knowledge.explain(
            query, limit=_EXPLAINED, layer=layer, **_arguments(chosen)
        )
        pages = self._source.now()
        document = pages.document(topic.partition("#")[0])
        places = {one.path: number for number, one in enumerate(explanations, 1)}
        place = places.get(document.path, 0) if document else 0
        return self._templates.page(
            "why.html",
            request,
            200 if document else 404,
            query=query,
            topic=topic,
            document=document,
            place=place,
            shown=_RESULTS,
            explanation=_told(explanations[place - 1]) if place else None,
            last=_told(explanations[-1]) if explanations else None,
            examined=len(explanations),
            lacks=self._lacking(document, explanations, query) if document else [],
            excluded=_excluded(document, layer, chosen) if document else [],
            nearest=[] if document else self._nearest(pages, topic),
        )

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

    def _answer(self, query: str, request: PageRequest, layer: str) -> SearchAnswer | None:
        arguments = _arguments(self._chosen(request))
        try:
            return self._patience.ask(
                lambda deadline: self._knowledge.search(
                    query,
                    limit=_RESULTS,
                    layer=layer,
                    **arguments,
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

    def _lacking(
        self, document: Document, explanations: Sequence[Explanation], query: str
    ) -> list[dict[str, Any]]:
        """Which words of the query a page does not hold."""
        text = f"{document.title}\n{document.body}"
        if not explanations:
            held = set(self._highlighter.held(text, query))
            words = self._highlighter.held(query, query)
            return [{"word": word, "documents": None, "has": word in held} for word in words]
        return [
            {
                "word": share.word,
                "documents": share.documents,
                "has": self._highlighter.holds(text, share.word),
            }
            for share in explanations[0].shares
        ]

    @staticmethod
    def _nearest(pages: Pages, topic: str) -> list[str]:
        names = (Named(one.rpartition("/")[2], one) for one in pages.sources)
        return nearest_named(names, topic.rpartition("/")[2], _NEAR)


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


def _told(explanation: Explanation) -> dict[str, Any]:
    whole = explanation.document_part + explanation.section_part
    strengths = [sum(share.fields.values()) for share in explanation.shares]
    strongest = max(strengths, default=0) or 1
    return {
        "score": explanation.score,
        "document_share": round(100 * explanation.document_part / whole) if whole else 0,
        "section_share": round(100 * explanation.section_part / whole) if whole else 0,
        "standing": explanation.standing,
        "words": [
            {
                "word": share.word,
                "documents": share.documents,
                "strength": strength,
                "width": round(100 * strength / strongest),
                "fields": sorted(share.fields.items(), key=lambda one: -one[1]),
            }
            for share, strength in zip(explanation.shares, strengths, strict=True)
        ],
    }
