"""Cases of names: no text, deceiving, colliding, or meaning something to a shell or a URI."""

import os
from collections.abc import Iterator
from functools import partial

from tests.hostile.cases import Case, Place

BAD = "unreadable-name"

# What a name holds, and how it is shown: never as it is.
_LEFT_OUT = {
    "line-break": ("a\nb", r"a\nb"),
    "carriage-return": ("a\rb", r"a\rb"),
    "tab": ("a\tb", r"a\tb"),
    "terminal-escape": ("a\x1b[2Jb", r"a\x1b[2Jb"),
    "bell": ("a\x07b", r"a\x07b"),
    "c1-control": ("a\x9bb", r"a\x9bb"),
    "bidi-override": ("a\u202egpj", r"a\u202egpj"),
    "bidi-isolate": ("a\u2066b", r"a\u2066b"),
    "tag": ("a\U000e0041b", r"a\U000e0041b"),
    "zero-width": ("a\u200bb", r"a\u200bb"),
    "byte-order-mark": ("\ufeffa", r"\ufeffa"),
    "soft-hyphen": ("a\u00adb", r"a\xadb"),
    "line-separator": ("a\u2028b", r"a\u2028b"),
    "no-break-space": ("a\u00a0b", r"a\xa0b"),
    "private-use": ("a\ue000b", r"a\ue000b"),
    "not-a-character": ("a\uffffb", r"a\uffffb"),
    "hangul-filler": ("a\u3164", r"a\u3164"),
    "half-filler": ("a\uffa0", r"a\uffa0"),
    "variation-selector": ("a\ufe0f", r"a\ufe0f"),
    "grapheme-joiner": ("a\u034fb", r"a\u034fb"),
}
_UNDECODABLE = {
    "byte-ff": (b"\xff", r"\xff"),
    "latin-1": (b"caf\xe9", r"caf\xe9"),
    "overlong-dots": (b"\xc0\xae\xc0\xae", r"\xc0\xae\xc0\xae"),
    "surrogate": (b"a\xed\xa0\x80", r"a\xed\xa0\x80"),
}
_SERVED = {
    "encoded-dots": "%2e%2e%2fx",
    "encoded-nul": "x%00",
    "backslashes": "a\\..\\..\\x",
    "tilde": "~root",
    "quotes": "a\"b'c`d",
    "shell": "$(id);rm -rf",
    "option": "--root",
    "star": "*",
    "question": "what?",
    "hash": "c#sharp",
    "brackets": "[x](y)",
    "markup": "<script>alert(1)<",
    "template": "{layer}",
    "drive": "C:x",
    "device-of-windows": "CON",
    "full-width-slash": "．．／．．／x",
    "two-dot-leader": "‥",
    "homoglyph": "hеаlthy",
    "emoji": "🎉☕️",
    "long": "n" * 252,
    "trailing-blank": "blank ",
    "dots": "a...",
    "combining": "z" + "\u0335\u0321" * 60,
    "suffix-twice": "page.md",
    "upper-suffix": "SHOUT",
}


def name_cases() -> Iterator[Case]:
    """Names that are left out under a readable form, and names that only look dangerous."""
    for name, (stem, shown) in _LEFT_OUT.items():
        yield _left_out(name, stem.encode(), shown)
    for name, (raw, shown) in _UNDECODABLE.items():
        yield _left_out(name, raw, shown)
    for name, stem in _SERVED.items():
        yield _served(name, stem)
    yield from _collisions()
    yield Case(
        "folder-of-an-undecodable-name",
        lambda place: os.mkdir(os.fsencode(place.core) + b"/\xfe\xff"),
        {r"core/\xfe\xff": BAD},
    )
    yield Case("only-a-suffix", lambda place: place.write("core/.md", "x"), {"core/.md": "hidden"})
    yield Case(
        "climbing-name", lambda place: place.write("core/...md", "x"), {"core/...md": "hidden"}
    )


def _left_out(name: str, raw: bytes, shown: str) -> Case:
    def build(place: Place) -> None:
        with open(os.fsencode(place.core) + b"/" + raw + b".md", "wb") as file:
            file.write(b"# Named\n\nText of a name.\n")

    return Case(f"name-{name}", build, {f"core/{shown}.md": BAD})


def _served(name: str, stem: str) -> Case:
    says = f"The page called {name}."
    suffix = ".MD" if name == "upper-suffix" else ".md"
    return Case(
        f"name-{name}",
        lambda place: place.write(f"core/{stem}{suffix}", f"# Named\n\n{says}\n"),
        served={f"core/{stem}": says},
    )


def _collisions() -> Iterator[Case]:
    """Names that are one on another system: all are read, each under its own path."""
    pairs = {
        "case": ("Twin", "tWIN"),
        "composed": ("caf\u00e9", "cafe\u0301"),
        "suffix": ("both.md", "both.markdown"),
        "compatibility": ("ﬁle", "file"),
        "hyphen": ("under_score", "under-score"),
    }
    for name, (one, other) in pairs.items():
        files = [stem if "." in stem else f"{stem}.md" for stem in (one, other)]
        yield Case(
            f"names-alike-by-{name}",
            partial(_write_each, files),
            served={
                f"core/{one.removesuffix('.md')}": files[0],
                f"core/{other.removesuffix('.markdown')} ": files[1],
            },
        )


def _write_each(files: list[str], place: Place) -> None:
    for file in files:
        place.write(f"core/{file}", file)
