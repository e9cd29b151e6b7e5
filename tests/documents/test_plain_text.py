import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.plain_text import find_footers, is_listing, last_lines, section_prose
from sage.documents.site_markup import without_site_marks

PROSE = Path(__file__).parent.parent / "golden" / "prose"


def text_of(source: str, level: int = 0) -> str:
    return section_prose(source, level).text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Use **bold**, _soft_ and `code`.", "Use bold, soft and code."),
        ('See [the guide](../guide.md "t") or [it][1].', "See the guide or it."),
        ("![a picture](x.png)", "a picture"),
        ("- one\n* two\n1. three\n- [x] done", "one\ntwo\nthree\ndone"),
        ("> quoted\n> more", "quoted\nmore"),
        ("| a | b |\n|---|:-:|\n| c | d |", "a | b\n\nc | d"),
        ("a <b>c</b> <!-- not\nthis --> d", "a  c  \nd"),
        ("snake_case_name and 2*3*4", "snake_case_name and 2*3*4"),
        ("5 &lt; 6 \\*star\\*", "5 < 6 *star*"),
        (
            "See [`restart()`](../a/b.md#c) and [the `x` of it](y.md).",
            "See restart() and the x of it.",
        ),
        ("**`bold`**, _`soft`_ and *`both`*", "bold, soft and both"),
        ("`a` \x00 `b`", "a \ufffd b"),
        ("text\n\n[ref]: https://example.com", "text"),
        ('<a id="opt-x" href="#opt-x" title="#opt-x">`x`</a> is on', "x  is on"),
        ("!!!note\n    one\n\n??? tip inline end\n    two", "one\n\n\ntwo"),
        ("!!! never delete this", "!!! never delete this"),
        ("a\n\n---\n\nb", "a\n\n\n\nb"),
    ],
)
def test_marks_are_removed_and_words_stay(source: str, expected: str) -> None:
    assert text_of(source) == expected


def test_the_heading_is_not_part_of_the_text() -> None:
    assert text_of("## Title\n\nBody", 2) == "Body"
    assert text_of("Title\n=====\nBody", 1) == "Body"


def test_code_is_kept_apart_and_fences_nest() -> None:
    prose = section_prose("before\n````md\n```py\nx = 1\n```\n````\nafter", 0)
    assert prose.text == "before\nafter"
    assert prose.code == "```py\nx = 1\n```"
    assert prose.whole == "before\nafter\n```py\nx = 1\n```"


@pytest.mark.parametrize(
    ("heading", "body"),
    [
        ("Table of Contents", "- [1. Overview](#1-overview)\n- [2. Use](#2-use)"),
        ("2. Contents", "* [Overview](#overview)"),
        ("Related", "- `.knowledge/core/x.md` — what it says\n- [b](b.md)"),
        ("See also", "- [a](a.md): a long remark that says what the other page is about"),
        ("目录", "- [一](#一)"),
        ("Pages", "- [a](a.md)\n- [b](b.md)\n\n---"),
    ],
)
def test_sections_that_only_point_elsewhere_are_listings(heading: str, body: str) -> None:
    assert is_listing(heading, f"## {heading}\n\n{body}\n", 2)


@pytest.mark.parametrize(
    ("heading", "body"),
    [
        ("Related work", "Others have tried to measure this before us, with little success."),
        ("Contents", "The crate contains the parts below, weighed and labelled by hand."),
        ("Links", ""),
        ("Setup", "- [Install it](a.md)\n- Then run the migration before the first start."),
    ],
)
def test_sections_that_say_something_are_no_listings(heading: str, body: str) -> None:
    assert not is_listing(heading, f"## {heading}\n\n{body}\n", 2)


def test_footers_are_left_out() -> None:
    source = "Text.\n\n---\n\n*The Team Handbook*\n"
    assert last_lines(source) == ("*The Team Handbook*", "Text.")
    assert section_prose(source, 0, frozenset({"*The Team Handbook*"})).text == "Text."


def test_a_line_is_a_footer_when_many_documents_end_with_it() -> None:
    assert find_footers([("end",)] * 4 + [("other",)] * 2) == {"end"}
    assert not find_footers([("end",)] * 3)
    assert not find_footers([("end",)] * 5 + [()] * 50)


@given(st.text(), st.integers(0, 6))
def test_any_text_has_a_plain_form(source: str, level: int) -> None:
    prose = section_prose(source, level)
    assert isinstance(prose.whole, str)
    assert is_listing("Links", source, level) in (True, False)


@pytest.mark.parametrize("line", [" " * 500_000 + "x", "`" + "./" * 300_000, "|" + "-" * 500_000])
def test_line_without_end_is_looked_at_once(line: str) -> None:
    assert not is_listing("Links", line, 1)
    assert section_prose(f"{line}x", 0).text


@pytest.mark.parametrize("path", sorted(PROSE.glob("*.md")), ids=lambda path: path.stem)
def test_golden_file_says_what_a_reader_of_the_site_sees(path: Path) -> None:
    source = path.read_text("utf-8")
    prose = section_prose(source, int(source.startswith("#")))
    said = "\n".join(line.strip() for line in prose.text.splitlines() if line.strip())
    found = f"{said}\n--- code\n{prose.code}\n"
    if os.environ.get("SAGE_UPDATE_GOLDEN"):
        path.with_suffix(".txt").write_text(found, "utf-8")
    assert found == path.with_suffix(".txt").read_text("utf-8")


@given(st.text(alphabet='<!->{%}:# \n`~[]ab"=import', max_size=200))
def test_cleaning_keeps_every_line(source: str) -> None:
    assert without_site_marks(source).count("\n") == source.count("\n")


FLOODS = (
    "<!--", "{{<", "{%", ":::", ":::{", "!!! a ", "> ", "import {", "export const ", "{:", "`",
    "[[", "[^", "<a ", "</a", "{{< a ", "\n```\n<!--", " ", "{#", "[!", "{/*", '=== "', "&", "*",
    "_", "<a>", "\n:::", "\n{: ", "a`",
)  # fmt: skip


@pytest.mark.parametrize("piece", FLOODS)
def test_a_flood_of_one_mark_takes_no_longer_than_its_length(piece: str) -> None:
    section_prose(piece * (200_000 // len(piece)), 1)
