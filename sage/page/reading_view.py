"""Reading one page: its text, its outline, what is known about it, and its source."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from urllib.parse import quote

from markupsafe import Markup

from sage.documents.document import Document
from sage.documents.front_matter import FrontMatter
from sage.documents.nearest import Named, nearest_named
from sage.knowledge import KnowledgeBase
from sage.page.markdown_html import MarkdownHtml
from sage.page.pages import PageSource, ShownPages, last_part
from sage.page.patience import deadline_of
from sage.page.response import PageRequest, PageResponse
from sage.page.templating import Templates
from sage.values import OWN

_HIDDEN = frozenset({"title", "summary", "extra", "tags", "status"})
_MAX_RAW_LINES = 20_000
_BESIDE = 60
_LISTED = 100
"""Pages below a folder that are listed at once; more are shown folder by folder."""
_MOST_LISTED = 1_000


class ReadingView:
    def __init__(self, knowledge: KnowledgeBase, source: PageSource, templates: Templates) -> None:
        self._knowledge = knowledge
        self._source = source
        self._templates = templates
        self._html = MarkdownHtml()

    def page(self, topic: str, request: PageRequest) -> PageResponse:
        """A page as it reads."""
        pages = self._source.now()
        document = pages.document(topic)
        if document is None:
            return self.folder(topic, pages, request)
        counter, urls = self._knowledge.counter, self._knowledge.settings.page
        return self._templates.page(
            "read.html",
            request,
            document=document,
            tokens=counter.count(document.body),
            html=Markup(self._html.of(document, pages.topic_at)),  # noqa: S704 made safe there
            outline=[
                {
                    "heading": one.heading,
                    "level": one.level,
                    "anchor": one.anchor,
                    "tokens": counter.count_slice(document, one.start, one.end),
                }
                for one in document.sections
                if one.heading
            ],
            beside=[
                {"topic": one.topic, "title": one.title} for one in pages.beside(topic, _BESIDE)
            ],
            facts=list(_facts(document.meta)),
            successor=pages.meant(document.meta.superseded_by or ""),
            overrides=pages.overrides.get(document.path, ()),
            tells_source=self._knowledge.has_sources,
            edit=_filled(urls.edit_url, document),
            suggest=_filled(urls.suggest_url, document),
        )

    def raw(self, topic: str, request: PageRequest) -> PageResponse | None:
        """A page as it is written, front matter and all, with the numbers of its lines."""
        pages = self._source.now()
        document = pages.document(topic)
        if document is None:
            return None
        text = self._knowledge.library.text(pages.sources[topic], deadline_of(self._knowledge))
        # A file that is being written is shown as it was read last, from where its text begins.
        first = 1 if text else document.sections[0].start_line
        lines = (text or document.body).splitlines()
        return self._templates.page(
            "raw.html",
            request,
            document=document,
            lines=list(enumerate(lines[:_MAX_RAW_LINES], first)),
            left=max(0, len(lines) - _MAX_RAW_LINES),
        )

    def folder(self, topic: str, pages: ShownPages, request: PageRequest) -> PageResponse:
        """The pages below a layer or folder; nearest names when there is none."""
        inside = [one for one in pages.sources if one.startswith(f"{topic}/")]
        # Of many pages only its own are listed: the rest is found by the folders in it.
        below = Counter(_next_folder(one, topic) for one in inside if len(inside) > _LISTED)
        own = [one for one in inside if not below or last_part(one) == one[len(topic) + 1 :]]
        names = (Named(last_part(one), one) for one in pages.sources)
        near = [] if inside else nearest_named(names, last_part(topic))
        shown = [pages.document(one) for one in (own if inside else near)[:_MOST_LISTED]]
        folders: dict[str, list[dict[str, str]]] = {}
        for one in shown:
            if one is not None:
                folder = one.topic.rpartition("/")[0]
                row = {"topic": one.topic, "title": one.title, "summary": one.summary}
                folders.setdefault(folder, []).append(row)
        return self._templates.page(
            "folder.html",
            request,
            200 if inside else 404,
            topic=topic,
            below={folder: count for folder, count in below.items() if folder},
            folders=folders,
            count=len(inside),
            left=max(0, len(own) - _MOST_LISTED),
        )


def _next_folder(topic: str, above: str) -> str:
    """The folder in a folder that leads to a topic; empty when it is in no other."""
    first, slash, _ = topic[len(above) + 1 :].partition("/")
    return f"{above}/{first}" if slash else ""


def _facts(meta: FrontMatter) -> Iterator[tuple[str, str]]:
    """The front matter as a person would read it: what is set, and how."""
    for one in fields(meta):
        value = getattr(meta, one.name)
        if one.name in _HIDDEN or value in (None, "", (), 0):
            continue
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield one.name.replace("_", " "), text
    for name, value in meta.extra.items():
        yield str(name), str(value)[:500]


def _filled(template: str, document: Document) -> str:
    """A team's address for one page; only addresses of the web are links."""
    if document.source != OWN or not template.startswith(("https://", "http://")):
        return ""
    return template.replace("{path}", quote(document.path)).replace(
        "{topic}", quote(document.topic)
    )
