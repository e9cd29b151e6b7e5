"""Front matter of any form: the keys that change, and not a byte more."""

import itertools
import random

import pytest

from sage.documents.document import parse_document
from sage.errors import ConfigError
from sage.notes.front_matter_edit import rendered, set_keys
from sage.safe_yaml import load_yaml

VALUES = {"status": "resolved", "superseded_by": "core/a b"}

STATUS = [
    "status: draft",
    'status: "draft"',
    "status: 'draft'   # waits for Ann",
    "status:   draft\t",
    "status:",
    '"status": draft',
    "status: >-\n  draft",
    "",
]
REST = [
    "title: A page",
    "# a comment\ntitle: 'it''s: here' # another",
    "tags: [a, b, 'c, d']",
    "tags:\n  - a\n  - b # c",
    "text: |\n  status: not this one\n  ---x\n\n  more",
    "base: &base {a: 1}\ncopy: *base",
    "nested:\n  status: inner\n  superseded_by: inner",
    "title: 漢字 é 🦉\nempty:\nlast: ~",
    "\n\n  \ntitle: blank lines",
]
BODIES = ["# T\n\nstatus: draft\n", "", "no final newline", "---\nrule\n"]


def pages() -> list[tuple[bytes, bytes]]:
    """Three hundred pages: what stands before the front matter's end, and after it."""
    chance = random.Random(16)
    found = []
    for status, rest, body in itertools.product(STATUS, REST, BODIES):
        lines = [part for part in chance.sample([status, rest], 2) if part]
        head = "---\n" + "\n".join(lines) + "\n---\n"
        newline = chance.choice(["\n", "\n", "\r\n"])
        mark = chance.choice([b"", b"", b"\xef\xbb\xbf"])
        found.append(
            (
                mark + head.replace("\n", newline).encode(),
                body.replace("\n", newline).encode(),
            )
        )
    return chance.sample(found, 288) if len(found) > 288 else found


def without_ours(head: bytes) -> list[bytes]:
    """The lines of a front matter that are not about the keys that change."""
    lines = head.splitlines()
    return [
        line
        for line in lines
        if not line.startswith((b"status", b'"status"', b"superseded_by", b"  draft"))
    ]


@pytest.mark.parametrize("start", range(0, 288, 48))
def test_only_the_changed_keys_change(start: int) -> None:
    for head, body in pages()[start : start + 48]:
        after = set_keys(head + body, VALUES)
        assert after.endswith(body)
        changed = after[: len(after) - len(body)]
        assert without_ours(changed) == without_ours(head)
        assert changed.count(b"\r\n") == changed.count(b"\n") or b"\r" not in changed
        assert set_keys(after, VALUES) == after
        if b"&base" not in head:
            meta = parse_document(after.decode("utf-8"), ".knowledge/core/x.md", "core").meta
            assert (meta.status, meta.superseded_by) == ("resolved", "core/a b")


TOML_STATUS = [
    'status = "draft"',
    "status = 'draft' # waits",
    "  status\t=   'draft'",
    "",
]
TOML_REST = [
    "title = 'A page' # why",
    "tags = ['a', 'b # c']\ndate = 2026-01-01T00:00:00Z",
    'text = """\n\nmore\n"""',
    "# status = 'not this one'\nweight = 3",
    "[extra]\nstatus = 'inner'\n\n[[list]]\nstatus = 'x'",
    "'quoted key' = 1.5\nnames = { status = 'inline' }",
]


def toml_pages() -> list[tuple[str, str, str]]:
    """The lines of a front matter without its status, that of the status, and the text."""
    found = []
    for status, rest, body in itertools.product(TOML_STATUS, TOML_REST, BODIES):
        for newline in ("\n", "\r\n"):
            parts = [part.replace("\n", newline) for part in (rest, status, body)]
            found.append((parts[0], parts[1], parts[2]))
    return found


def test_only_the_changed_keys_of_toml_change() -> None:
    assert len(toml_pages()) + 288 >= 300
    for number, (rest, status, body) in enumerate(toml_pages()):
        newline = "\r\n" if number % 2 else "\n"
        mark = "\ufeff" if number % 3 == 0 else ""
        lines = [line for line in (status, rest) if line]
        head = newline.join(["+++", *lines, "+++", ""])
        after = set_keys((mark + head + body).encode(), VALUES).decode()
        assert after.startswith(mark)
        assert after.endswith(body)
        changed = after[len(mark) : len(after) - len(body)]
        ours = ("status", "superseded_by")
        kept = [line for line in changed.split(newline) if not line.strip().startswith(ours)]
        old = [line for line in head.split(newline) if not line.strip().startswith(ours)]
        assert kept == old
        assert ("\n" in changed.replace("\r\n", "")) == (newline == "\n")
        for line in rest.split(newline):
            assert line in changed.split(newline)
        assert set_keys(after.encode(), VALUES).decode() == after
        meta = parse_document(after, ".knowledge/core/x.md", "core").meta
        assert (meta.status, meta.superseded_by) == ("resolved", "core/a b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"# T\n", b"---\nstatus: resolved\nsuperseded_by: core/a b\n---\n\n# T\n"),
        (b"---\r\n---\r\nx", b"---\r\nstatus: resolved\r\nsuperseded_by: core/a b\r\n---\r\nx"),
        (b"---\nstatus: draft\n---", b"---\nstatus: resolved\nsuperseded_by: core/a b\n---"),
        (
            b"+++\nstatus = 'draft' # c\n\n[extra]\nstatus = 'x'\n+++\n# T",
            (
                b'+++\nstatus = "resolved" # c\n\nsuperseded_by = "core/a b"\n'
                b"[extra]\nstatus = 'x'\n+++\n# T"
            ),
        ),
        (
            b'+++\r\ntitle = "a"\r\n+++\r\n',
            b'+++\r\ntitle = "a"\r\nstatus = "resolved"\r\nsuperseded_by = "core/a b"\r\n+++\r\n',
        ),
    ],
)
def test_other_forms_of_a_page(before: bytes, after: bytes) -> None:
    assert set_keys(before, VALUES) == after
    meta = parse_document(after.decode(), ".knowledge/core/x.md", "core").meta
    assert meta.status == "resolved"


def test_an_empty_value_takes_the_line_out() -> None:
    assert set_keys(b"---\na: 1\nstatus: draft # x\nb: 2\n---\n", {"status": ""}) == (
        b"---\na: 1\nb: 2\n---\n"
    )


@pytest.mark.parametrize(
    "page",
    [
        b"---\nstatus: a\nstatus: b\n---\n",
        b"---\nstatus: &x draft\nother: *x\n---\n",
        b"---\na: [1\n---\n",
        b"---\n{a: 1}\n---\n",
        b"\xff\xfe",
        b"+++\na = \n+++\n",
    ],
)
def test_what_cannot_be_edited_with_certainty_is_refused(page: bytes) -> None:
    with pytest.raises(ConfigError):
        set_keys(page, VALUES)


@pytest.mark.parametrize(
    "value",
    ["plain words", "a: b", "no", "12", "- x", "#h", 'say "hi"', " x", "é", "a #b", "2026-01-01"],
)
def test_any_text_is_read_back_as_it_was(value: str) -> None:
    assert load_yaml(f"x: {rendered(value)}\n") == {"x": value}
