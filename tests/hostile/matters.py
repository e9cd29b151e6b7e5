"""Cases of front matter: bombs, every wrong type for every field, and characters in disguise."""

from collections.abc import Iterator
from itertools import pairwise

from tests.hostile.cases import Case, page

BAD = "front-matter"
_FIELDS = [
    "title",
    "summary",
    "tags",
    "aliases",
    "languages",
    "language",
    "task_types",
    "priority",
    "order",
    "status",
    "superseded_by",
    "type",
    "last_updated",
    "owner",
]
_WRONG = {"mapping": "{a: {b: c}}", "nested": "[[1, [2]]]", "truth": "true"}

_BROKEN = {
    "alias-bomb": "a: &a [x, x]\n"
    + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghi")),
    "merge-bomb": "a: &a {x: 1}\n" + "".join(f"k{n}: {{<<: [*a, *a]}}\n" for n in range(200)),
    "self-reference": "a: &a [*a]",
    "anchor": "title: &t Page",
    "flow-depth": "title: " + "[" * 500,
    "flow-depth-8000": "title: " + "[" * 8_000,
    "mapping-depth": "title: " + "{a: " * 100 + "1" + "}" * 100,
    "block-depth": "".join("  " * depth + f"k{depth}:\n" for depth in range(60)),
    "duplicate-keys": "title: One\ntitle: Two",
    "python-object": "title: !!python/object/apply:os.system ['touch owned']",
    "python-name": "title: !!python/name:os.system",
    "binary": "title: !!binary aGVsbG8=",
    "set": "tags: !!set {a, b}",
    "timestamp": "last_updated: !!timestamp 2024-13-45",
    "own-tag": "title: !evil x",
    "list-as-key": "? [a, b]\n: c",
    "tab-indent": "tags:\n\t- a",
    "unbalanced": "title: 'Page",
    "percent": "title: %evil",
    "at": "title: @evil",
    "two-colons": "title: a: b: c",
    "large": "title: " + "x" * 20_000,
    "control": "title: a\x01b",
    "escape": "title: a\x1b[31mb",
    "surrogate": r'title: "\ud800"',
    "surrogate-pair": r'title: "\ud83c\udf89"',
    "long-number": "last_updated: " + "9" * 5_000,
    "impossible-date": "last_updated: 2024-13-45",
    "directive": "%YAML 9.9\n--- \ntitle: a",
}  # fmt: skip
# These load: what leaves is clean, whatever they hold.
_STRANGE = {
    "escaped-nul": r'title: "a\0b"',
    "escaped-terminal": r'title: "a\e[31mb"',
    "escaped-bidi": r'summary: "a\u202eb"',
    "bidi": "title: a\u202eb",
    "tags": "summary: a" + "".join(chr(0xE0000 + ord(c)) for c in "ignore"),
    "long-order": "title: " + "1" * 5_000,
    "date": "last_updated: 2024-01-31",
    "time": "title: 12:30",
    "norway": "languages: [no, off, yes]",
    "octal": "title: 0o17",
    "nulls": "title: ~\ntags: null\npriority:\norder: ~",
    "numbers-for-words": "tags: 5\naliases: [1, 2.5]",
    "unknown-keys": "__class__: x\n__proto__: y\nconstructor: z",
    "many-tags": "tags: [" + ", ".join(f"t{n}" for n in range(2_000)) + "]",
    "many-keys": "".join(f"key{n}: v\n" for n in range(1_000)),
    "empty": "",
    "only-a-comment": "# nothing",
    "merge-key-as-text": "<<: text",
    "claims": "title: Healthy\naliases: [core/healthy-too]",
}


def matter_cases() -> Iterator[Case]:
    """Front matter that is wrong is named, ignored, and the body is served."""
    for name, text in _BROKEN.items():
        yield _matter(name, text, BAD)
    for name, text in _STRANGE.items():
        yield _matter(name, text)
    for field in _FIELDS:
        for kind, value in _WRONG.items():
            yield _matter(f"{field}-{kind}", f"{field}: {value}", BAD)
    yield _matter("order-infinite", "order: .inf", BAD)
    yield _matter("order-not-a-number", "order: .nan", BAD)
    yield _matter("order-huge", "order: 1.0e99")
    yield _matter("priority-huge", "priority: 999999999999999999", BAD)
    yield _matter("status-unknown", "status: \u202eevil", BAD)
    yield page("fm-list", "---\n- a\n- b\n---\nThe body stays.\n", BAD, "The body stays.")
    yield page("fm-text", "---\njust words\n---\nThe body stays.\n", BAD, "The body stays.")
    yield page("fm-unclosed", "---\ntitle: x\n\nThe body stays.\n", BAD, "The body stays.")
    yield page("fm-only-a-rule", "---\n\nThe body stays.\n", says="The body stays.")
    yield page("fm-rules", "---\n" * 5_000 + "The body stays.\n", says="The body stays.")
    yield page("fm-nul", "---\ntitle: a\0b\n---\nThe body stays.\n", "not-text")


def _matter(name: str, text: str, rule: str = "") -> Case:
    says = f"The body of {name} stays."
    return page(f"fm-{name}", f"---\n{text}\n---\n# Page\n\n{says}\n", rule, says)
