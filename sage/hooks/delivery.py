"""What an event is worth: facts for a session that starts, a prompt, or a file that is touched."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sage.answers import SearchResult
from sage.deadline import Deadline
from sage.documents.document import Document, Section
from sage.documents.files import SourceFile
from sage.documents.front_matter import SCOPE_KEYS
from sage.documents.scopes import folder_scope, matching_glob
from sage.documents.source_roots import files_of
from sage.errors import counted
from sage.hooks.events import Event
from sage.hooks.fence import Piece, chosen, fenced, most_tokens
from sage.hooks.hosts import EventHost
from sage.hooks.relevance import content_words, pages_about
from sage.hooks.session import HookSession
from sage.knowledge import KnowledgeBase
from sage.sanitize import clean

MAX_PAGES = 4
_FRONT_BYTES = 16 * 1024
_CHANGED = "session:changed"
_REMINDED = "session:reminded"
REMINDER = (
    "SAGE: what cost time here and is not in the code (a gotcha, a cause, a decision) can become "
    'a note for review: sage note "…" --type gotcha --file PATH. Nothing was written.'
)


class Delivery:
    """Answers the events of one host from one knowledge base."""

    def __init__(
        self, knowledge: KnowledgeBase, host: EventHost, session: HookSession, deadline: Deadline
    ) -> None:
        self._knowledge = knowledge
        self._host = host
        self._session = session
        self._deadline = deadline
        self._settings = knowledge.settings.hooks

    def answer(self, event: Event) -> str:
        """The text for an event, fenced where it is for the model; empty for nothing."""
        if event.moment == "end":
            return self._reminder() if self._settings.reminder else ""
        if event.moment == "session":
            return self._session_start(event) if self._settings.session else ""
        if event.moment == "prompt":
            return self._prompt(event.prompt) if self._settings.prompt else ""
        return self._tool(event) if self._settings.edit and self._session.is_known else ""

    def _session_start(self, event: Event) -> str:
        if event.begins_anew:
            self._session.forget()
        self._knowledge.warm(self._deadline)
        count = len(self._knowledge.topics())
        if not count:
            return ""
        principles = self._principles()
        pieces = [*([principles] if principles else []), self._holdings()]
        about = f"This repository has a knowledge base of {counted(count, 'page')}."
        return self._delivered(pieces, about)

    def _prompt(self, prompt: str) -> str:
        words = content_words(prompt)
        if len(words) < 2:
            return ""
        query = " ".join(words)
        answer = self._knowledge.search(
            query, limit=MAX_PAGES, whole=False, deadline=self._deadline
        )
        reasons = self._knowledge.explain(query, limit=MAX_PAGES, deadline=self._deadline)
        about = pages_about(words, reasons)
        wanted = [result for result in answer["results"] if result["path"] in about]
        documents = {document.path: document for document in self._documents(about)}
        pieces = [
            self._result_piece(documents[result["path"]], result)
            for result in wanted
            if result["path"] in documents
        ]
        return self._delivered(pieces, "What this repository's knowledge base has on the prompt.")

    def _reminder(self) -> str:
        """Once in a session that changed files, a line for the person who ends it."""
        if _CHANGED not in self._session.given() or not self._session.claim([_REMINDED]):
            return ""
        return REMINDER

    def _tool(self, event: Event) -> str:
        files = [path for path in map(self._relative, event.files) if path]
        if not files:
            return ""
        if event.is_change:
            self._session.claim([_CHANGED])
        given = self._session.given()
        pieces = [
            piece
            for document in self._scoped(files)
            if (piece := self._page_piece(document)).key not in given
        ]
        names = ", ".join(clean(name) for name in files[:3])
        return self._delivered(pieces, f"Pages of the knowledge base that apply to {names}.")

    def _delivered(self, pieces: Sequence[Piece], about: str) -> str:
        """Those pieces that fit and that this session has not seen, in their frame."""
        given = self._session.given()
        room = self._room - most_tokens(about)
        fresh = [piece for piece in pieces if piece.key not in given]
        fitting = chosen(fresh, room, self._host.max_characters)
        claimed = self._session.claim([piece.key for piece in fitting])
        shown = [piece for piece in fitting if piece.key in claimed]
        return fenced(shown, about) if shown else ""

    @property
    def _room(self) -> int:
        """The most tokens that one event may bring."""
        return min(self._host.max_tokens, self._settings.budget_tokens)

    def _principles(self) -> Piece | None:
        """The first layer in short: what each page says of itself, and its headings."""
        layer = self._knowledge.settings.layers[0]
        listings = self._knowledge.library.refresh((layer,), self._deadline)
        pages = sorted(
            (page for page in self._loaded(files_of(listings)) if _is_current(page)),
            key=lambda page: (-page.meta.priority, page.reading_order),
        )
        lines = _fitting((_in_short(page) for page in pages), self._room // 2)
        if not lines:
            return None
        return _named("session:principles", f".knowledge/{layer}", "\n".join(lines))

    def _holdings(self) -> Piece:
        """The names of the pages of every layer, as many as fit."""
        layers = self._knowledge.settings.layers
        lines = []
        for layer in layers:
            names = [topic.removeprefix(f"{layer}/") for topic in self._knowledge.topics(layer)]
            shown = _fitting(names, self._room // 3 // len(layers))
            more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
            if names:
                lines.append(f"{layer} ({len(names)}): {', '.join(shown)}{more}")
        return _named("session:pages", ".knowledge", "\n".join(lines))

    def _page_piece(self, document: Document) -> Piece:
        """A page whole where it fits, and otherwise what it says of itself and its headings."""
        text = clean(document.body)
        if len(text) < self._host.max_characters - 1_000:
            tokens = self._knowledge.light_counter.count(text)
            whole = Piece(document.topic, document.path, text, tokens)
            if whole.cost <= self._room - 250:
                return whole
        topics = (
            f"- {section.heading} ({document.topic}#{section.anchor})"
            for section in document.sections
            if section.level == 2
        )
        lines = [f"{document.title}: {document.summary}", *_fitting(topics, self._room // 2)]
        return _named(document.topic, f"{document.path}, its outline", "\n".join(lines))

    def _result_piece(self, document: Document, result: SearchResult) -> Piece:
        """The section that was found, or its best sentences where it is too long."""
        piece = _section_piece(document, result["topic"], result["tokens"])
        if piece.cost <= self._room - 250 and len(piece.block) < self._host.max_characters - 1_000:
            return piece
        return _named(piece.key, f"{piece.source}, an excerpt", result["snippet"])

    def _scoped(self, files: Sequence[str]) -> Iterator[Document]:
        """The current pages whose scope holds one of the files."""
        layers = self._knowledge.settings.layers
        listed = files_of(self._knowledge.library.refresh(layers, self._deadline))
        for document in self._loaded(one for one in listed if self._may_have_scope(one)):
            globs = document.meta.applies_to
            if _is_current(document) and any(matching_glob(globs, name) for name in files):
                yield document

    def _may_have_scope(self, source: SourceFile) -> bool:
        """Whether a page's first bytes leave it possible: parsing every page costs too much."""
        if folder_scope(source.path):
            return True
        try:
            read = self._knowledge.library.read(source)
        except OSError:
            return False
        head = read[0][:_FRONT_BYTES] if read else b""
        return any(key.encode() in head for key in SCOPE_KEYS)

    def _documents(self, paths: Sequence[str]) -> list[Document]:
        """The documents of some paths; only those that are current."""
        layers = self._knowledge.settings.layers
        listed = files_of(self._knowledge.library.refresh(layers, self._deadline))
        loaded = self._loaded(source for source in listed if source.path in paths)
        return [document for document in loaded if _is_current(document)]

    def _loaded(self, sources: Iterable[SourceFile]) -> list[Document]:
        found = []
        for source in sources:
            self._deadline.check()
            document = self._knowledge.library.load(source, self._deadline)
            if document is not None:
                found.append(document)
        return found

    def _relative(self, name: str) -> str:
        """A file's path below the root with forward slashes; empty when it is not below it."""
        root = self._knowledge.settings.root
        normal = Path(os.path.normpath(root / name))
        for base in (root, root.resolve()):
            if normal.is_relative_to(base):
                return normal.relative_to(base).as_posix()
        return ""


def _is_current(document: Document) -> bool:
    """Whether a page may be put before an agent: settled, and no list of other pages."""
    return document.meta.status == "published" and not document.is_index


def _in_short(page: Document) -> str:
    headings = "; ".join(section.heading for section in page.sections if section.level == 2)
    line = f"- {page.title} ({page.topic}): {page.summary}"
    return f"{line} [{headings}]" if headings else line


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The first lines that together take no more than so many tokens."""
    kept: list[str] = []
    for line in lines:
        room -= most_tokens(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _named(key: str, source: str, text: str) -> Piece:
    """A piece of names and sentences; counting it exactly would cost more than it is worth."""
    return Piece(key, source, clean(text), most_tokens(text))


def _section_piece(document: Document, topic: str, tokens: int) -> Piece:
    """The section that a topic names; the first one where it names the page."""
    anchor = topic.partition("#")[2]
    section = next((one for one in document.sections if one.anchor == anchor), None)
    if section is None:
        section = _beginning(document)
        tokens = most_tokens(document.text(section))
    trail = " > ".join((document.title, *section.breadcrumb[1:]))
    text = f"{trail}\n{document.text(section)}"
    source = f"{document.path}:{section.start_line}-{section.end_line}"
    return Piece(topic, source, text, tokens + most_tokens(trail + "\n"))


def _beginning(document: Document) -> Section:
    """The first section that says something."""
    texts = (one for one in document.sections if document.text(one).count("\n") > 2)
    return next(texts, document.sections[0])
