"""The excerpts of a context and the headings that name their place."""

from sage.context.excerpts import DocumentExcerpts, Excerpt, TokenTally, in_order, joined
from sage.context.passages import Passage, passages_of
from sage.token_counter import TokenCounter
from tests.contexts import COUNTER, document, prose

LONG = [prose(260, n) for n in range(4)]
TEXT = (
    f"# Page\n\n{LONG[0]}\n\n## One\n\n{LONG[1]}\n\n### Deep\n\n{LONG[2]}\n\n## Two\n\n"
    "first\n\n- a\n- b\n\nlast\n"
)


def passages() -> tuple[Passage, ...]:
    return passages_of(document("practices/a/page.md", TEXT))


def held(*passages: Passage) -> DocumentExcerpts:
    return in_order([Excerpt(one) for one in passages])


def test_a_single_section_is_named_in_full_and_not_twice() -> None:
    one = held(passages()[1])
    assert one.text == f"# Page > One (.knowledge/practices/a/page.md:5-7)\n\n{LONG[1]}"
    assert one.topic == "practices/a/page#one"


def test_neighbours_share_a_heading_and_keep_their_own() -> None:
    one, deep = passages()[1:3]
    assert held(deep, one).text == (
        f"# Page > One (.knowledge/practices/a/page.md:5-11)\n\n{LONG[1]}\n\n### Deep\n\n{LONG[2]}"
    )


def test_sections_apart_stand_under_one_heading_with_their_lines() -> None:
    both = held(passages()[3], passages()[0])
    assert both.heading == "# Page (.knowledge/practices/a/page.md:1-3,13-20)"
    assert both.text.endswith("\n\n## Two\n\nfirst\n\n- a\n- b\n\nlast")


def test_a_section_below_one_that_is_not_there_shows_the_heading_above() -> None:
    both = held(passages()[0], passages()[2])
    assert "\n\n## One\n\n### Deep\n\n" in both.text
    assert both.topic == "practices/a/page"


def test_a_cut_says_so_and_names_only_the_lines_it_kept() -> None:
    two = passages()[3]
    cut = in_order([Excerpt(two, two.cut_points[1])])
    assert cut.text == (
        "# Page > Two (.knowledge/practices/a/page.md:13-17)\n\nfirst\n\n- a\n\n"
        '[cut here; the rest: sage_get_knowledge(layer="practices", topic="practices/a/page#two")]'
    )


def test_lines_behind_a_cut_are_named_apart() -> None:
    one, deep = passages()[1:3]
    assert in_order([Excerpt(one, 3), Excerpt(deep)]).lines == "5-7,9-11"


def test_sections_below_a_cut_are_not_named() -> None:
    text = f"# P\n\n{LONG[0]}\n\n## A\n\none\n\n### B\n\ntwo\n"
    small = passages_of(document("practices/p.md", text))[1]
    assert Excerpt(small).section_names == ["A", "B"]
    assert Excerpt(small, 3).section_names == ["A"]


def test_the_tokens_of_a_document_are_about_those_it_takes_in_the_answer() -> None:
    everything = held(*passages())
    counted = TokenTally(COUNTER).document(everything)
    exact = COUNTER.count(joined([everything]))
    assert exact < counted < 1.1 * exact + 100


def test_a_text_is_counted_once() -> None:
    counted: list[str] = []

    class Listening(TokenCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    tally = TokenTally(Listening())
    one = held(passages()[3])
    assert tally.document(one) == tally.document(one)
    assert len(counted) == len(set(counted))
