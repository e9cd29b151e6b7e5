"""A repository's knowledge to the cluster: a new generation, checked before it is served.

Only what changed is written, into a copy of the generation before. The alias moves when the new
one holds exactly what it should; until then, and when anything fails, the old one is served.
"""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sage.cluster import generations
from sage.cluster.bulk import Bulk, bulk_into
from sage.cluster.connection import Connection
from sage.cluster.describer import PageToPublish
from sage.cluster.describing import described
from sage.cluster.generations import Meta
from sage.cluster.lock import PublishLock
from sage.cluster.page_record import from_column, page_hash, words_on
from sage.cluster.requests import all_hits
from sage.cluster.schema import (
    BUCKET_FIELDS,
    GONE,
    MAPPING,
    PAGE,
    VECTORS,
    WORDS,
    Name,
    index_body,
    page_id,
    parse_name,
    words_id,
)
from sage.cluster.vectors import VectorWriter
from sage.cluster.words import WordCount
from sage.context.repository import repository_language
from sage.deadline import Deadline
from sage.documents.boilerplate import ending_keys, find_footers
from sage.documents.files import SourceFile
from sage.documents.library import body_in
from sage.documents.source_roots import files_of
from sage.errors import SageError, Unavailable
from sage.git import find_repository
from sage.knowledge import KnowledgeBase
from sage.settings import Settings
from sage.values import OWN

GRACE_SECONDS = 300.0
"""So long a generation stays that is no longer served: a call may still read it."""
STEP_SECONDS = 120.0
_MOST_ANCESTORS = 100
"""A replica that misses more generations in a row loads all."""
_MOST_CHANGED = 0.5
"""When more than this share changed, everything is written anew."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Published:
    """What a publish did, or would do."""

    source: str
    index: str
    documents: int
    sections: int
    added: int
    changed: int
    removed: int
    moved: bool
    """Whether another generation is served now."""
    pruned: tuple[str, ...] = ()
    """Generations that were removed."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What the operator decides."""

    source: str = OWN
    dry_run: bool = False
    grace_seconds: float = GRACE_SECONDS
    shards: int = 1


class Publisher:
    """Publishes one knowledge base as one source."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        connection: Connection,
        options: PublishOptions,
        progress: Progress | None = None,
    ) -> None:
        self._knowledge = knowledge
        self._connection = connection
        self._options = options
        self._progress = progress or (lambda _done, _total: None)
        self._lock = PublishLock(connection, options.source)
        self._vectors = VectorWriter(knowledge.settings)

    def publish(self) -> Published:
        """Bring the cluster to the files as they are now.

        Raises:
            Unavailable: the cluster cannot be reached, takes no writes, or holds something else
                than was written; what was served is served still.
            SageError: a page could not be read.
        """
        self._connection.check_version(_soon())
        pages = {page.source.path: page for page in self._pages()}
        if self._options.dry_run:
            made = described(list(pages.values()), self._footers, 0)
            return self._plan(pages).told(sum(one.sections for one in made), moved=False)
        self._lock.acquire(_soon())
        try:
            plan = self._plan(pages)
            if plan.before is not None and not plan.is_needed:
                done = plan.told(plan.before[1].sections, moved=False)
            else:
                done = plan.told(self._write(plan), moved=True)
            return replace(done, pruned=self._pruned(plan))
        finally:
            self._lock.release(_soon())

    def prune(self) -> tuple[str, ...]:
        """Remove what is no longer served, and publish nothing."""
        self._connection.check_version(_soon())
        self._lock.acquire(_soon())
        try:
            return self._pruned(None)
        finally:
            self._lock.release(_soon())

    def _pages(self) -> Iterator[PageToPublish]:
        """Every page, named for its source, with the hash of all that is kept of it."""
        settings = self._knowledge.settings
        listings = self._knowledge.library.refresh(settings.layers, Deadline())
        found: list[tuple[SourceFile, bytes, tuple[str, ...]]] = []
        for source in files_of(listings):
            if source.source != OWN:
                continue  # it is published from where it is kept
            read = self._knowledge.library.read(source)
            if read is None:
                raise SageError(f"{source.path} is being written; publish again")
            named = _named(source, self._options.source)
            body = body_in(named, read[0])
            if body is not None:
                found.append((named, read[0], ending_keys(body)))
        self._footers = find_footers(endings for _, _, endings in found)
        model = self._vectors.model
        for named, data, endings in found:
            footers = self._footers.intersection(endings)
            hashed = page_hash(data, named.layer, named.topic, footers, model)
            yield PageToPublish(named, data, hashed)

    def _plan(self, pages: Mapping[str, PageToPublish]) -> "PublishPlan":
        settings = _shared(self._knowledge.settings)
        digest = hashlib.blake2b(digest_size=8)
        for path in sorted(pages):
            digest.update(f"{path}\0{pages[path].hashed}\0".encode())
        digest.update(repr(sorted(settings.items())).encode())
        base = self._connection.options.base
        name = Name(base, self._options.source, digest.hexdigest())
        alias = generations.served(self._connection, _soon())
        mine = [one for one in alias if (parse_name(one) or name).source == name.source]
        ours = [one for one in mine if (parse_name(one) or name).mapping == MAPPING]
        before: tuple[str, Meta] | None = None
        known: dict[str, tuple[str, str]] = {}
        if ours:
            before = next(generations.metas(self._connection, ours[:1], _soon()))
            known = self._known(ours[0])
        changed = [
            path for path, page in pages.items() if known.get(path, ("", ""))[0] != page.hashed
        ]
        return PublishPlan(
            name=name,
            pages=pages,
            served=tuple(mine),
            before=before,
            known=known,
            changed=changed,
            removed=[path for path in known if path not in pages],
            settings=settings,
        )

    def _known(self, index: str) -> dict[str, tuple[str, str]]:
        """The hash and the layer of every page that is served, by path."""
        fields = {"_source": ["path", "hash", "layer"]}
        query = {"term": {"kind": PAGE}}
        return {
            hit["_source"]["path"]: (hit["_source"]["hash"], hit["_source"]["layer"])
            for hit in all_hits(self._connection, index, query, fields, ["path"], _soon())
        }

    def _write(self, plan: "PublishPlan") -> int:
        """Write a generation and have it served; its sections."""
        ask, name = self._connection, str(plan.name)
        waiting = generations.all_of(ask, self._options.source, _soon()).get(name)
        if waiting is not None and not waiting.published:
            generations.delete(ask, name, _soon())  # left by a publish that was killed
            waiting = None
        if waiting is None:
            meta = self._begun(plan)
            with bulk_into(ask, name) as bulk:
                sections = self._written(plan, meta.generation, bulk)
            waiting = replace(meta, documents=len(plan.pages), sections=sections)
        self._finish(plan, waiting)
        return waiting.sections

    def _begun(self, plan: "PublishPlan") -> Meta:
        """A new index: a copy of the generation before, or an empty one."""
        ask, name = self._connection, str(plan.name)
        repository = find_repository(self._knowledge.settings.root)
        meta = Meta(
            source=self._options.source,
            generation=0,
            key=uuid.uuid4().hex,
            commit=repository.head if repository else "",
            settings=plan.settings,
            model=self._vectors.model,
        )
        if plan.copies and plan.before is not None:
            index, before = plan.before
            ancestors = (before.key, *before.ancestors)[:_MOST_ANCESTORS]
            meta = replace(meta, generation=before.generation + 1, ancestors=ancestors)
            settings = {"index.blocks.write": None, "index.refresh_interval": "-1"}
            body = {"settings": settings}
            ask.request("POST", f"/{index}/_clone/{name}", body, _soon(), again=False)
            ask.get(f"/_cluster/health/{name}?wait_for_status=yellow&timeout=60s", _soon())
            generations.write_meta(ask, name, meta, _soon())
        else:
            body = index_body(meta.to_json(), self._options.shards)
            ask.request("PUT", f"/{name}", body, _soon(), again=False)
        return meta

    def _written(self, plan: "PublishPlan", generation: int, bulk: Bulk) -> int:
        """Write what changed, and the words of all of it; the number of all sections."""
        words = self._words(plan) if plan.copies else {}
        paths = plan.changed if plan.copies else list(plan.pages)
        sections = plan.before[1].sections if plan.copies and plan.before else 0
        if plan.copies:
            for path, layer, old, count in self._old(plan):
                words.setdefault(layer, WordCount()).remove(words_on(old))
                sections -= count
                if path not in plan.pages:
                    bulk.delete(page_id(path))
                    gone = {"kind": GONE, "path": path, "generation": generation}
                    bulk.put(f"gone-{page_id(path)}", gone)
        done = 0
        pages = [plan.pages[path] for path in paths]
        for made in described(pages, self._footers, generation):
            for path, lines in zip(paths[done:], made.lines, strict=False):
                self._lock.renew(_soon())
                bulk.add(self._vectors.added_to(lines))
                if plan.copies:
                    bulk.delete(f"gone-{page_id(path)}")
            for layer, counted in made.words.items():
                words.setdefault(layer, WordCount()).join(counted)
            sections += made.sections
            done += len(made.lines)
            self._progress(done, len(paths))
        for layer, counted in words.items():
            for number, chunk in counted.chunks().items():
                body = {"kind": WORDS, "layer": layer, "chunk": number, "words": chunk}
                bulk.put(words_id(layer, number), {**body, "generation": generation})
        return sections

    def _words(self, plan: "PublishPlan") -> dict[str, WordCount]:
        """What was counted before, to be corrected."""
        words: dict[str, WordCount] = {}
        if plan.before is not None:
            query = {"term": {"kind": WORDS}}
            fields = {"_source": ["layer"], "stored_fields": ["words", "_source"]}
            order = ["layer", "chunk"]
            for hit in all_hits(self._connection, plan.before[0], query, fields, order, _soon()):
                count = words.setdefault(hit["_source"]["layer"], WordCount())
                count.take(hit["fields"]["words"][0])
        return words

    def _old(self, plan: "PublishPlan") -> Iterator[tuple[str, str, list[str], int]]:
        """The pages that go or change, as they were: path, layer, places of words, sections."""
        if plan.before is None:
            return
        gone = [path for path in (*plan.removed, *plan.changed) if path in plan.known]
        for start in range(0, len(gone), 200):
            ids = [page_id(path) for path in gone[start : start + 200]]
            query = {"ids": {"values": ids}}
            fields = {
                "_source": ["path", "layer", "sections"],
                "docvalue_fields": [*BUCKET_FIELDS, VECTORS],
            }
            for hit in all_hits(self._connection, plan.before[0], query, fields, ["path"], _soon()):
                stored = hit.get("fields", {})
                self._vectors.remember(stored, plan.before[1].model)
                places = [from_column(stored[name][0]) for name in BUCKET_FIELDS if name in stored]
                source = hit["_source"]
                yield source["path"], source["layer"], places, source["sections"]

    def _finish(self, plan: "PublishPlan", meta: Meta) -> None:
        """Check what was written, and let the alias move to it."""
        ask, name = self._connection, str(plan.name)
        ask.request("POST", f"/{name}/_refresh", None, _soon())
        self._validate(name, meta)
        closed = {"index.blocks.write": True, "index.refresh_interval": "1s"}
        ask.request("PUT", f"/{name}/_settings", closed, _soon())
        self._lock.renew(_soon(), now=True)
        generations.write_meta(ask, name, replace(meta, published=time.time()), _soon())
        old = [one for one in plan.served if one != name]
        generations.move_alias(ask, plan.name, old, _soon())
        for index in old:
            if (parse_name(index) or plan.name).mapping == MAPPING:
                _, before = next(generations.metas(ask, [index], _soon()))
                retired = replace(before, retired=time.time())
                generations.write_meta(ask, index, retired, _soon())

    def _validate(self, name: str, meta: Meta) -> None:
        query = {"term": {"kind": PAGE}}
        sums = {"sections": {"sum": {"field": "sections"}}}
        body = {"size": 0, "query": query, "track_total_hits": True, "aggs": sums}
        answer = self._connection.request("POST", f"/{name}/_search", body, _soon())
        found = answer["hits"]["total"]["value"], int(answer["aggregations"]["sections"]["value"])
        if found != (meta.documents, meta.sections):
            generations.delete(self._connection, name, _soon())
            raise Unavailable(
                f"the cluster holds {found[0]:,} pages and {found[1]:,} sections where "
                f"{meta.documents:,} and {meta.sections:,} were written; "
                "what was served is served still; publish again"
            )

    def _pruned(self, plan: "PublishPlan | None") -> tuple[str, ...]:
        """Remove generations that nobody reads any more; the names of those removed."""
        ask = self._connection
        alias = generations.served(ask, _soon())
        now = time.time()
        gone: list[str] = []
        for name, meta in generations.all_of(ask, self._options.source, _soon()).items():
            if name in alias or (plan is not None and name == str(plan.name)):
                continue
            is_left_over = not meta.published
            if is_left_over or now - (meta.retired or now) >= self._options.grace_seconds:
                generations.delete(ask, name, _soon())
                gone.append(name)
        return tuple(gone)


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What has to be done to bring the cluster to some pages."""

    name: Name
    pages: Mapping[str, PageToPublish]
    served: tuple[str, ...]
    """The indexes of this source that the alias knows."""
    before: tuple[str, Meta] | None
    known: Mapping[str, tuple[str, str]]
    changed: list[str]
    """New and changed paths."""
    removed: list[str]
    settings: Mapping[str, Any]

    @property
    def is_needed(self) -> bool:
        return self.served != (str(self.name),)

    @property
    def copies(self) -> bool:
        """Whether the generation before is copied and changed, in place of writing all."""
        moved = len(self.changed) + len(self.removed)
        return self.before is not None and moved <= _MOST_CHANGED * len(self.known)

    def told(self, sections: int, *, moved: bool) -> Published:
        added = sum(path not in self.known for path in self.changed)
        return Published(
            source=self.name.source,
            index=str(self.name),
            documents=len(self.pages),
            sections=sections,
            added=added,
            changed=len(self.changed) - added,
            removed=len(self.removed),
            moved=moved,
        )


def _named(source: SourceFile, name: str) -> SourceFile:
    """A file as it is called beside those of other sources."""
    if name == OWN:
        return source
    layer, _, rest = source.topic.partition("/")
    address = f"{layer}/{name}/{rest}"
    return source._replace(path=f"{name}/{source.path}", address=address, source=name)


def _shared(settings: Settings) -> dict[str, Any]:
    """What replicas need to know of a repository's settings."""
    return {
        "layers": list(settings.repository_layers or settings.layers),
        "synonyms": {word: list(others) for word, others in settings.synonyms.items()},
        "recipes": settings.recipes,
        "language": settings.context.language or repository_language(settings.root),
        "stale_months": settings.check.stale_months,
    }


def _soon() -> Deadline:
    return Deadline(STEP_SECONDS * 1000)
