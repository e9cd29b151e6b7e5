"""Endless variations of seeds: cut, doubled, mixed and sprinkled with what breaks parsers."""

import random
from collections.abc import Sequence

MAX_CHARACTERS = 2_000

PAGES = (
    (
        "---\ntitle: How we test\nsummary: Real files.\ntags: [a, b]\nlanguages: [python]\n"
        "order: 3\nstatus: draft\naliases:\n  - tests\n---\n# How we test\n\nReal *files*, `no` "
        "mocks.\n\n## Fixtures\n\n- one\n- two\n\n```py\n# code\n```\n\n### Deep\n\nText.\n"
    ),
    "# Title\n\nSetext\n===\n\nOther\n---\n\n> # quoted\n\n    # code\n\n| a | b |\n|---|---|\n",
    "\ufeff# BOM\r\n\r\ntext\r\n\r\n## Über 日本語 🎉\r\n\r\n[link](x.md#y) `practices/a.md`\r\n",
    "---\na: &x [1, 2]\nb: *x\nc: {d: e}\ndate: 2024-01-01\n...\n# End\n\n<!-- hidden\n# no -->\n",
    "````\n```\n# inside\n````\n# outside #\n\n#nospace\n\n####### seven\n\n# \n\n1. # in a list\n",
    "- [A](#a)\n- [B](#b)\n\n# A\n\n# A\n\n# a-1\n\n<div>\n# html\n</div>\n\n***\n\n~~~\n# open\n",
)
QUERIES = (
    "how do we test a python service?",
    'error "exact phrase" -excluded layer:core tag:ci type:guide lang:go',
    "C++ C# .NET get_user_name getUserName v1.2.3 --no-cache set -euo pipefail",
    "数据库迁移 データベース 데이터 café naïve ﬁle Straße",
    "“curly” 'single' \"open (((( OR AND NOT * ? [a TO z] abc~3 title:x^4",
    "APIs don't user's HTTP2Server x86_64 utf-8 8-bit 3.11 log in",
)
WORDS = (
    "# ",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "---\n",
    "===\n",
    "```\n",
    "~~~",
    "    ",
    "\t",
    "> ",
    "- ",
    "1. ",
    "<!--",
    "-->",
    "<div>",
    "[",
    "](",
    "`",
    "**",
    "|",
    "\\",
    "&x ",
    "*x",
    "<<: ",
    "{",
    "}",
    "!!python/object:os.system ",
    ": ",
    "title: ",
    "tags: [",
    "'",
    '"',
    "\u201c",
    "-",
    "--",
    "layer:",
    "tag:",
    "lang:",
    "type:",
    "*",
    "~",
    "(" * 20,
    "a" * 200,
    "日" * 40,
    "\ufeff",
    "\0",
    "\x1b[31m",
    "\u202e",
    "\u200b",
    "\u0301" * 20,
    "\ud800",
    "\U000e0041",
    "\u2028",
    "\x85",
    "\x0b",
    "\x0c",
    "ﬃ",
    "İ",
    "ß",
    "🏴\U000e0067\U000e0062",
    "9" * 40,
    "1e999",
    "2024-13-45",
    "12:30",
    "no",
    "null",
    ".inf",
)


class Mutator:
    """Makes variations. The same seed makes the same ones."""

    def __init__(self, seeds: Sequence[str], seed: int) -> None:
        self._seeds = seeds
        self._chance = random.Random(seed)
        self._ways = (
            self._cut,
            self._double,
            self._sprinkle,
            self._sprinkle,
            self._change,
            self._swap,
            self._mix,
        )

    def next(self) -> str:
        """A seed changed in one to eight ways."""
        chance = self._chance
        text = chance.choice(self._seeds)
        if chance.random() < 0.3:  # a part of it: small inputs are quick and just as strange
            start = chance.randrange(len(text))
            text = text[start : start + chance.randrange(1, 80)]
        for _ in range(chance.randrange(1, 9)):
            text = chance.choice(self._ways)(text)
        return text[:MAX_CHARACTERS]

    def _span(self, text: str) -> tuple[int, int]:
        start = self._chance.randrange(len(text) + 1)
        return start, start + self._chance.randrange(1, 30)

    def _cut(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + text[end:]

    def _double(self, text: str) -> str:
        start, end = self._span(text)
        times = self._chance.choice((2, 2, 3, 10, 40))
        return text[:start] + text[start:end] * times + text[end:]

    def _sprinkle(self, text: str) -> str:
        at = self._chance.randrange(len(text) + 1)
        return text[:at] + self._chance.choice(WORDS) + text[at:]

    def _change(self, text: str) -> str:
        at = self._chance.randrange(len(text) + 1)
        code = self._chance.choice((self._chance.randrange(128), self._chance.randrange(0x3000)))
        return text[:at] + chr(code) + text[at + 1 :]

    def _swap(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        self._chance.shuffle(lines)
        return "".join(lines)

    def _mix(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + self._chance.choice(self._seeds)[start:end] + text[end:]
