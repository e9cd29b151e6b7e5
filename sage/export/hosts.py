"""What each host reads, and how it wants to be told which files a page is for.

Most have one file that is always read, and a folder of files that are read when a file in their
scope is touched. In the first we have a block; in the second a folder of our own.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sage.documents.document import Document
from sage.errors import InvalidInput, did_you_mean
from sage.export.page_text import inline

RULES_OF = "sage"
"""The name of our folder among the rules of a host, and the beginning of our skills' names."""


@dataclass(frozen=True, slots=True)
class ExportHost:
    """Where a host reads, and what stands above a file that is read for some files only."""

    name: str
    main: str = ""
    """The file that it always reads; empty when there is none."""
    shares_main: bool = True
    """Whether people edit that file too."""
    main_head: str = ""
    rules: str = ""
    """The folder in which it looks for rules; empty when it knows none."""
    suffix: str = ".md"
    head: Callable[[Document], str] | None = None

    @property
    def folder(self) -> str:
        """Our own folder among its rules."""
        return f"{self.rules}/{RULES_OF}" if self.rules else ""


def _globs(document: Document) -> list[str]:
    """The scope of a page as hosts read globs: a name means the root's, a folder means nothing."""
    named = (one if "/" in one.rstrip("/") else f"**/{one}" for one in document.meta.applies_to)
    return [f"{one.rstrip('/')}/**" if _is_folder(one) else one for one in named]


def _is_folder(glob: str) -> bool:
    return glob.endswith("/") or not any(mark in glob.rpartition("/")[2] for mark in "*?[.")


def _claude_head(document: Document) -> str:
    globs = "".join(f"  - {_quoted(glob)}\n" for glob in _globs(document))
    return f"---\npaths:\n{globs}---\n"


def _cursor_head(document: Document) -> str:
    # Cursor reads the globs as they stand, without quotes: its own editor writes them so.
    globs = ",".join(glob for glob in _globs(document) if glob.isprintable())
    description = inline(document.summary or document.title)
    return f"---\ndescription: {_quoted(description)}\nglobs: {globs}\nalwaysApply: false\n---\n"


def _copilot_head(document: Document) -> str:
    return f"---\napplyTo: {_quoted(','.join(_globs(document)))}\n---\n"


def _quoted(text: str) -> str:
    """A string that YAML reads back as it is."""
    return json.dumps(text, ensure_ascii=False)


SKILLS = "skills"
SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Where skills lie: for Codex, Gemini CLI, Cursor and Copilot, and for Claude Code."""
_HOSTS = (
    ExportHost("agents", "AGENTS.md"),
    ExportHost("claude", "CLAUDE.md", rules=".claude/rules", head=_claude_head),
    ExportHost(
        "cursor",
        f".cursor/rules/{RULES_OF}/index.mdc",
        shares_main=False,
        main_head="---\ndescription: The team's knowledge base\nalwaysApply: true\n---\n",
        rules=".cursor/rules",
        suffix=".mdc",
        head=_cursor_head,
    ),
    ExportHost(
        "copilot",
        ".github/copilot-instructions.md",
        rules=".github/instructions",
        suffix=".instructions.md",
        head=_copilot_head,
    ),
)
HOST_NAMES = (*(host.name for host in _HOSTS), SKILLS)


def find_host(name: str) -> ExportHost | None:
    """The host of that name; None for skills, which belong to no host.

    Raises:
        InvalidInput: there is none.
    """
    if name == SKILLS:
        return None
    for host in _HOSTS:
        if host.name == name:
            return host
    near = did_you_mean(name, HOST_NAMES)
    raise InvalidInput(f"{name!r} cannot be exported to; use {', '.join(HOST_NAMES)}{near}")


def skill_head(name: str, document: Document) -> str:
    """What stands above a skill: its name and when it is read."""
    words = " ".join(document.summary.split())[:1_000]
    return f"---\nname: {name}\ndescription: {_quoted(words)}\n---\n"


def is_skill(document: Document, layers: Collection[str]) -> bool:
    """Whether a page can be a skill: a practice that says itself what it is for."""
    described = document.meta.summary or document.meta.extra.get("description")
    if not isinstance(described, str) or not described.strip():
        return False
    return document.layer == SKILL_LAYER or SKILL_LAYER not in layers


SKILL_LAYER = "practices"
"""The layer whose pages are skills; without it those of every layer are."""
