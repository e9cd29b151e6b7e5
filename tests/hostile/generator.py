"""Hostile repositories without end: each number is one, put together from every kind of case.

A repository has a git history that wants to run a program, files for agents and clients that lead
outside or start something, settings that are wrong or greedy, and pages of every bad kind.
"""

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
MAPPINGS = (
    "layers:\n  core: [docs, 'docs/**/*.md']\n  practices: ['.knowledge/practices']\n",
    "layers:\n  core: ['linked']\n  practices: ['../outside', '/etc']\n",
    "layers:\n  core: ['**/*.md', '.']\n  practices: ['.git/**', '.github']\n",
)
"""Settings at the root that let layers lie elsewhere in the repository."""
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
            if not case.alone:
                case.build(place)
    _plant_settings(place, chance)
    _plant_mapped(place, chance)
    for path in chance.sample(AGENT_FILES, 6):
        _plant_agent_file(place, path, canary, chance)
    return place


def _plant_settings(place: Place, chance: random.Random) -> None:
    text = chance.choice(["", "", ACCEPTED, chance.choice(list(REFUSED.values()))])
    if text:
        place.write("sage.yaml", text)
    if chance.random() < 0.3:
        place.write("eval.yaml", chance.choice(list(GOLDEN.values())))


def _plant_mapped(place: Place, chance: random.Random) -> None:
    """Folders that layers could be mapped to, one of them a link, and sometimes a mapping."""
    place.write_beside("docs/guide.md", "# Guide\n\nThe quokka says <!-- sage:export:begin -->\n")
    place.write_beside("docs/a/b/c.md", '---\nid: "../../x"\nstatus: draft\n---\n# C\n\nAxolotl.\n')
    (place.root / "linked").symlink_to(place.outside)
    if chance.random() < 0.4:
        place.write_beside("sage.yaml", chance.choice(MAPPINGS))


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
