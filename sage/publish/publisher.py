"""A repository's knowledge to the cluster: a new generation, checked before it is served.

Only what changed is written, into a copy of the generation before. The alias moves when the new
one holds exactly what it should; until then, and when anything fails, the old one is served.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sage.cluster import generations
from sage.cluster.connection import Connection, soon, taken_apart
from sage.cluster.generations import Meta
from sage.cluster.node_errors import DiskFull
from sage.cluster.page_record import DAMAGED, PageWords, from_column, words_on
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
from sage.context.recipes import load_recipes
from sage.errors import TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.publish.bulk import Bulk, bulk_into
from sage.publish.describing import Describing
from sage.publish.lock import PublishLock
from sage.publish.plan import Published, PublishPlan, ServedPage, is_whole
from sage.publish.repository_pages import (
    RepositoryPages,
    is_committed,
    pages_of,
    refuse_nothing,
    size_of_pages,
)
from sage.values import OWN

logger = logging.getLogger("sage.cluster")

GRACE_SECONDS = 300.0
"""So long a generation stays that is no longer served: a call may still read it."""
_OLD_PAGES = 100
"""Whose columns are asked for together: those of a page may be as large as the page."""

READING, COUNTING, WRITING = "reading", "counting", "publishing"
Progress = Callable[[str, int, int], None]
"""What is done with pages, with how many of them, of how many."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What the operator decides."""

    source: str = OWN
    dry_run: bool = False
    grace_seconds: float = GRACE_SECONDS
    shards: int = 1
    allow_empty: bool = False
    """Whether no pages at all may be published."""
    anew: bool = False
    """Whether every page is written, whatever is served."""


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
        self._progress = progress or (lambda _work, _done, _total: None)
        self._lock = PublishLock(connection, options.source)
        self._vectors = VectorWriter(knowledge.settings)
        self._describing = Describing()

    def publish(self) -> Published:
        """Bring the cluster to the files as they are now.

        Raises:
            Unavailable: the cluster cannot be reached, takes no writes, or holds another thing
                than was written; what was served is served still.
            ConfigError: nothing would be published over something, or a recipe is wrong.
            SageError: a page could not be read.
        """
        load_recipes(self._knowledge.settings)  # as replicas do: what they refuse is not published
        self._connection.check_version(soon())
        generations.refuse_index(self._connection, soon())
        try:
            if not self._is_served():
                # Everything will be written: processes get ready while the pages are read.
                self._describing.start(size_of_pages(self._knowledge))
            source, model = self._options.source, self._vectors.model
            pages = pages_of(self._knowledge, source, model, partial(self._progress, READING))
            return self._published(pages)
        finally:
            self._describing.close()

    def _published(self, pages: RepositoryPages) -> Published:
        if self._options.dry_run:
            return self._plan(pages).told(self._counted(pages), moved=False)
        self._lock.acquire(soon())
        try:
            plan = self._plan(pages)
            if not plan.is_needed and plan.before is not None:
                self._name_commit(*plan.before, pages.commit)
                done = plan.told(plan.before[1].sections, moved=False)
            else:
                done = plan.told(self._write(plan), moved=True)
            return replace(done, pruned=self._pruned())
        finally:
            self._lock.release(soon())

    def _name_commit(self, index: str, meta: Meta, commit: str) -> None:
        """Let what is served say the last commit that holds exactly that."""
        if is_committed(commit) and commit != meta.commit:
            generations.write_meta(self._connection, index, replace(meta, commit=commit), soon())

    def prune(self) -> tuple[str, ...]:
        """Remove what is no longer served, and publish nothing; in a dry run, what would go."""
        ask, options = self._connection, self._options
        ask.check_version(soon())
        if options.dry_run:
            is_taken = self._lock.is_taken
            return generations.unread(ask, options.source, options.grace_seconds, is_taken)
        try:
            self._lock.acquire(soon())
        except DiskFull:
            if self._lock.is_taken(soon()):
                raise
            # Nobody can publish now, and what nobody reads takes the room that is missing.
            return self._removed(lambda: None)
        try:
            return self._removed(self._make_certain)
        finally:
            self._lock.release(soon())

    def _removed(self, make_certain: Callable[[], None]) -> tuple[str, ...]:
        source, grace_seconds = self._options.source, self._options.grace_seconds
        return generations.remove_unread(self._connection, source, grace_seconds, make_certain)

    def _make_certain(self) -> None:
        """See that nobody else publishes, before what cannot be taken back."""
        self._lock.renew(soon())

    def _is_served(self) -> bool:
        """Whether this version published anything of this source that is served."""
        names = map(parse_name, generations.served(self._connection, soon()))
        wanted = self._options.source, MAPPING
        return any(name and (name.source, name.mapping) == wanted for name in names)

    def _counted(self, pages: RepositoryPages) -> int:
        """The sections of all pages."""
        sections = done = 0
        for made in self._describing.described(list(pages.by_path.values()), pages.footers, 0):
            sections += made.sections
            done += len(made.lines)
            self._progress(COUNTING, done, len(pages.by_path))
        return sections

    def _pruned(self) -> tuple[str, ...]:
        """Remove what is no longer read after a publish, which is done whether that succeeds."""
        try:
            return self._removed(self._make_certain)
        except (Unavailable, TimeoutExceeded) as error:
            logger.warning("what was published is served; old generations stay for now: %s", error)
            return ()

    def _plan(self, pages: RepositoryPages) -> PublishPlan:
        base = self._connection.options.base
        name = Name(base, self._options.source, pages.content)
        held = generations.all_of(self._connection, name.source, soon())
        mine = self._served(held)
        if not pages.by_path and not self._options.allow_empty:
            documents = sum(held[one].documents for one in mine) if mine else None
            refuse_nothing(self._knowledge.settings.root, name.source, documents)
        ours = [one for one in mine if (parse_name(one) or name).mapping == MAPPING]
        before: tuple[str, Meta] | None = None
        known: dict[str, ServedPage] = {}
        if ours and not self._options.anew and self._can_be_read(ours[0]):
            found = self._known(ours[0])
            if is_whole(held[ours[0]], found):
                before, known = (ours[0], held[ours[0]]), found
            else:
                logger.warning("%s does not hold what it says: all is written anew", ours[0])
        changed = [
            path
            for path, page in pages.by_path.items()
            if path not in known or known[path].hashed != page.hashed
        ]
        plan = PublishPlan(
            name=name,
            pages=pages,
            held=held,
            served=tuple(mine),
            before=before,
            known=known,
            changed=changed,
            removed=[path for path in known if path not in pages.by_path],
        )
        if plan.is_needed and str(name) in mine:  # what is served there cannot be read
            return replace(plan, name=name._replace(content=uuid.uuid4().hex[:16]))
        return plan

    def _served(self, held: Mapping[str, Meta]) -> list[str]:
        """The indexes of this source that the alias knows."""
        mine: list[str] = []
        for index in generations.served(self._connection, soon()):
            parts = parse_name(index)
            if index in held:
                mine.append(index)
            elif parts is None or parts.source == self._options.source:
                raise Unavailable(generations.not_ours(index))
        return mine

    def _can_be_read(self, index: str) -> bool:
        if not generations.is_red(self._connection, index, soon()):
            return True
        logger.warning("%s, which is served, is red and cannot be read: all is written anew", index)
        return False

    def _known(self, index: str) -> dict[str, ServedPage]:
        """What is kept of every page that is served, by path."""
        fields = {"_source": ["path", "hash", "sections"]}
        query = {"term": {"kind": PAGE}}
        known: dict[str, ServedPage] = {}
        for hit in all_hits(self._connection, index, query, fields, ["path"], soon()):
            self._lock.check()
            with taken_apart("the question for what is served"):
                source = hit["_source"]
                known[source["path"]] = ServedPage(source["hash"], int(source["sections"]))
        return known

    def _write(self, plan: PublishPlan) -> int:
        """Write a generation and have it served; its sections."""
        ask, name = self._connection, str(plan.name)
        waiting = plan.held.get(name)
        if waiting is not None:
            is_finished = waiting.published and waiting.content == plan.pages.content
            if is_finished and not generations.is_red(ask, name, soon()):
                waiting = replace(waiting, commit=plan.pages.commit)
            else:
                self._make_certain()
                generations.delete(ask, name, soon())  # left by a publish that was killed
                waiting = None
        if waiting is None:
            meta = self._begun(plan)
            with bulk_into(ask, name) as bulk:
                sections = self._written(plan, meta.generation, bulk)
            waiting = replace(meta, documents=len(plan.pages.by_path), sections=sections)
        self._finish(plan, waiting)
        return waiting.sections

    def _begun(self, plan: PublishPlan) -> Meta:
        """A new index: a copy of the generation before, or an empty one."""
        ask, name = self._connection, str(plan.name)
        meta = Meta(
            source=self._options.source,
            generation=0,
            key=uuid.uuid4().hex,
            commit=plan.pages.commit,
            settings=plan.pages.settings,
            model=self._vectors.model,
            content=plan.pages.content,
        )
        if plan.copies and plan.before is not None:
            index, before = plan.before
            meta = replace(meta, generation=before.generation + 1, ancestors=before.lineage)
            generations.copy(ask, index, name)
            generations.write_meta(ask, name, meta, soon())
        else:
            body = index_body(meta.to_json(), self._options.shards)
            generations.create(ask, name, body)
        return meta

    def _written(self, plan: PublishPlan, generation: int, bulk: Bulk) -> int:
        """Write what changed, and the words of all of it; the number of all sections."""
        words = self._words(plan) if plan.copies else {}
        paths = plan.changed if plan.copies else list(plan.pages.by_path)
        sections = plan.before[1].sections if plan.copies and plan.before else 0
        if plan.copies:
            for path, layer, old, count in self._old(plan):
                words.setdefault(layer, WordCount()).remove(old)
                sections -= count
                if path not in plan.pages.by_path:
                    bulk.delete(page_id(path))
                    gone = {"kind": GONE, "path": path, "generation": generation}
                    bulk.put(f"gone-{page_id(path)}", gone)
        done = 0
        self._progress(WRITING, done, len(paths))
        pages = [plan.pages.by_path[path] for path in paths]
        for made in self._describing.described(pages, plan.pages.footers, generation):
            ready = paths[done : done + len(made.lines)]
            for path, lines in zip(ready, made.lines, strict=True):
                self._lock.check()
                bulk.add(self._vectors.added_to(lines))
                if plan.copies:
                    bulk.delete(f"gone-{page_id(path)}")
            for layer, joined in made.words.items():
                words.setdefault(layer, WordCount()).join(joined)
            sections += made.sections
            done += len(made.lines)
            self._progress(WRITING, done, len(paths))
        for layer, held in words.items():
            for number, chunk in held.chunks().items():
                body = {"kind": WORDS, "layer": layer, "chunk": number, "words": chunk}
                bulk.put(words_id(layer, number), {**body, "generation": generation})
        return sections

    def _words(self, plan: PublishPlan) -> dict[str, WordCount]:
        """What was counted before, to be corrected."""
        words: dict[str, WordCount] = {}
        if plan.before is not None:
            query = {"term": {"kind": WORDS}}
            fields = {"_source": ["layer"], "stored_fields": ["words", "_source"]}
            order = ["layer", "chunk"]
            for hit in all_hits(self._connection, plan.before[0], query, fields, order, soon()):
                with taken_apart("the question for words"):
                    layer, chunk = hit["_source"]["layer"], hit["fields"]["words"][0]
                try:
                    words.setdefault(layer, WordCount()).take(chunk)
                except ValueError as error:
                    raise Unavailable(DAMAGED) from error
        return words

    def _old(self, plan: PublishPlan) -> Iterator[tuple[str, str, PageWords, int]]:
        """The pages that go or change, as they were: path, layer, words, sections."""
        if plan.before is None:
            return
        gone = [path for path in (*plan.removed, *plan.changed) if path in plan.known]
        for start in range(0, len(gone), _OLD_PAGES):
            self._lock.check()
            ids = [page_id(path) for path in gone[start : start + _OLD_PAGES]]
            query = {"ids": {"values": ids}}
            fields = {
                "_source": ["path", "layer", "sections"],
                "docvalue_fields": [*BUCKET_FIELDS, VECTORS],
            }
            for hit in all_hits(self._connection, plan.before[0], query, fields, ["path"], soon()):
                with taken_apart("the question for old pages"):
                    stored, source = hit.get("fields", {}), hit["_source"]
                    columns = [stored[name][0] for name in BUCKET_FIELDS if name in stored]
                    path, layer, sections = source["path"], source["layer"], source["sections"]
                self._vectors.remember(stored, plan.before[1].model)
                try:
                    held = words_on(map(from_column, columns))
                except ValueError as error:
                    raise Unavailable(DAMAGED) from error
                yield path, layer, held, int(sections)

    def _finish(self, plan: PublishPlan, meta: Meta) -> None:
        """Check what was written, and let the alias move to it."""
        ask, name = self._connection, str(plan.name)
        ask.request("POST", f"/{name}/_refresh", None, soon())
        self._make_certain()
        generations.check_counts(ask, name, meta, soon())
        closed = {"index.blocks.write": True, "index.refresh_interval": "1s"}
        ask.change("PUT", f"/{name}/_settings", closed, soon())
        self._make_certain()
        served = replace(meta, published=time.time(), retired=0.0)
        generations.write_meta(ask, name, served, soon())
        old = [one for one in plan.served if one != name]
        generations.move_alias(ask, plan.name, old, soon())
