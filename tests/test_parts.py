"""The parts of a pack and the headings that name their place."""

from sage.parts import Excerpt, joined, parts_of
from sage.passages import Passage, passages_of
from tests.contexts import document, prose

LONG = [prose(260, n) for n in range(4)]
TEXT = (
    f"# Page\n\n{LONG[0]}\n\n## One\n\n{LONG[1]}\n\n### Deep\n\n{LONG[2]}\n\n## Two\n\n"
    "first\n\n- a\n- b\n\nlast\n"
)


def passages() -> tuple[Passage, ...]:
    return passages_of(document("practices/a/page.md", TEXT))


def test_a_single_section_is_named_in_full_and_not_twice() -> None:
    (part,) = parts_of([Excerpt(passages()[1])])
    assert part.text == f"# Page > One (.knowledge/practices/a/page.md:5-7)\n\n{LONG[1]}"
    assert part.topic == "practices/a/page#one"


def test_neighbours_share_a_heading_and_keep_their_own() -> None:
    one, deep = passages()[1:3]
    (part,) = parts_of([Excerpt(deep), Excerpt(one)])
    assert part.text == (
        f"# Page > One (.knowledge/practices/a/page.md:5-11)\n\n{LONG[1]}\n\n### Deep\n\n{LONG[2]}"
    )
    first, two = passages()[0], passages()[3]
    assert [part.trail for part in parts_of([Excerpt(two), Excerpt(first)])] == [
        ("Page",),
        ("Page", "Two"),
    ]


def test_a_run_of_siblings_is_named_by_what_they_share() -> None:
    (part,) = parts_of([Excerpt(one) for one in passages()[2:]])
    assert part.text.startswith("# Page (.knowledge/practices/a/page.md:9-20)\n\n### Deep\n\n")
    assert part.topic == "practices/a/page"


def test_a_cut_says_so_and_names_only_the_lines_it_kept() -> None:
    two = passages()[3]
    (part,) = parts_of([Excerpt(two, two.cut_points[1])])
    assert part.text == (
        "# Page > Two (.knowledge/practices/a/page.md:13-17)\n\nfirst\n\n- a\n\n"
        '[cut here; the rest: sage_get_knowledge(layer="practices", topic="practices/a/page#two")]'
    )


def test_nothing_follows_a_cut_in_one_part() -> None:
    one, deep = passages()[1:3]
    parts = list(parts_of([Excerpt(one, 3), Excerpt(deep)]))
    assert [part.lines for part in parts] == [(5, 7), (9, 11)]
    assert joined(parts).count("\n# Page > One > Deep (") == 1


def test_sections_below_a_cut_are_not_named() -> None:
    text = f"# P\n\n{LONG[0]}\n\n## A\n\none\n\n### B\n\ntwo\n"
    small = passages_of(document("practices/p.md", text))[1]
    assert [name for name, _ in Excerpt(small).section_names] == ["P > A", "P > A > B"]
    assert [name for name, _ in Excerpt(small, 3).section_names] == ["P > A"]
