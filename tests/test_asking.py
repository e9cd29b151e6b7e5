import pytest

from sage.asking import Asked, Asker
from sage.deadline import Deadline
from tests.conftest import Base
from tests.searcher import Searcher

PAGES = {
    "core/a.md": "---\ntags: [ci]\nlanguage: go\n---\n# Alpha\n\nretry with backoff\n",
    "core/b.md": "# Beta\n\nretry without it, use -euo\n",
    "practices/c.md": "# Gamma\n\nnothing of that\n",
}


@pytest.fixture
def asker(base: Base) -> Asker:
    base.write(PAGES)
    searcher = Searcher(base)
    searcher.update()
    finder = searcher.engine._finder
    assert finder is not None
    return finder.asker


def ask(asker: Asker, text: str, layers: tuple[str, ...] | None = None) -> Asked:
    return asker.ask(text, layers, Deadline())


def allowed(asker: Asker, text: str, layers: tuple[str, ...] | None = None) -> list[str]:
    allows = ask(asker, text, layers).allowed
    slots = enumerate(asker.catalog.slots)
    return [card.title for slot, card in slots if allows is None or allows(slot)]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("retry", ["Alpha", "Beta", "Gamma"]),
        ("retry -backoff", ["Beta", "Gamma"]),
        ("retry -gammas", ["Alpha", "Beta"]),
        ("tag:ci retry", ["Alpha"]),
        ("lang:go retry", ["Alpha"]),
        ("layer:practices retry", ["Gamma"]),
        ('"retry with"', ["Alpha"]),
        ("use -euo", ["Alpha", "Beta", "Gamma"]),
    ],
)
def test_filters_decide_which_documents_may_be_results(
    asker: Asker, text: str, titles: list[str]
) -> None:
    assert allowed(asker, text) == titles


def test_a_layer_of_the_call_is_a_filter_and_all_layers_are_none(asker: Asker) -> None:
    assert allowed(asker, "retry", ("core",)) == ["Alpha", "Beta"]
    assert ask(asker, "retry", ("core", "guidelines", "frameworks", "practices")).allowed is None


def test_what_no_document_holds_raises_what_is_possible(asker: Asker) -> None:
    assert ask(asker, "retry xyzzyx").possible > ask(asker, "retry").possible
    assert ask(asker, "retry xyzzyx").notes == ('not in any document: "xyzzyx"',)


def test_many_missing_words_are_counted_not_listed(asker: Asker) -> None:
    (note,) = ask(asker, " ".join(f"qqq{letter}www" for letter in "abcdefg")).notes
    assert note.endswith("and 2 more")


def test_suggestions_look_like_the_words(asker: Asker) -> None:
    assert asker.suggest(["backof", "retrz"]) == ["backoff", "retry"]
