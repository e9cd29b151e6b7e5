import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sage.documents import markdown
from sage.documents.markdown import Block, list_items, parse_blocks, plain_text
from sage.documents.plain_text import line_starts

LINES = (
    "# a|## b|a | b|--- | ---|:-:|\\|c\\||---|===|| text|    code|- item|2. two|1. one|> quote"
    "|```|~~~~|   ```|   # in|<div>|</div>|<!--|-->|\t# tab|[a]: b|***|\\|-\\|"
).replace("\\|", "\0")
MARKDOWN_LINES = [line.replace("\0", "|") for line in LINES.split("|")]


def kinds(text: str) -> list[tuple[str, int, int]]:
    return [(block.kind, block.start, block.end) for block in parse_blocks(text)]


def test_every_kind_of_block_is_found_with_its_lines() -> None:
    text = (
        "# Title\n\npara\ngraph\n\n```py\ncode\n```\n\n    indented\n\n- a\n- b\n\n1. c\n\n"
        "> quote\n\n| a |\n|---|\n| b |\n\n<div>\n</div>\n\n---\n"
    )
    assert kinds(text) == [
        ("heading", 0, 1),
        ("paragraph", 2, 4),
        ("fence", 5, 8),
        ("code", 9, 10),
        ("list", 11, 14),
        ("list", 14, 16),
        ("quote", 16, 17),
        ("table", 18, 21),
        ("html", 22, 24),
        ("rule", 25, 26),
    ]


def test_heading_carries_its_level_and_plain_text() -> None:
    assert parse_blocks("### The `get` of **all** [links](x) ###") == [
        Block("heading", 0, 1, 3, "The get of all links")
    ]
    assert parse_blocks("Two\nlines\n=====") == [Block("heading", 0, 3, 1, "Two lines")]


def test_paragraph_and_quote_carry_their_source() -> None:
    assert [block.text for block in parse_blocks("a *b*\n\n> c\n> d\n\n> - no words")] == [
        "a *b*",
        "c\nd",
        "",
    ]


def test_item_of_a_nested_list_belongs_to_the_item_around_it() -> None:
    text = "- a\n  - inner\n- b\n\n  more\n\n1. c\n"
    assert [(item.start, item.end) for item in list_items(text)] == [(0, 2), (2, 6), (6, 7)]


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("plain words", "plain words"),
        ("  a \n b\t c ", "a b c"),
        ("**bold** _em_ ~~gone~~ `x < y`", "bold em gone x < y"),
        ("[text](http://x) and ![alt *x*](y.png)", "text and alt x"),
        ("[ref][1] <http://x.y>", "[ref][1] http://x.y"),
        ("a &amp; b &lt;c&gt; \\*d\\*", "a & b <c> *d*"),
        ("<br>line<b>x</b>", "linex"),
        ("snake_case and 2 * 3", "snake_case and 2 * 3"),
        ("a\\\nb", "a\\ b"),
        ("*" * 3, "***"),
        ("[" * 2_000, "[" * 2_000),
    ],
)
def test_plain_text_is_what_a_reader_sees(source: str, plain: str) -> None:
    assert plain_text(source) == plain


@pytest.mark.parametrize("text", ["[" * 300_000, "> " * 100_000, "- " * 100_000, "*" * 300_000])
def test_hostile_text_is_parsed(text: str) -> None:
    assert parse_blocks(text)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [0]),
        ("a", [0, 1]),
        ("a\n", [0, 2]),
        ("a\nb", [0, 2, 3]),
        ("a\r\nb\rc\n\n", [0, 3, 5, 7, 8]),
        ("a\x0bb\u2028c\x85d", [0, 7]),
    ],
)
def test_lines_are_divided_as_commonmark_divides_them(text: str, starts: list[int]) -> None:
    assert line_starts(text) == starts


@given(st.lists(st.sampled_from(MARKDOWN_LINES), max_size=12).map("\n".join))
def test_blocks_are_those_of_the_unchanged_parser(text: str) -> None:
    """Our table rule keeps no cells; nothing else may differ from markdown-it's own rules."""
    reference = MarkdownIt("commonmark").enable("table").parse(text)
    expected = [
        (token.type.removesuffix("_open"), token.map)
        for token in reference
        if not token.level and token.map
    ]
    names = {"hr": "rule", "code_block": "code", "html_block": "html", "blockquote": "quote"}
    names |= {"bullet_list": "list", "ordered_list": "list"}
    assert [(block.kind, [block.start, block.end]) for block in parse_blocks(text)] == [
        (names.get(kind, kind), lines) for kind, lines in expected
    ]


@pytest.mark.parametrize("line", ["# a #\xa0", "# a # \t", "# a #b", "# #", "#", "# \u3000a"])
def test_the_marks_behind_a_heading_are_those_of_the_unchanged_parser(line: str) -> None:
    reference = MarkdownIt("commonmark").parse(line)
    assert parse_blocks(line)[0].text == reference[1].content


@given(st.text(max_size=200))
def test_any_text_has_blocks_and_plain_text(text: str) -> None:
    parse_blocks(text)
    list_items(text)
    assert "\n" not in plain_text(text)


def test_link_definition_that_does_not_end_is_a_paragraph() -> None:
    assert kinds("[a]: /x 'open\n" + "b\n" * 100) == [("paragraph", 0, 101)]
    assert kinds("[a]: /x 'two\nlines'\n\ntext") == [("paragraph", 3, 4)]


def test_headings_far_down_are_found_as_near_ones_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "# Top\n\nText.\n\n## Second {#two}\n\n```sh\n# no heading\n~~~\n```\n\n"
        "### Third ##\n#no heading\n    # code\n####\n## C#\n"
    )
    whole = [block for block in parse_blocks(text) if block.kind == "heading"]
    monkeypatch.setattr(markdown, "MAX_LINES", 5)
    divided = [block for block in parse_blocks(text) if block.kind == "heading"]
    assert divided == whole
    assert [block.text for block in divided] == ["Top", "Second", "Third", "", "C#"]


def test_a_long_text_is_cut_at_blank_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MAX_LINES", 4)
    text = "One\nmore.\n\n```\n# code\n```\n\nHead {#h}\n====\n\n<!--\n# no\n-->\nTwo.\n"
    blocks = parse_blocks(text)
    found = [(one.kind, one.start, one.end, one.anchor) for one in blocks]
    assert found == [
        ("paragraph", 0, 2, ""),
        ("fence", 3, 6, ""),
        ("heading", 7, 9, "h"),
        ("html", 10, 13, ""),
        ("paragraph", 13, 14, ""),
    ]
