"""What the tests of the context share: documents from text, a builder, searches that are fixed."""

import json
from collections.abc import Mapping, Sequence

from sage.context.builder import ContextBuilder, ContextRequest, PageBase
from sage.context.explain import PackedContext
from sage.context.recipes import BUILT_IN
from sage.context.relevance import Rank
from sage.deadline import no_deadline
from sage.documents.document import Document, parse_document
from sage.documents.files import Stamp
from sage.search.catalog import DocumentEntry
from sage.search.indexing import describe
from sage.search.searcher import RankedSection, RankedSections
from sage.terms.analysis import Analyzer
from sage.token_counter import TokenCounter

COUNTER = TokenCounter()
LAYERS = ("core", "guidelines", "frameworks", "practices")
RECIPES = {recipe.name: recipe for recipe in BUILT_IN}
SENTENCE = "the queue keeps every order until a worker takes it and says so in the log once"
WORDS = SENTENCE.split()


def document(path: str, text: str) -> Document:
    """A document as it would be read from `.knowledge/<path>`."""
    return parse_document(text, f".knowledge/{path}", path.split("/")[0])


def documents(files: Mapping[str, str]) -> tuple[Document, ...]:
    """Documents in the order of the layers, then of paths."""
    read = [document(path, text) for path, text in files.items()]
    return tuple(sorted(read, key=lambda one: (LAYERS.index(one.layer), one.reading_order)))


def entry(page: Document) -> DocumentEntry:
    """What the index keeps of a document."""
    stamp = Stamp(0, 0, 0, 0)
    return describe(page, stamp, {}, Analyzer(), COUNTER.count_slice)[0]


def page_base(pages: Sequence[Document], rank: Rank) -> PageBase:
    """Documents as an index would hold them."""
    by_path = {page.path: page for page in pages}
    return PageBase({page.path: entry(page) for page in pages}, rank, by_path.get)


def nothing(_text: str, _limit: int) -> RankedSections:
    """A search that finds nothing."""
    return RankedSections([], is_about_it=False)


def finding(*found: tuple[str, int, float], is_about_it: bool = True) -> Rank:
    """A search that finds these sections whatever is asked."""
    sections = [RankedSection(f".knowledge/{path}", n, score) for path, n, score in found]
    return lambda _text, _limit: RankedSections(sections, is_about_it)


def build(
    files: Mapping[str, str],
    task_type: str = "coding",
    *,
    language: str = "python",
    budget: int = 4000,
    task: str = "",
    current_files: tuple[str, ...] = (),
    rank: Rank = nothing,
) -> PackedContext:
    """The context of a new builder."""
    request = ContextRequest(task_type, language, budget, task, current_files)
    builder = ContextBuilder(RECIPES, COUNTER, LAYERS)
    return builder.build(page_base(documents(files), rank), request, no_deadline())


def answer_tokens(packed: PackedContext) -> int:
    """The tokens of the whole answer as a client gets it."""
    answer = {
        "context": packed.context,
        "sections": packed.sections,
        "token_count": packed.token_count,
        "load_time_ms": 98765.432,
        "sources": packed.sources,
    }
    answer |= {"omitted": packed.omitted} if packed.omitted else {}
    answer |= {"note": packed.note} if packed.note else {}
    answer |= {} if packed.complete else {"complete": False}
    return COUNTER.count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def topics(packed: PackedContext) -> list[str]:
    """The documents of a context, in order."""
    return [source["topic"].split("#")[0] for source in packed.sources]


def prose(words: int, seed: int = 0) -> str:
    """A paragraph that no other seed gives."""
    chosen = [WORDS[(seed * 7 + n * (3 + seed % 5)) % len(WORDS)] for n in range(words)]
    return " ".join(f"{word}{seed}-{n}" if n % 3 == 0 else word for n, word in enumerate(chosen))
