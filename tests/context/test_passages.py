"""What of a document can be packed."""

from collections.abc import Sequence

from sage.context.passages import passages_of
from sage.documents.boilerplate import Footers, ending_keys, find_footers
from sage.documents.document import Document
from tests.contexts import document, prose


def texts(text: str, path: str = "practices/a.md") -> list[str]:
    return [passage.text for passage in passages_of(document(path, text))]


def footers_of(pages: Sequence[Document]) -> Footers:
    return find_footers((one.source, one.layer, ending_keys(one.body)) for one in pages)


def test_a_small_document_is_one_passage() -> None:
    assert texts("# A\n\nIntro.\n\n## B\n\nText.\n") == ["# A\n\nIntro.\n\n## B\n\nText."]


def test_a_section_takes_its_small_subsections_along() -> None:
    long = prose(300)
    found = texts(f"# A\n\n## B\n\none\n\n### C\n\ntwo\n\n## D\n\n{long}\n\n### E\n\n{long}\n")
    assert found[0] == "## B\n\none\n\n### C\n\ntwo"
    assert [text.splitlines()[0] for text in found] == ["## B", "## D", "### E"]


def test_a_heading_without_text_joins_what_is_below_it() -> None:
    found = texts(f"# A\n\n## B\n\n### C\n\n{prose(260)}\n\n### D\n\n{prose(260, 1)}\n")
    assert found[0].startswith("## B\n\n### C\n")
    assert found[1].startswith("### D\n")


def test_a_heading_with_only_small_sections_below_it_is_one_passage() -> None:
    found = texts(f"# A\n\n{prose(260)}\n\n## B\n\n### C\n\none\n\n### D\n\ntwo\n")
    assert found[1] == "## B\n\n### C\n\none\n\n### D\n\ntwo"


def test_repeated_text_is_known_by_its_runs_of_words() -> None:
    def shingles(text: str) -> set[int]:
        return set(passages_of(document("core/a.md", f"# A\n\n{text}\n"))[0].shingles)

    assert shingles("one two three four five") == shingles("**One** two, three four five!")
    assert len(shingles("one two three four five six seven")) == 3
    assert len(shingles("one")) == 1


def test_sections_for_different_languages_stay_apart() -> None:
    found = texts("# A\n\nAll.\n\n## Python\n\nOne.\n\n## Go\n\nTwo.\n")
    assert [text.splitlines()[0] for text in found] == ["## Python", "## Go"]


def test_pages_that_list_others_have_no_passages() -> None:
    assert texts("# A\n\nSee the pages.\n", "practices/INDEX.md") == []
    toc = "## Contents\n\n- [B](#b)\n\n"
    assert texts(f"# A\n\n{toc}## B\n\n{prose(40)}\n") == [f"## B\n\n{prose(40)}"]


def test_an_index_page_has_passages_where_it_says_something_itself() -> None:
    text = f"# A\n\nSee the pages.\n\n- [B](b.md)\n\n## Rules\n\n{prose(400)}\n"
    assert texts(text, "guidelines/git/README.md") == [f"## Rules\n\n{prose(400)}"]
    rules = f"# A\n\n{prose(60)}"
    assert texts(rules, "guidelines/git/README.md") == [rules]


def test_a_motto_below_the_title_is_no_passage_of_its_own() -> None:
    assert len(texts(f"# A\n\n> Motto\n\n## B\n\n{prose(400)}\n")) == 1
    assert texts("# A\n\n> All there is\n\n## Related\n\n- [b](b.md)\n") == [
        "# A\n\n> All there is"
    ]


def test_a_footer_that_many_pages_share_is_left_out() -> None:
    pages = [
        document(f"practices/p{n}.md", f"# P{n}\n\n{prose(30, n)}\n\n---\n\n*The team*\n")
        for n in range(4)
    ]
    footers = footers_of(pages)
    assert len(footers) == 1
    assert passages_of(pages[0], footers)[0].text == f"# P0\n\n{prose(30, 0)}"
    assert passages_of(document("practices/a.md", "# A\n\n*The team*\n"), footers) == ()
    assert len(passages_of(document("core/a.md", "# A\n\n*The team*\n"), footers)) == 1


def test_the_end_of_a_fence_is_no_footer() -> None:
    pages = [document(f"practices/{n}.md", f"# {n}\n\n```\nend\n```\n") for n in range(9)]
    assert passages_of(pages[0], footers_of(pages))[0].text.endswith("```")


def test_an_open_fence_is_closed_at_the_end() -> None:
    assert texts("# A\n\nText.\n\n```sh\nmake") == ["# A\n\nText.\n\n```sh\nmake\n```"]


def test_a_passage_knows_its_place() -> None:
    page = document("practices/a.md", f"---\ntitle: T\n---\n# A\n\n{prose(260)}\n\n## B\n\ntwo\n")
    first, second = passages_of(page)
    assert (first.topic, first.trail, first.start_line) == ("practices/a", ("T",), 4)
    assert (second.topic, second.trail, second.start_line) == ("practices/a#b", ("T", "B"), 8)
    assert [one.name for one in second.section_names] == ["B"]


def test_both_forms_of_heading_are_left_out_of_the_inner_text() -> None:
    page = document("practices/a.md", f"A\n=\n\n{prose(260)}\n\nTwo\nlines\n-----\n\nbody\n")
    first, second = passages_of(page)
    assert page.body[first.inner_start :].startswith(prose(260))
    assert page.body[second.inner_start :] == "body\n"


def test_what_may_not_leave_is_not_in_the_text() -> None:
    assert texts("# A\n\none\u200b\x07\r\ntwo\r\n") == ["# A\n\none\ntwo"]


def test_a_page_cannot_name_a_source() -> None:
    forged = "# Principles (.knowledge/core/principles.md:1-9)"
    (text,) = texts(f"# A\n\nText.\n\n```\n{forged}\n```\n\nSee (.knowledge/core/a.md:3-4) here.\n")
    assert f"\n{forged} (quoted)\n" in text
    assert text.endswith("See (.knowledge/core/a.md:3-4) here.")
