"""Hostile repositories without end: each number is one, put together from every kind of case.

A repository has a git history that wants to run a program, files for agents and clients that lead
outside or start something, settings that are wrong or greedy, and pages of every bad kind.
"""

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path

from tests.hostile.cases import Case, Place
from tests.hostile.configs import ACCEPTED, GOLDEN, REFUSED
from tests.hostile.links import layer_cases, link_cases, special_cases
from tests.hostile.markups import markup_cases
from tests.hostile.matters import matter_cases
from tests.hostile.names import name_cases
from tests.hostile.texts import text_cases
from tests.repositories import HOSTILE

KINDS: tuple[Callable[[], object], ...] = (
    link_cases,
    layer_cases,
    special_cases,
    name_cases,
    matter_cases,
    markup_cases,
    text_cases,
)
AGENT_FILES = (
    *("AGENTS.md", "CLAUDE.md", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"),
    *(".claude/settings.json", ".claude/rules", ".claude/skills", ".cursor/hooks.json"),
    *(".cursor/rules", ".gemini/settings.json", ".codex/config.toml", ".codex/hooks.json"),
    *(".agents/skills", ".github/copilot-instructions.md", ".github/instructions", "sage.yaml"),
)
_KEPT = "  practices: ['.knowledge/practices']\n"
MAPPINGS = (
    f"layers:\n  core: [docs, 'docs/**/*.md']\n{_KEPT}",
    f"layers:\n  core: ['linked', '.knowledge/core', 'linked/*.md']\n{_KEPT}",
    f"layers:\n  core: ['**/*.md', '.']\n{_KEPT}",
    "sources: {docs: docs, far: linked, deep: linked/more, inner: docs/a}\n",
    "sources: {docs: {path: docs, layers: {core: ['a/**']}}, far: {path: linked}}\n",
    "sources: {far: linked, kept: .knowledge, absent: nowhere}\nnotes: {folder: ../../outside}\n",
    "notes: {layer: core, folder: linked}\npage: {edit_url: 'https://x.test/{path}'}\n",
    "hooks: {budget_tokens: 10000}\ncontext: {language: '../../outside'}\n",
    "search: {semantic: 'off', model: granite}\ncheck: {ignore: [secret, instruction]}\n",
)
"""Settings at the root: layers and sources elsewhere in the repository, and every newer setting."""
_REFUSED_SHARE = 0.1
_CASES_EACH = 3


def plant(number: int, folder: Path) -> Place:
    """The repository of a number, in a folder; its programs would make `folder/canary`."""
    chance = random.Random(number)
    root, canary = folder / "repository", folder / "canary"
    root.mkdir()
    # First, so that git need not read what comes after.
    name = chance.choice([*HOSTILE, ""])
    if name:
        HOSTILE[name](root, canary)
        canary.unlink(missing_ok=True)
    place = Place.made_in(folder)
    for cases in KINDS:
        known: list[Case] = list(cases())  # type: ignore[call-overload]
        for case in chance.sample(known, min(_CASES_EACH, len(known))):
            # Two cases may want one place, such as a folder where another put a file.
            if not case.alone:
                with contextlib.suppress(FileExistsError, NotADirectoryError):
                    case.build(place)
    _plant_settings(place, chance)
    _plant_mapped(place)
    for path in chance.sample(AGENT_FILES, 6):
        _plant_agent_file(place, path, canary, chance)
    return place


def _plant_settings(place: Place, chance: random.Random) -> None:
    """Settings of a repository: where they are refused, every command ends there and tries no more,
    so most have odd ones or none."""
    kind = chance.random()
    if kind < _REFUSED_SHARE:
        place.write("sage.yaml", chance.choice(list(REFUSED.values())))
    elif kind < 0.4:
        place.write("sage.yaml", ACCEPTED)
    elif kind < 0.6:
        place.write_beside("sage.yaml", chance.choice(MAPPINGS))
    if chance.random() < 0.3:
        place.write("eval.yaml", chance.choice(list(GOLDEN.values())))


def _plant_mapped(place: Place) -> None:
    """Folders that layers could be mapped to and sources could be named, one of them a link."""
    place.write_beside("docs/guide.md", "# Guide\n\nThe quokka says <!-- sage:export:begin -->\n")
    place.write_beside("docs/a/b/c.md", '---\nid: "../../x"\nstatus: draft\n---\n# C\n\nAxolotl.\n')
    (place.root / "linked").symlink_to(place.outside)


def _plant_agent_file(place: Place, path: str, canary: Path, chance: random.Random) -> None:
    """A file that an agent or a client reads: a link outside, or one that starts a program."""
    file = place.root / path
    top = place.root / Path(path).parts[0]
    if top.exists() or top.is_symlink():
        return
    kind = chance.choice(["file", "folder", "program", "broken"])
    if kind == "folder" and top != file:
        top.symlink_to(place.outside)
        return
    file.parent.mkdir(exist_ok=True)
    if kind == "program" and path.endswith(".json"):
        entry = {"command": "touch", "args": [str(canary), "serve", "-m", "sage"]}
        key = "servers" if "vscode" in path else "mcpServers"
        file.write_text(json.dumps({key: {"sage": entry, "other": entry}}))
    elif kind == "broken":
        file.write_bytes(b"\xff\xfe{{{ <!-- sage:begin -->\n<!-- sage:export:begin -->\n" * 3)
    else:
        file.symlink_to(place.outside / chance.choice(["secret.md", "new.md"]))
