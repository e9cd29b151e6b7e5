"""One hostile repository after another, every command over each, and what came of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hostile.generator import plant

DRIVER = Path(__file__).with_name("commands.py")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
COMMANDS = [
    ["info", "--json"],
    ["search", "quokka"],
    ["search", "--json", "(a+)+$ axolotl"],
    ["search", "--explain", "--sort", "date", "--tag", "(a+)+$", "axolotl"],
    ["get", "core"],
    ["get", "--json", "practices", "whole"],
    ["context", "coding", "--task", "rinse the axolotl"],
    ["context", "debugging", "--json", "--explain"],
    ["check", "--level", "note"],
    ["check", "--format", "sarif"],
    ["check", "--json", "--all"],
    ["check", "--rules"],
    ["check", "--baseline", "../outside/secret.md"],
    ["eval"],
    ["eval", "../outside/secret.md"],
    ["ls", "--json"],
    ["scope", "src/a.py", "../outside/secret.md"],
    ["related", "core/healthy"],
    ["duplicates", "--json"],
    ["stats", "--json", "--log", "linked/secret.md"],
    ["care", "--format", "markdown"],
    ["care", "--json", "--log", ".knowledge/core/healthy.md"],
    ["tags", "suggest", "core/healthy"],
    ["usage", "--log", ".knowledge/core/healthy.md"],
    ["page"],
    ["serve"],
    ["embed"],
    ["publish", "--url", "http://127.0.0.1:9"],
    ["token", "create", "a", "--layers", "core"],
    ["token", "list", "--json"],
    ["token", "rotate", "a", "--overlap", "1h"],
    ["token", "revoke", "a"],
    ["hook", "--host", "claude-code"],
    ["hook", "--host", "cursor"],
    ["doctor", "--json"],
    ["export", "--check", "agents", "claude"],
    ["init", "--from", "."],
    ["note", "The quokka and the axolotl rinse twice.", "--yes", "--title", "../../outside/x"],
    ["note", "Another quokka.", "--yes", "--type", "gotcha", "--file", "../**"],
    ["accept", "core/healthy"],
    ["resolve", "practices/whole", "--reason", "--- \n over"],
    ["supersede", "core/healthy", "practices/whole"],
    ["export", "agents", "claude", "cursor", "copilot", "skills"],
    ["export", "skills", "--folder", ".claude/skills"],
    ["install", "claude-code", "--hooks", "--write", "--scope", "project"],
    ["install", "codex", "--hooks", "--write", "--scope", "project"],
    ["install", "cursor", "--hooks", "--write", "--scope", "project"],
    ["install", "claude-code", "--write"],
    ["install", "gemini", "--write", "--shared"],
    ["install", "cursor", "--write"],
    ["install", "vscode", "--write"],
    ["uninstall", "claude-code", "--write"],
    ["uninstall", "cursor", "--write"],
    ["uninstall", "claude-code", "--write", "--scope", "project"],
    ["uninstall", "codex", "--write", "--scope", "project"],
    ["check", "--write-baseline", "linked/new.json"],
    ["check", "--write-baseline", ".knowledge/baseline.json"],
    ["init", "--agents"],
    ["init", "--from", ".", "--write"],
]
"""Those that write come last: what they leave must not help the others."""
CODES = {0, 1, 2, 3, 4}
MOST_SECONDS = 30.0
"""Of processor time, for one command."""
MOST_WAITED = 900.0
"""Seconds for all of them on a busy machine; what waits for something waits longer."""
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork", "pty.spawn")
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")


def misled(number: int, folder: Path) -> list[object]:
    """Everything that the commands did over the repository of a number and should not have."""
    place = plant(number, folder)
    mine = folder / "mine"
    for name in ("home", "cache", "config", "temporary"):
        (mine / name).mkdir(parents=True)
    before = outside_of(folder)
    log, report = mine / "events", mine / "report"
    try:
        ended = subprocess.run(
            [sys.executable, "-P", str(DRIVER), str(log), str(report), str(place.root)],
            cwd=place.root,
            env=surroundings(mine),
            input=json.dumps(COMMANDS),
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_WAITED,
        )
    except subprocess.TimeoutExpired:
        return [f"hangs after {len(report.read_text().splitlines())} commands"]
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    if ended.returncode or len(lines) != len(COMMANDS):
        return [ended.returncode, ended.stderr[-2000:]]
    found: list[object] = [
        [command, code, seconds, trace, steering]
        for command, code, seconds, trace, steering in lines
        if code not in CODES or seconds > MOST_SECONDS or steering
    ]
    events = [json.loads(line) for line in log.read_text().splitlines()]
    found += [one for one in events if one[0] in STARTS and not is_expected(one)]
    found += written_outside(events, (place.root, mine))
    found += ["the program of the repository ran"] if (folder / "canary").exists() else []
    found += [] if outside_of(folder) == before else ["a file outside was changed"]
    place.sweep()
    return found


def surroundings(mine: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(mine / "home"),
        "TMPDIR": str(mine / "temporary"),
        "SAGE_CACHE_DIR": str(mine / "cache"),
        "XDG_CONFIG_HOME": str(mine / "config"),
    }


def is_expected(event: list[Any]) -> bool:
    """Whether what is started is git, or this program itself."""
    words = [str(word) for word in event[2]] if isinstance(event[2], list) else [str(event[2])]
    if Path(words[0]).name == "git":
        return True
    return words[0] == sys.executable and "sage" in words


def written_outside(events: list[list[Any]], allowed: tuple[Path, ...]) -> list[list[Any]]:
    """What was opened for writing or changed by its whole path outside of some folders."""
    found = []
    for event in events:
        # A link is made where its second path says; the first is what it stands for.
        name, path = event[0], str(event[2] if event[0] == "os.link" else event[1])
        flags = event[3] if name == "open" and isinstance(event[3], int) else 0
        if not (flags & WRITING or name in CHANGES) or not path.startswith("/"):
            continue
        if path != os.devnull and not any(Path(path).is_relative_to(one) for one in allowed):
            found.append(event)
    return found


def outside_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file beside the repository, with what changes when it is written."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for top in folder.iterdir()
        if top.name not in ("repository", "mine")
        for path in [top, *top.rglob("*")]
        if path.is_file()
    }
