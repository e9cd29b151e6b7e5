"""The kinds of section by the words of their headings, and the sections that are no knowledge.

Tables of contents, lists of links and empty sections point elsewhere; a context never holds them.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

from sage.documents.boilerplate import is_listing
from sage.documents.document import Section
from sage.documents.plain_text import COMMENT

# A word also matches what it begins: `pitfall` finds pitfalls. Chinese words match anywhere,
# a word behind ^ only where a heading begins.
KINDS: Mapping[str, tuple[str, ...]] = {
    "principles": (
        "principle", "philosophy", "our values", "core values", "axiom", "tenet", "belief",
        "manifesto", "原则", "理念", "价值观",
    ),
    "guidelines": (
        "guideline", "guidance", "rule", "standard", "convention", "best practice", "policy",
        "policies", "requirement", "style", "naming", "do's", "dos and", "规范", "准则", "约定",
        "最佳实践", "标准",
    ),
    "patterns": (
        "pattern", "example", "recipe", "implement", "how to", "how we", "usage", "technique",
        "snippet", "idiom", "sample", "模式", "示例", "用法", "实现",
    ),
    "checklists": (
        "checklist", "check list", "definition of done", "acceptance", "criteria", "^before",
        "quick check", "gate", "清单", "检查",
    ),
    "pitfalls": (
        "pitfall", "anti-pattern", "antipattern", "anti pattern", "gotcha", "mistake", "trap",
        "avoid", "caveat", "limitation", "smell", "warning", "known issue",
        "common issue", "common problem", "陷阱", "反模式", "误区", "注意", "常见问题",
    ),
    "diagnosis": (
        "troubleshoot", "debug", "diagnos", "symptom", "cause", "root cause", "fix", "runbook",
        "incident", "error", "exception", "fail", "log", "reproduc", "recover", "bisect",
        "hypothes", "trace", "tracing", "profil", "crash", "leak", "排查", "故障", "调试", "诊断",
        "错误",
    ),
    "review": (
        "review", "feedback", "approv", "pull request", "merge request", "code quality", "评审",
        "审查",
    ),
    "testing": ("test", "fixture", "coverage", "mock", "assert", "测试"),
    "decisions": (
        "decision", "decid", "trade-off", "tradeoff", "alternative", "option", "rationale", "adr",
        "consequence", "criteria", "compar", "when to", "决策", "取舍", "权衡",
    ),
    "plans": (
        "plan", "estimat", "scope", "milestone", "risk", "roadmap", "slic", "prioriti", "phase",
        "step", "rollout", "roll out", "goal", "计划", "规划", "估算", "风险",
    ),
    "design": (
        "design", "architect", "structure", "layer", "model", "boundar", "interface", "complexity",
        "设计", "架构",
    ),
    "writing": (
        "writing", "documentation", "document", "docstring", "readme", "comment", "changelog",
        "wording", "sentence", "diagram", "audience", "heading", "commit message", "description",
        "release note", "markdown", "文档", "注释", "写作",
    ),
    "templates": ("template", "skeleton", "boilerplate", "scaffold", "模板"),
    "background": (
        "overview", "introduction", "background", "history", "motivation", "purpose", "about",
        "summary", "context", "glossary", "概述", "背景", "简介",
    ),
}  # fmt: skip

_PAGE = re.compile(r"`[^`\n]{0,200}(?:\.(?:md|mdx|markdown|rst|adoc)|/)`|\]\([^)\n]{1,400}\)")
_BOX = re.compile(r"^([ \t]*[-*+][ \t]+)\[[ xX]\]\s", re.MULTILINE)
_WORD = re.compile(r"[^\W_]")
_MAX_ROW = 200


@functools.lru_cache(maxsize=16_384)
def kinds_of(headings: str) -> frozenset[str]:
    """The kinds that the words of headings show; each heading stands on its own line."""
    folded = headings.casefold()
    return frozenset(kind for kind, pattern in _patterns().items() if pattern.search(folded))


def shows_kind(kind: str, headings: str) -> bool:
    """Whether the words of headings show one kind: sooner known than all that they show."""
    return _patterns()[kind].search(headings.casefold()) is not None


def word_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the words at the beginning of a word, in folded text."""
    alternatives = [_alternative(word.casefold()) for word in words if word.strip()]
    return re.compile("|".join(alternatives) if alternatives else r"(?!)")


def is_knowledge(section: Section, source: str, text: str) -> bool:
    """Whether a section says something itself; `text` is its source without the heading."""
    lines = COMMENT.sub("", text).splitlines()
    if not any(_WORD.search(line) for line in lines):
        return False
    plain = _BOX.sub(r"\1", source)
    return not is_listing(section.heading, plain, section.level) and not _lists_pages(lines)


def _lists_pages(lines: Sequence[str]) -> bool:
    """Whether nearly every line is a row of a table that only names a page."""
    said = [line for line in lines if _WORD.search(line)]
    rows = [line for line in said if line.lstrip().startswith("|")]
    naming = [row for row in rows[1:] if _PAGE.search(row) and len(row) <= _MAX_ROW]
    return len(naming) > 1 and len(naming) >= 0.75 * (len(said) - 1)


def _alternative(word: str) -> str:
    if word.startswith("^"):
        return rf"(?:^|\n){re.escape(word[1:])}\b"
    escaped = _escaped(word)
    if not word.isascii():
        return escaped
    # A short word such as `log` must not find `login`.
    ending = "" if len(word) > 4 else r"(?:e?s|[a-z]?(?:ed|er|ing))?(?![a-z])"
    if not word[0].isalnum():
        return rf"(?<![a-z0-9]){escaped}{ending}"
    # What must not stand before a word is looked at behind its first letter: only a pattern that
    # begins with certain letters passes over all others quickly, here in a fifth of the time.
    return rf"{word[0]}(?<![a-z0-9]{word[0]}){_escaped(word[1:])}{ending}"


def _escaped(word: str) -> str:
    return re.escape(word).replace(r"\ ", r"[\s_-]+")


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {kind: word_pattern(words) for kind, words in KINDS.items()}
