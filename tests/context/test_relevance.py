"""What the search finds for a task and its files, for each passage."""

import pytest

from sage.context.passages import passages_of
from sage.context.relevance import (
    FIRST_SHARE,
    HELD_SHARE,
    INTRODUCTION_SHARE,
    LEAST_HELD,
    LINKED_SHARE,
    PAGE_SHARE,
    Relevance,
    find_relevance,
    words_in,
)
from sage.search.searcher import RankedSection, RankedSections
from tests.contexts import document, finding, nothing, prose

PAGE = document(
    "practices/a.md",
    f"# A\n\n{prose(260)}\n\n## B\n\n{prose(260, 1)}\n\n## C\n\n{prose(260, 2)}\n",
)
OLD, NEW = ".knowledge/practices/old.md", ".knowledge/practices/new.md"


def relevance(*found: tuple[str, int, float], eligible: str = "a old new other") -> Relevance:
    """What is made of search results in pages of practices."""
    rank = finding(*((f"practices/{name}.md", n, score) for name, n, score in found))
    paths = {f".knowledge/practices/{name}.md" for name in eligible.split()}
    made = find_relevance(["task"], "", "", rank, paths.__contains__, {OLD: NEW}, {})
    assert made is not None
    return made


def of(made: Relevance) -> list[float]:
    return made.of_page(passages_of(PAGE))


def test_without_task_files_and_scopes_nothing_is_searched() -> None:
    assert find_relevance([], "", "", nothing, bool, {}, {}) is None


def test_every_text_is_searched() -> None:
    asked: list[str] = []

    def rank(text: str, limit: int) -> RankedSections:
        asked.append(text)
        return nothing(text, limit)

    find_relevance(["one", "two"], "meant", "files", rank, bool, {}, {})
    assert asked == ["one", "two", "meant", "files"]


def test_the_best_page_that_may_come_sets_the_scale() -> None:
    made = relevance(("other", 0, 0.9), ("a", 2, 0.5), eligible="a")
    assert of(made)[2] == 1.0


def test_a_page_shares_its_relevance_among_its_sections() -> None:
    both = relevance(("a", 1, 0.9), ("a", 2, 0.8))
    assert of(both) == pytest.approx([INTRODUCTION_SHARE, 1.0, (0.8 / 0.9) ** 2])
    first = of(relevance(("a", 0, 0.7), ("a", 2, 0.9)))
    assert first[1:] == [FIRST_SHARE, 1.0]
    last = of(relevance(("a", 0, 0.7), ("a", 1, 0.9)))
    assert last[1:] == [1.0, PAGE_SHARE]


def test_a_page_counts_by_what_one_section_holds_of_the_task() -> None:
    sections = [RankedSection(NEW, 0, 0.8, 0.9), RankedSection(PAGE.path, 1, 0.8, 0.3)]

    def rank(_text: str, _limit: int) -> RankedSections:
        return RankedSections(sections, is_about_it=True)

    made = find_relevance(["task"], "", "", rank, bool, {}, {})
    assert made is not None
    assert made.pages == pytest.approx({NEW: 1.0, PAGE.path: 1 - HELD_SHARE * (1 - 0.3 / 0.9)})


@pytest.mark.parametrize(
    ("held", "finds_nothing"), [(LEAST_HELD - 0.01, True), (LEAST_HELD, False)]
)
def test_a_task_of_which_no_section_holds_enough_is_about_something_else(
    held: float, finds_nothing: bool
) -> None:
    def rank(_text: str, _limit: int) -> RankedSections:
        return RankedSections([RankedSection(PAGE.path, 1, 0.8, held)], is_about_it=True)

    made = find_relevance(["task"], "", "", rank, bool, {}, {})
    assert made is not None
    assert made.finds_nothing is finds_nothing


def test_a_page_of_many_subjects_does_not_come_whole() -> None:
    terms = "\n\n".join(f"## T{n}\n\n{prose(260, n)}" for n in range(20))
    passages = passages_of(document("practices/a.md", f"# Glossary\n\n{terms}\n"))
    values = relevance(("a", 3, 0.9)).of_page(passages)
    assert values[2] == 1.0
    assert max(values[3:]) < 0.1


def test_a_section_that_a_relevant_one_links_to_comes_with_it() -> None:
    text = (
        f"# A\n\n## B\n\n{prose(260)} Then [do C](#c).\n\n"
        f"## D\n\n{prose(260, 1)}\n\n## C\n\n{prose(260, 2)}\n"
    )
    made = relevance(("a", 1, 0.9))
    values = made.of_page(passages_of(document("practices/a.md", text)))
    assert values[0] == 1.0
    assert values[1] < values[2] == LINKED_SHARE


def test_weak_finds_fall_off_and_a_poor_best_counts_less() -> None:
    made = relevance(("other", 0, 0.8), ("a", 1, 0.4))
    assert of(made)[1] == pytest.approx(0.25)
    assert relevance(("other", 0, 0.8), ("a", 0, 0.1)).pages.keys() == {
        ".knowledge/practices/other.md"
    }
    assert of(relevance(("a", 1, 0.045)))[1] == pytest.approx(0.1)


def test_one_text_of_a_task_that_something_is_about_is_enough() -> None:
    def rank(text: str, _limit: int) -> RankedSections:
        return RankedSections([], is_about_it=text == "two")

    one = find_relevance(["one"], "two", "two", rank, bool, {}, {})
    both = find_relevance(["one", "two"], "", "", rank, bool, {}, {})
    assert one is not None
    assert both is not None
    assert (one.finds_nothing, both.finds_nothing) == (True, False)


def test_what_is_found_in_a_replaced_page_speaks_for_its_successor() -> None:
    made = relevance(("old", 0, 0.9))
    assert made.pages[NEW] == pytest.approx(0.95)
    assert made.replaces == {NEW: OLD}


def test_a_page_whose_scope_holds_a_file_is_relevant_without_a_word() -> None:
    made = find_relevance([], "", "", nothing, bool, {}, {PAGE.path: "src/**"})
    assert made is not None
    assert made.pages == {PAGE.path: 1.0}
    assert min(of(made)) > 0


def test_words_are_told_in_any_form() -> None:
    words = ("retrying", "migrations", "peter", "table", "locks")
    passage = passages_of(document("practices/a.md", "# A\n\nRetry a migration; lock tables.\n"))[0]
    assert words_in(passage, words) == ["retrying", "migrations", "table", "locks"]
