"""Which bytes of a file `sage export` wrote, and that they are not read back as knowledge."""

import pytest

from sage.documents.exported import END, Damaged, find_block, is_exported, without_export
from tests.conftest import Base

BEGIN = b"<!-- sage:export:begin budget=2000 -->"
BLOCK = BEGIN + b"\nwords\n" + END


def test_a_block_is_found_wherever_it_stands() -> None:
    for before, after in (
        (b"", b""),
        (b"\xef\xbb\xbf", b""),
        (b"a\r\n", b"\r\nb"),
        (b"a\n", b"\n"),
    ):
        block = find_block(before + BLOCK + after)
        assert block is not None
        assert (block.start, block.end) == (len(before), len(before) + len(BLOCK))
        assert block.mark == BEGIN


@pytest.mark.parametrize(
    "data",
    [
        b"no marks at all\n",
        b"```\n" + BLOCK + b"\n```\n",
        b"~~~~ md\n" + BLOCK + b"\n```\n~~~~~\n",
        b"    " + BEGIN + b"\n    " + END + b"\n",
        b"see " + BEGIN + b" and " + END + b"\n",
    ],
)
def test_what_is_only_shown_is_no_block(data: bytes) -> None:
    assert find_block(data) is None


@pytest.mark.parametrize("above", [b"```\n", b"~~~\n", b"```py\nx\n", b"`````\n"])
def test_a_fence_that_is_left_open_above_it_does_not_hide_a_block(above: bytes) -> None:
    inner = BEGIN + b"\n```py\ncode\n```\n~~~\nx\n~~~\n" + END
    block = find_block(above + inner + b"\n")
    assert block is not None
    assert block.start == len(above)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (BLOCK + b"\n" + BLOCK, "there are 2 blocks"),
        (BEGIN + b"\nx\n", "line 1 has no end"),
        (b"x\n" + END + b"\n", "line 2 ends a block"),
        (BEGIN + b"\n" + BLOCK, "line 1 has no end"),
    ],
)
def test_marks_that_make_no_block_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(Damaged, match=words):
        find_block(data)


def test_many_fences_are_looked_at_in_bounded_time() -> None:
    fences = b"".join(b"`" * (3 + at % 40) + b"py\n" for at in range(40_000))
    assert find_block(fences + BEGIN + b"\n" + b"```\n" * 20_000 + END) is not None


def test_a_text_without_its_export_has_as_many_lines() -> None:
    text = f"# Rules\n\n{BLOCK.decode()}\n\nMore.\n"
    assert without_export(text) == "# Rules\n\n\n\n\n\nMore.\n"
    assert without_export(f"{BEGIN.decode()}\nhalf") == f"{BEGIN.decode()}\nhalf"
    assert without_export("It names sage:export only.") == "It names sage:export only."


def test_a_file_is_ours_only_if_its_mark_stands_near_its_beginning() -> None:
    mark = b"<!-- sage:export:file -->\n"
    assert is_exported(b"---\na: 1\n---\n" + mark)
    assert not is_exported(b"x\n" * 50 + mark)
    assert not is_exported(b"> " + mark)


def test_what_was_exported_is_not_read_back(base: Base) -> None:
    knowledge = base.open(
        {
            "core/agents.md": f"# Rules\n\nOurs: zebra.\n\n{BLOCK.decode()}\n\nEnd.\n",
            "core/rule.md": "<!-- sage:export:file -->\n\n# Copy\n\nwords\n",
        }
    )
    answer = knowledge.get("core")
    assert "zebra" in answer["content"]
    assert "End." in answer["content"]
    assert "words" not in answer["content"]
    assert answer["metadata"]["files_loaded"] == 1
    found = knowledge.info()["problems"]
    assert found["count"] == 0
