"""Cases of markdown that is quick to write and slow to parse."""

from collections.abc import Iterator

from tests.hostile.cases import LONG, Case, page

_SIZE = 500_000 if LONG else 12_000
_MANY = 10_000 if LONG else 400
SAYS = "The last words are these."
_END = f"\n\n# End\n\n{SAYS}\n"


def markup_cases() -> Iterator[Case]:
    """Each text ends in a section that must be found and read all the same."""
    for name, text in {**_repeated(), **_nested(), **_many()}.items():
        yield page(f"md-{name}", text + _END, says=SAYS)
    yield page("md-megabyte-of-brackets", "[" * 999_000, says="")
    for name, text in _open().items():
        yield page(f"md-{name}", f"{text}\n\n{SAYS}\n", says=SAYS)


def _repeated() -> dict[str, str]:
    units = {
        "brackets": "[",
        "images": "![",
        "closed-brackets": "[a](",
        "angle": "<",
        "stars": "*a ",
        "emphasis": "*a_ ",
        "strong": "**a **",
        "backticks": "`a``",
        "backslashes": "\\",
        "entities": "&#0;",
        "tildes": "~~a",
        "pipes": "|",
        "autolinks": "<http://a",
        "hashes": "#",
    }
    return {name: unit * (_SIZE // len(unit)) for name, unit in units.items()}


def _nested() -> dict[str, str]:
    deep = _MANY
    return {
        "quotes": "> " * deep + "deep",
        "quotes-by-line": "\n".join(">" * depth + " a" for depth in range(1, 200)),
        "list-in-one-line": "- " * deep + "deep",
        "numbers-in-one-line": "1. " * deep + "deep",
        "list-by-line": "\n".join("  " * depth + "- a" for depth in range(200)),
        "quote-and-list": "> - " * deep + "deep",
        "brackets-in-brackets": "[" * 2 * deep + "a" + "]" * 2 * deep,
        "strong-in-strong": "**a " * 2 * deep + "b**" * 2 * deep,
    }


def _many() -> dict[str, str]:
    n = _MANY
    return {
        "references": "".join(f"[r{at}]: /x\n" for at in range(2 * n)),
        "reference-titles": "[a]: /x '" + "b\n" * 5 * n,
        "same-reference": "[a]: /x\n" * n + "[a]" * n,
        "headings": "".join(f"## Part {at}\n\n" for at in range(n // 2)),
        "same-heading": "## Same\n\n" * (n // 2),
        "empty-headings": "#\n" * (n // 2),
        "long-heading": "# " + "very " * 5 * n,
        "seven-hashes": "####### no heading\n" * n,
        "setext": "a\n" * 5 * n + "===\n",
        "setext-many": "a\n===\n" * (n // 2),
        "rules": "---\n\n" * 2 * n,
        "table-wide": "|" + "a|" * 2 * n + "\n|" + "-|" * 2 * n + "\n",
        "table-long": "|a|b|\n|-|-|\n" + "|c|d|\n" * 2 * n,
        "html-blocks": "<div>\n" * 2 * n + "\n",
        "comments": "<!-- a -->\n" * n,
        "tabs": "\t" * 10 * n + "a",
        "footnotes": "".join(f"[^{at}]: a\n" for at in range(n)),
        "fences": "```\n# no heading\n```\n" * (n // 2),
        "fence-in-fence": "````md\n```\n# no heading\n```\n````\n" * (n // 4),
        "long-fence": "`" * 5 * n + "\na\n" + "`" * 5 * n,
        "indented-fences": "    ```\n" * n,
    }


def _open() -> dict[str, str]:
    """What is opened and never closed swallows the rest, which is still served as text."""
    return {
        "open-fence": "# Page\n\n```python",
        "open-tildes": "# Page\n\n~~~",
        "fence-closed-wrongly": "````\n```\n~~~~",
        "open-comment": "# Page\n\n<!--",
        "open-script": "# Page\n\n<script>",
        "open-cdata": "# Page\n\n<![CDATA[",
        "open-instruction": "# Page\n\n<?php",
        "open-fence-in-a-list": "- a\n\n  ```\n",
        "open-fence-in-a-quote": "> ```\n> a",
    }
