"""What is said of a context."""

from sage.context.explain import PackedContext
from tests.contexts import answer_tokens, build, finding, prose

RETRIES = "# Retries\n\n## Backoff\n\nWait longer before each retry of a carrier job. "
FILES = {
    "core/principles.md": f"# Principles\n\n{prose(20, 1)}\n",
    "practices/retries.md": f"{RETRIES}{prose(50, 2)}\n",
    "guidelines/python.md": f"---\ntask_types: [coding]\n---\n# Python\n\n{prose(60, 3)}\n",
}


def packed(task: str = "", budget: int = 4000) -> PackedContext:
    found = finding(("practices/retries.md", 1, 0.9))
    return build(FILES, task=task, budget=budget, rank=found)


def whys(context: PackedContext) -> dict[str, str]:
    return {source["topic"]: source["why"] for source in context.sources}


def test_a_source_says_which_words_of_the_task_it_holds() -> None:
    found = whys(packed("Retry the carrier's job"))
    assert found["practices/retries#backoff"] == "task: retry, carrier, job"


def test_without_a_task_a_source_says_what_the_recipe_wants_it_for() -> None:
    found = whys(packed())
    assert "core principle" in found["core/principles"]
    assert found["guidelines/python"] == "for coding; language python"


def test_a_source_names_its_lines() -> None:
    lines = {one["topic"]: one["lines"] for one in packed().sources}
    assert lines["guidelines/python"] == "4-6"


def test_what_came_next_is_named_by_topic() -> None:
    context = packed(budget=260)
    assert not context.complete
    assert "practices/retries#backoff" in context.omitted
    assert answer_tokens(context) <= 260


def test_no_more_than_a_few_sections_of_a_document_are_omitted() -> None:
    sections = "\n\n".join(f"## S{n}\n\n{prose(80, n)}" for n in range(30))
    files = {f"practices/{name}.md": f"# {name}\n\n{sections}{name}\n" for name in ("one", "two")}
    documents = [topic.split("#")[0] for topic in build(files, budget=400).omitted]
    assert documents.count("practices/one") <= 2
    assert documents.count("practices/two") <= 2


def test_sections_are_named_in_order_and_those_of_one_name_with_their_page() -> None:
    files = {
        "practices/a.md": f"# First\n\n## Rules\n\n{prose(40, 5)}\n",
        "practices/b.md": f"# Second\n\n## Rules\n\n{prose(60, 6)}\n\n",
        "practices/c.md": f"# Third\n\n## Steps\n\n{prose(60, 7)}\n\n",
    }
    names = sorted(build(files).sections)
    assert names == ["First > Rules", "Second > Rules", "Steps"]


def test_a_cut_context_is_not_complete() -> None:
    files = {"practices/a.md": "# A\n\n" + "\n\n".join(prose(40, n) for n in range(20))}
    assert not build(files, budget=500).complete
