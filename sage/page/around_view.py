"""What is around a page: what it links to, who links here, what is related, and its history.

It needs every page, the index and git, so it follows the text of a page instead of delaying it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sage.documents.document import Document
from sage.git import find_repository
from sage.knowledge import KnowledgeBase
from sage.page.pages import PageSource, ShownPages
from sage.page.patience import deadline_of
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.values import OWN

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness

_COMMITS = 10
_RELATED = 5
_CONSIDERED = 50
_LINKS = 50


class AroundView:
    def __init__(self, knowledge: KnowledgeBase, source: PageSource, templates: Templates) -> None:
        self._knowledge = knowledge
        self._source = source
        self._templates = templates

    def page(self, topic: str, request: PageRequest) -> PageResponse | None:
        pages = self._source.now()
        document = pages.document(topic)
        if document is None:
            return None
        links = _titled(pages, pages.links[topic])
        linked_from = _titled(pages, pages.linked_from.get(topic, ()))
        return self._templates.page(
            "around.html",
            request,
            document=document,
            lists=[
                ("Links to", links[:_LINKS], max(0, len(links) - _LINKS)),
                ("Linked from", linked_from[:_LINKS], max(0, len(linked_from) - _LINKS)),
                ("Related", self._related(document, pages), 0),
            ],
            commits=self._commits(document),
            most=_COMMITS,
        )

    def _related(self, document: Document, pages: ShownPages) -> list[dict[str, str]]:
        """The pages that belong to this one and that no link joins to it."""
        found = pages.relations.related(document, _CONSIDERED, self._nearness())
        linked = {*pages.links[document.topic], *pages.linked_from.get(document.topic, ())}
        return [
            {"topic": one.topic, "title": one.title, "why": "; ".join(one.reasons)}
            for one in found
            if one.topic not in linked
        ][:_RELATED]

    def _nearness(self) -> "Nearness | None":
        return self._knowledge.nearness(deadline_of(self._knowledge))

    def _commits(self, document: Document) -> list[dict[str, str]] | None:
        """The newest changes; None where git knows nothing of this folder."""
        settings = self._knowledge.settings
        repository = find_repository(settings.root)
        # What another source did to its page stands in its own history.
        if repository is None or document.source != OWN:
            return None
        path = (settings.root / document.path).relative_to(repository.top)
        return [
            {
                "id": commit.id[:10],
                "day": datetime.fromtimestamp(commit.seconds, UTC).date().isoformat(),
                # What a commit says may be about layers that some may not know of.
                "subject": "" if settings.is_narrowed else commit.subject,
            }
            for commit in repository.log(path.as_posix(), _COMMITS)
        ]


def _titled(pages: ShownPages, topics: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "title": pages.by_topic[topic].title, "why": ""}
        for topic in topics
        if topic in pages.by_topic
    ]
