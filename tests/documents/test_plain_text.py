import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.plain_text import section_prose, without_site_marks

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


def test_footers_are_left_out() -> None:
    source = "Text.\n\n---\n\n*The Team Handbook*\n"
    assert section_prose(source, 0, frozenset({"*The Team Handbook*"})).text == "Text."


@given(st.text(), st.integers(0, 6))
def test_any_text_has_a_plain_form(source: str, level: int) -> None:
    prose = section_prose(source, level)
    assert isinstance(prose.whole, str)


@pytest.mark.parametrize("line", [" " * 500_000 + "x", "`" + "./" * 300_000, "|" + "-" * 500_000])
def test_line_without_end_is_looked_at_once(line: str) -> None:
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
