"""The words about a pack."""

from tests.contexts import build, finding, prose

PRINCIPLES = f"# Principles\n\n{prose(60, 1)}\n"
RETRIES = "# Retries\n\n## Backoff\n\nWait longer before each retry of a carrier call. " + prose(
    50, 2
)
FILES = {
    "core/principles.md": PRINCIPLES,
    "practices/retries.md": RETRIES + "\n",
    "guidelines/python.md": f"---\ntask_types: [coding]\n---\n# Python\n\n{prose(60, 3)}\n",
}


def whys(budget: int = 4000) -> dict[str, str]:
    pack = build(
        FILES,
        task="Retry the carrier's call",
        budget=budget,
        rank=finding(("practices/retries.md", 1, 0.9)),
    )
    return {source["topic"]: source["why"] for source in pack.sources}


def test_every_source_says_why_it_was_chosen() -> None:
    found = whys()
    assert "core principle" in found["core/principles"]
    assert found["practices/retries#backoff"].startswith("task words: retry, carrier, call")
    assert "front matter task_types: coding" in found["guidelines/python"]
    assert "language python" in found["guidelines/python"]


def test_a_source_names_path_lines_and_tokens() -> None:
    pack = build(FILES)
    source = next(one for one in pack.sources if one["topic"] == "guidelines/python")
    assert (source["path"], source["lines"]) == (".knowledge/guidelines/python.md", [4, 6])
    assert sum(one["tokens"] for one in pack.sources) >= pack.token_count


def test_what_came_next_names_the_call_that_fetches_it() -> None:
    pack = build(FILES, budget=260)
    assert not pack.complete
    omitted = {one["topic"]: one for one in pack.omitted}
    backoff = omitted["practices/retries#backoff"]
    assert backoff["title"] == "Retries > Backoff"
    assert backoff["tokens"] > 50
    assert backoff["call"] == (
        'sage_get_knowledge(layer="practices", topic="practices/retries#backoff")'
    )


def test_no_more_than_a_few_sections_of_a_document_are_omitted() -> None:
    sections = "\n\n".join(f"## S{n}\n\n{prose(80, n)}" for n in range(30))
    files = {f"practices/{name}.md": f"# {name}\n\n{sections}{name}\n" for name in ("one", "two")}
    pack = build(files, budget=300)
    documents = [one["topic"].split("#")[0] for one in pack.omitted]
    assert documents.count("practices/one") <= 2
    assert documents.count("practices/two") <= 2


def test_sections_are_named_in_order_and_never_twice() -> None:
    page = f"# Same\n\n## Rules\n\n{prose(40, 5)}"
    files = {"practices/a.md": page, "practices/b.md": page + " Differs. " + prose(60, 6)}
    pack = build(files)
    assert sorted(pack.sections) == [
        "Same > Rules (practices/a#rules)",
        "Same > Rules (practices/b#rules)",
    ]


def test_a_cut_pack_is_not_complete() -> None:
    files = {"practices/a.md": "# A\n\n" + "\n\n".join(prose(40, n) for n in range(20))}
    assert not build(files, budget=500).complete
