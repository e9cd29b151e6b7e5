"""Code and comments are blanked out; everything else stays where it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sage.check.masking import mask

PIECES = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        "\n\n",
        "`",
        "``",
        "```\n",
        "````\n",
        "~~~\n",
        "- ",
        "> ",
        "<!--",
        "-->",
        "# x\n",
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_prose_keeps_every_line_and_its_place(text: str) -> None:
    prose = mask(text).prose
    assert len(prose) == len(text)
    assert [at for at, c in enumerate(prose) if c == "\n"] == [
        at for at, c in enumerate(text) if c == "\n"
    ]
    assert all(kept in (" ", was) for kept, was in zip(prose, text, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "a\n\n```py\n[x](y)\n```\n\nb\n",
        "````\n```\n# no\n```\n````\n[a](b)\n",
        "~~~\n```\n~~~\n[a](b)\n",
        "- list\n\n  ```sh\n  [x](y)\n  ```\n\n- [a](b)\n",
        "> ```\n> [x](y)\n> ```\n\n[a](b)\n",
        "``` a ` b\n[a](b)\n",
        "```\nnever closed\n[x](y)\n",
        "1. ```\n   [x](y)\n   ```\n",
    ],
)
def test_fences_are_those_of_the_markdown_parser(text: str) -> None:
    lines = {
        line
        for token in MarkdownIt().parse(text)
        if token.type == "fence" and token.map
        for line in range(*token.map)
    }
    found = mask(text)
    mine: set[int] = set()
    for fence in found.fences:
        first = text.count("\n", 0, fence.start)
        mine.update(range(first, first + fence.text.rstrip("\n").count("\n") + 1))
    assert mine == lines


def test_code_spans_are_kept_apart_and_end_with_their_paragraph() -> None:
    found = mask("a `b/c.md` ``d ` e`` \\`f ` g\n\nh ` i `` j")
    assert [span.text for span in found.spans] == ["`b/c.md`", "``d ` e``"]
    assert "b/c.md" not in found.prose


def test_comments_are_kept_apart_but_not_those_in_code() -> None:
    found = mask("x <!-- one\ntwo --> y\n```\n<!-- code -->\n```\n<!-- open")
    assert [comment.text for comment in found.comments] == ["<!-- one\ntwo -->", "<!-- open"]
    assert "x" in found.prose
    assert "two" not in found.prose


def test_a_megabyte_of_backticks_is_no_work() -> None:
    assert len(mask("` `` " * 200_000).prose) == 1_000_000
