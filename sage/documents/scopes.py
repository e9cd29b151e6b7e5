"""Which files a page belongs to: the globs of its front matter, matched in bounded time.

`*` and `?` stay within a folder, `**` crosses folders, `{a,b}` is either, `[a-z]` one of. A glob
without a slash names a file in any folder; one that names a folder means everything below it.
"""

import functools
import re
from collections.abc import Iterable, Sequence

MAX_GLOBS = 64
"""Globs of one page that are looked at."""
MAX_LENGTH = 256
"""Characters of a glob; a longer one matches nothing."""
MAX_PATH = 1_024
MAX_WAYS = 64
"""Globs that the braces of one may stand for."""
FOLDER_FILES = frozenset(
    {"AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"}
)
"""Files that hosts read for everything in their folder."""
_LITERAL = str.maketrans({"[": "[[]", "*": "[*]", "{": "?", "}": "?"})
_BRACES = re.compile(r"\{([^{}]*)\}")


def folder_scope(path: str) -> str:
    """The glob of what lies in the folder of a file that hosts read for it, as AGENTS.md; empty
    for any other file, and for one that stands for the whole repository."""
    folder, _, name = path.rpartition("/")
    if name not in FOLDER_FILES or ":" in folder:
        return ""
    parts = folder.split("/") if folder else []
    hidden = next((at for at, part in enumerate(parts) if part.startswith(".")), len(parts))
    above = "/".join(parts[:hidden])
    return f"{above.translate(_LITERAL)}/**" if above else ""


def split_globs(text: str) -> list[str]:
    """`src/**,*.{ts,tsx}` as two globs: some tools write them in one line."""
    globs = [""]
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}" and depth > 0)
        if character == "," and not depth:
            globs.append("")
        else:
            globs[-1] += character
    return [glob.strip() for glob in globs if glob.strip()]


def matching_glob(globs: Sequence[str], path: str) -> str:
    """The first of the globs that a path below the root lies in; empty when none."""
    parts = path_parts(path)
    if not parts:
        return ""
    return next((glob for glob in globs[:MAX_GLOBS] if _matches(glob, parts)), "")


def path_parts(path: str) -> tuple[str, ...]:
    """The names along a path; none for one that leads out of the root or is too long."""
    parts = tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
    return () if len(path) > MAX_PATH or ".." in parts else parts


def _matches(glob: str, path: tuple[str, ...]) -> bool:
    return any(_match_parts(pattern, path) for pattern in _patterns(glob))


@functools.lru_cache(maxsize=4_096)
def _patterns(glob: str) -> tuple[tuple[str, ...], ...]:
    """What a glob stands for: names along a path, `**` for any number of folders."""
    if not glob or len(glob) > MAX_LENGTH:
        return ()
    patterns = []
    for one in _expanded(glob.replace("\\", "/")):
        parts = [part for part in one.removeprefix("./").split("/") if part not in ("", ".")]
        if not parts:
            continue
        if "/" not in one.rstrip("/"):
            parts.insert(0, "**")
        if one.endswith("/"):
            parts.append("**")
        patterns.append(tuple(parts))
    return tuple(patterns)


def _expanded(glob: str) -> Iterable[str]:
    """The globs that braces stand for, at most so many."""
    waiting = [glob]
    done: list[str] = []
    while waiting and len(done) + len(waiting) <= MAX_WAYS:
        one = waiting.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
            continue
        before, after = one[: braces.start()], one[braces.end() :]
        waiting += [before + way + after for way in braces.group(1).split(",")]
    return done


def _match_parts(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a path lies in a pattern; a pattern that ends above it means all below.

    `reached` holds how many names of the path the pattern may have used so far, so the work is
    at most one look at each pair of a part and a name.
    """
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(path) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(path) and _match_name(part, path[n])}
        if not reached:
            return False
    # What ends in a name without a wildcard may be a folder.
    is_folder = not any(mark in pattern[-1] for mark in "*?[")
    return len(path) in reached or is_folder


def _match_name(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern; at most each piece is held against each character."""
    pieces = _pieces(pattern)
    place = at = 0
    star, star_place = -1, 0
    while place < len(name):
        if at < len(pieces) and pieces[at] == "*":
            star, star_place, at = at, place, at + 1
        elif at < len(pieces) and _fits(pieces[at], name[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            # Only the last star needs another try: what an earlier one took was enough.
            star_place, at = star_place + 1, star + 1
            place = star_place
        else:
            return False
    return all(piece == "*" for piece in pieces[at:])


@functools.lru_cache(maxsize=4_096)
def _pieces(pattern: str) -> tuple[str, ...]:
    """A pattern in pieces that stand for one character each, and stars."""
    pieces: list[str] = []
    place = 0
    while place < len(pattern):
        end = pattern.find("]", place + 2) if pattern[place] == "[" else -1
        piece = pattern[place : end + 1] if end > 0 else pattern[place]
        if not (piece == "*" and pieces and pieces[-1] == "*"):
            pieces.append(piece)
        place += len(piece)
    return tuple(pieces)


def _fits(piece: str, character: str) -> bool:
    if len(piece) == 1:
        return piece in ("?", character)
    inner = piece[1:-1]
    is_negated = inner[0] in "!^"
    inner = inner[1:] if is_negated else inner
    found = False
    place = 0
    while place < len(inner):
        if inner[place + 1 : place + 2] == "-" and place + 2 < len(inner):
            found = found or inner[place] <= character <= inner[place + 2]
            place += 3
        else:
            found = found or inner[place] == character
            place += 1
    return found != is_negated
