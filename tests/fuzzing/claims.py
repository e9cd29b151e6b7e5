"""What is true of every input: said once, for the mutation loop and the property tests."""

import json
from pathlib import Path

from sage.deadline import Deadline
from sage.documents.document import Document, parse_document, whole
from sage.documents.files import Stamp
from sage.documents.library import decoded
from sage.knowledge import KnowledgeBase
from sage.sanitize import clean
from sage.search.indexing import describe
from sage.search.query import MAX_PHRASES, MAX_TERMS, FilterValues, parse
from sage.settings import load_settings
from sage.terms.analysis import MAX_TERM, Analyzer
from tests.processes import write_base

PATH = ".knowledge/core/page.md"
KNOWN = FilterValues(layers=("core", "practices"), tags=("ci", "a"), languages=("go", "python"))


class Parser:
    """Parses a page as it lies on the disk, and on a sample indexes it."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def check(self, text: str, thoroughly: bool) -> None:
        """Everything that holds for any page."""
        try:
            read = decoded(text.encode("utf-8", "surrogatepass"))
        except ValueError:  # not a page: reported, with this very reason
            read = text.replace("\0", "")
        document = parse_document(read, PATH, "core")
        assert document.title, "a page has a title"
        assert read.endswith(document.body), "the body is the end of the file"
        sections = document.sections
        assert "".join(map(document.text, sections)) == document.body, "sections make the body"
        anchors = [one.anchor for one in sections if one.anchor]
        assert len(set(anchors)) == len(anchors), "anchors are unique"
        for one in sections:
            assert 1 <= one.start_line <= one.end_line, "lines are in order"
        if thoroughly:
            self._index(document)

    def _index(self, document: Document) -> None:
        json.dumps(dict(document.meta.extra))
        card, rows = describe(document, Stamp(1, 1, 1, 1), {}, self._analyzer, lambda *_: 1)
        assert card.rows == len(rows), "every row has its card"
        shown = whole(document).text
        assert clean(shown) == shown, "what leaves is clean"
        shown.encode()


class Queries:
    """Understands a query, and on a sample answers it."""

    def __init__(self, folder: Path) -> None:
        self._analyzer = Analyzer()
        settings = load_settings(
            {"root": write_base(folder)}, {"SAGE_CACHE_DIR": str(folder / "cache")}
        )
        self._knowledge = KnowledgeBase(settings)

    def check(self, text: str, thoroughly: bool) -> None:
        """Everything that holds for any query."""
        query = parse(text, self._analyzer, KNOWN)
        assert len(query.words) <= MAX_TERMS, "a query is bounded"
        assert len(query.excluded) <= MAX_TERMS, "a query is bounded"
        assert len(query.phrases) <= MAX_PHRASES, "a query is bounded"
        for word in query.words:
            assert word.form, "a word has letters"
            assert word.cjk or len(word.form) <= MAX_TERM, "a word is bounded"
        if thoroughly and text.strip():
            self._answer(text)

    def _answer(self, text: str) -> None:
        answer = self._knowledge.search(text, deadline=Deadline(30_000))
        assert answer.get("complete", True), "it is answered whole"
        scores = [one["score"] for one in answer["results"]]
        assert scores == sorted(scores, reverse=True), "the best come first"
        assert all(0 < score <= 1 for score in scores), "a score is in (0, 1]"
        pages = {one["path"] for one in answer["results"]}
        assert answer["total"] >= len(pages), "all are counted"
