"""What the tests of the context share: documents from text, a builder, searches that are fixed."""

from collections.abc import Mapping, Sequence

from sage.context import ContextBuilder, Request
from sage.deadline import no_deadline
from sage.documents import Document, parse_document
from sage.reasons import Pack
from sage.recipes import BUILT_IN
from sage.relevance import Rank
from sage.tokens import TokenCounter

COUNTER = TokenCounter()
RECIPES = {recipe.name: recipe for recipe in BUILT_IN}
SENTENCE = "the queue keeps every order until a worker takes it and says so in the log once"
WORDS = SENTENCE.split()


def document(path: str, text: str) -> Document:
    """A document as it would be read from `.knowledge/<path>`."""
    return parse_document(text, f".knowledge/{path}", path.split("/")[0])


def documents(files: Mapping[str, str]) -> tuple[Document, ...]:
    """Documents in the order of the layers, then of paths."""
    layers = ("core", "guidelines", "frameworks", "practices")
    read = [document(path, text) for path, text in files.items()]
    return tuple(sorted(read, key=lambda one: (layers.index(one.layer), one.reading_order)))


def nothing(_text: str, _limit: int) -> Sequence[tuple[str, int, float]]:
    """A search that finds nothing."""
    return ()


def finding(*found: tuple[str, int, float]) -> Rank:
    """A search that finds these sections whatever is asked."""
    return lambda _text, _limit: [(f".knowledge/{path}", n, score) for path, n, score in found]


def build(
    files: Mapping[str, str],
    task_type: str = "coding",
    *,
    language: str = "python",
    budget: int = 4000,
    task: str = "",
    current_files: tuple[str, ...] = (),
    rank: Rank = nothing,
) -> Pack:
    """The pack of a new builder."""
    request = Request(task_type, language, budget, task, current_files)
    return ContextBuilder(RECIPES, COUNTER).build(documents(files), request, rank, no_deadline())


def topics(pack: Pack) -> list[str]:
    """The documents of a pack, in order, each once."""
    return list(dict.fromkeys(source["topic"].split("#")[0] for source in pack.sources))


def prose(words: int, seed: int = 0) -> str:
    """A paragraph that no other seed gives."""
    chosen = [WORDS[(seed * 7 + n * (3 + seed % 5)) % len(WORDS)] for n in range(words)]
    return " ".join(f"{word}{seed}-{n}" if n % 3 == 0 else word for n, word in enumerate(chosen))
