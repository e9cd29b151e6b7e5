"""The pages of a published base: listed from memory, read from the cluster."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sage.cluster.connection import taken_apart
from sage.cluster.node_errors import NotThere
from sage.cluster.page_record import from_column
from sage.cluster.published_settings import PublishedSettings, scope_of
from sage.cluster.replica import Replica
from sage.cluster.requests import all_hits, inside, searched
from sage.cluster.schema import ANCHORS, HEADINGS, page_id
from sage.cluster.view import Scope
from sage.deadline import Deadline
from sage.documents.document import slug
from sage.documents.files import SourceFile, Stamp
from sage.documents.source_roots import Listing
from sage.documents.titles import ReadText
from sage.errors import TimeoutExceeded, Unavailable
from sage.settings import Settings

REMOVED = "this generation was removed meanwhile; ask again for the one in force"


class ClusterPages:
    """The pages of some layers, from the cluster."""

    def __init__(self, replica: Replica, settings: Settings, published: PublishedSettings) -> None:
        self._replica = replica
        self._settings = settings
        self._published = published

    @property
    def settings(self) -> Settings:
        """The settings of all that is published."""
        return self._published.current

    def narrowed(self, settings: Settings) -> Settings:
        """Settings for some of them, without what is published of the others."""
        return self._published.narrowed(settings)

    def follow(self, deadline: Deadline) -> None:
        """See what is published now."""
        self._replica.follow(deadline)

    def refresh(self, layers: Sequence[str], deadline: Deadline) -> tuple[Listing, ...]:
        """What the layers hold, all of one view."""
        scope = scope_of(self._replica.view(deadline), self._settings)
        if scope.trouble and not scope.sources:
            raise Unavailable(scope.trouble)
        is_behind = self._replica.behind or scope.note
        listings = scope.earlier_listings if is_behind else scope.listings
        return tuple(listings[layer] for layer in layers)

    def read(self, source: SourceFile, deadline: Deadline) -> tuple[bytes, Stamp]:
        """The text of a page, of the view that it was listed from."""
        for view in self._replica.views:
            scope = scope_of(view, self._settings)
            entry = scope.catalog.entries.get(source.path)
            if entry is not None and entry.stamp == source.stamp:
                return self._text(scope, source, self._replica.patience(deadline)), source.stamp
        raise FileNotFoundError(source.path)

    def headings(self, files: Sequence[SourceFile], deadline: Deadline, anchor: str) -> ReadText:
        """Reads the headings of pages, fetched together."""
        scope = scope_of(self._replica.views[0], self._settings)
        deadline = self._replica.patience(deadline)
        layers = {"terms": {"layer": sorted({source.layer for source in files})}}
        if anchor:
            wanted = {"terms": {ANCHORS: [anchor, slug(anchor)]}}
            found = dict(self._with_headings(scope, [layers, wanted], deadline))
        else:
            found = {}
            # They only help to name the nearest: those that come in time.
            with suppress(Unavailable, TimeoutExceeded):
                for page, lines in self._with_headings(scope, [layers], deadline):
                    found[page] = lines
        return lambda source: found.get((source.source, source.path), "")

    def _with_headings(
        self, scope: Scope, conditions: Sequence[Mapping[str, Any]], deadline: Deadline
    ) -> Iterator[tuple[tuple[str, str], str]]:
        """The headings of pages, each by its source and path."""
        query = {"bool": {"filter": inside(scope, *conditions)}}
        fields = {"_source": False, "docvalue_fields": ["path", HEADINGS]}
        try:
            for source in scope.sources:
                ask = self._replica.connection
                for hit in all_hits(ask, source.index, query, fields, ["path"], deadline):
                    with taken_apart("a search"):
                        columns = hit["fields"]
                        page = source.meta.source, columns["path"][0]
                        lines = from_column(columns[HEADINGS][0])
                    yield page, lines
        except NotThere as error:
            raise Unavailable(REMOVED) from error

    def _text(self, scope: Scope, source: SourceFile, deadline: Deadline) -> bytes:
        one = {"ids": {"values": [page_id(source.path)]}}
        own = {"term": {"source": source.source}}  # another one may have a page of the same path
        body = {"query": {"bool": {"filter": inside(scope, one, own)}}, "stored_fields": ["text"]}
        try:
            hits = searched(self._replica.connection, scope.indexes, body, deadline)["hits"]["hits"]
        except NotThere as error:
            raise Unavailable(REMOVED) from error
        if not hits:
            raise FileNotFoundError(source.path)
        with taken_apart("a search"):
            text: str = hits[0]["fields"]["text"][0]
            return text.encode("utf-8")
