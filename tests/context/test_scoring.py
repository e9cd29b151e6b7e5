"""What a passage is worth to a task type and its languages."""

import dataclasses

import pytest

from sage.context.passages import passages_of
from sage.context.scoring import Candidate, RecipeScorer, languages_of
from tests.contexts import RECIPES, document, entry, prose


def candidates(
    *pages: tuple[str, str], task: str = "coding", languages: str = "python"
) -> list[Candidate]:
    """The candidates of pages, the best first."""
    documents = [document(path, text) for path, text in pages]
    has_core = any(one.layer == "core" for one in documents)
    scorer = RecipeScorer(RECIPES[task], languages.split(), has_core)
    found = [
        Candidate(passage, fit)
        for one in documents
        if not scorer.why_not(entry(one))
        for passage in passages_of(one)
        if (fit := scorer.passage(passage, scorer.page(entry(one)))) is not None
    ]
    return sorted(found, key=lambda one: (-one.appeal, one.key))


def order(*pages: tuple[str, str], task: str = "coding", languages: str = "python") -> list[str]:
    """The topics of pages, the best first, those that may not come left out."""
    found = candidates(*pages, task=task, languages=languages)
    return [one.passage.document.topic.removeprefix("practices/") for one in found]


def page(name: str, front: str = "", heading: str = "Section") -> tuple[str, str]:
    """A page that differs from others only in what is given."""
    top = f"---\n{front}\n---\n" if front else ""
    return f"practices/{name}.md", f"{top}# Page\n\n## {heading}\n\n{prose(60)}\n"


def test_pages_for_other_languages_stay_out_and_own_ones_come_first() -> None:
    pages = (page("a"), page("b", "languages: [go]"), page("c", "languages: [py]"))
    assert order(*pages) == ["c", "a"]
    assert order(*pages, languages="go") == ["b", "a"]
    assert order(*pages, languages="rust") == ["a"]
    assert order(*pages, languages="") == ["a", "b", "c"]


def test_names_and_titles_tell_the_language_of_a_page_without_front_matter() -> None:
    pages = (page("SQL_PATTERNS"), page("go/errors"), page("python-style"), page("testing"))
    assert order(*pages) == ["python-style", "testing"]


def test_front_matter_wins_over_the_name() -> None:
    assert languages_of(entry(document(*page("python", "languages: [any]")))) == ()
    assert languages_of(entry(document(*page("python", "languages: [Golang]")))) == ("go",)


def test_a_section_for_another_language_stays_out_of_a_general_page() -> None:
    text = f"# Errors\n\n## Errors in Go\n\n{prose(60)}\n\n## Raising in Python\n\n{prose(60, 1)}\n"
    found = candidates(("practices/errors.md", text))
    assert [one.passage.sections[0].heading for one in found] == ["Raising in Python"]
    own = ("practices/errors.md", f"---\nlanguages: [python]\n---\n{text}")
    assert len(candidates(own)) == 2


@pytest.mark.parametrize("status", ["draft", "resolved", "superseded", "deprecated"])
def test_a_page_that_is_not_in_force_stays_out(status: str) -> None:
    assert order(page("a", f"status: {status}"), page("b", "superseded_by: a")) == []


def test_task_types_in_front_matter_lead() -> None:
    pages = (
        page("a"),
        page("b", "task_types: [coding, reviewing, planning]"),
        page("c", "task_types: [coding]"),
    )
    assert order(*pages) == ["c", "b", "a"]
    found = candidates(page("d", "task_types: [planning]"))
    assert [one.fit.is_meant for one in found] == [False]


def test_types_and_priority_count() -> None:
    pages = (page("a", "type: guide"), page("b", "type: gotcha"), page("c", "priority: low"))
    assert order(*pages, task="debugging") == ["b", "a", "c"]
    assert order(page("a"), page("b", "priority: 50"), page("c", "priority: 60")) == ["c", "b", "a"]


def test_headings_of_the_wanted_kind_come_first() -> None:
    pages = (page("a"), page("b", heading="Checklist"), page("c", heading="Overview"))
    assert order(*pages, task="reviewing") == ["b", "a", "c"]


def test_words_in_titles_count_more_than_in_tags() -> None:
    pages = (page("a"), page("b", "tags: [outage]"), page("outages"), page("troubleshooting"))
    assert order(*pages, task="debugging") == ["troubleshooting", "outages", "b", "a"]


def test_a_page_or_section_about_another_task_type_steps_back() -> None:
    assert order(page("a", heading="Planning"), page("b")) == ["b", "a"]
    assert order(page("code"), page("code-review")) == ["code", "code-review"]


def test_code_in_other_languages_counts_less() -> None:
    def with_code(name: str, language: str) -> tuple[str, str]:
        path, text = page(name)
        return path, f"{text}\n```{language}\nx = 1\n```\n"

    assert order(with_code("a", "go"), with_code("b", "python"), with_code("c", "sql")) == [
        "b",
        "c",
        "a",
    ]


def test_the_core_is_its_layer_or_else_the_principles() -> None:
    core = ("core/a.md", f"# A\n\n{prose(60)}\n")
    critical = page("b", "priority: critical")
    found = {one.passage.document.layer: one.fit.is_core for one in candidates(core, critical)}
    assert found == {"core": True, "practices": False}
    assert [one.fit.is_core for one in candidates(critical, page("core-values"))] == [True, True]


def test_the_budget_is_divided_among_the_layers_that_are_there() -> None:
    recipe = RECIPES["coding"]
    assert RecipeScorer(recipe, (), has_core=True).share("runbooks") == recipe.layers["other"]
    assert RecipeScorer(recipe, (), has_core=True).share("core") == recipe.layers["core"]
    assert RecipeScorer(recipe, (), has_core=True).shares(["core", "guidelines"]) == {
        "core": pytest.approx(20 / 55),
        "guidelines": pytest.approx(35 / 55),
    }


def test_a_layer_without_a_share_stays_out() -> None:
    recipe = dataclasses.replace(RECIPES["coding"], layers={"core": 1.0})
    scorer = RecipeScorer(recipe, (), has_core=True)
    assert scorer.why_not(entry(document(*page("a")))) == "layer practices"


def test_what_keeps_a_page_out_is_said_in_a_word() -> None:
    def why_not(front: str) -> str:
        scorer = RecipeScorer(RECIPES["coding"], ("python",), has_core=True)
        return scorer.why_not(entry(document(*page("a", front))))

    assert why_not("status: draft") == "draft"
    assert why_not("superseded_by: b") == "superseded"
    assert why_not("languages: [go, rust]") == "go, rust"
    assert why_not("languages: [python, go]") == why_not("") == ""


def test_pages_for_languages_inside_others_may_come_for_a_task() -> None:
    scorer = RecipeScorer(RECIPES["coding"], ("python",), has_core=True, any_guest=True)
    assert scorer.why_not(entry(document(*page("a", "languages: [sql]")))) == ""
    assert scorer.why_not(entry(document(*page("b", "languages: [go]")))) == "go"


def test_a_recipe_without_kinds_and_types_can_be_scored() -> None:
    recipe = dataclasses.replace(RECIPES["coding"], kinds={}, types={}, words=())
    scorer = RecipeScorer(recipe, (), has_core=True)
    assert scorer.page(entry(document(*page("a")))).value > 0
