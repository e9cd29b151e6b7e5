"""Hooks tried: each of ours in a host's file is run with an event made from the base itself."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sage.documents.document import Document

_SECONDS = 60
_LINES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Trial:
    """What one event brought."""

    event: str
    text: str
    failure: str = ""

    @property
    def in_short(self) -> str:
        """How much came, or why nothing can."""
        if self.failure:
            return f"{self.event} failed: {self.failure}"
        size = f"{len(self.text):,} characters" if self.text else "nothing"
        return f"{self.event} brings {size}"

    @property
    def beginning(self) -> list[str]:
        """What the agent would read, its first lines."""
        lines = self.text.splitlines()
        more = len(lines) - _LINES_SHOWN
        return [*lines[:_LINES_SHOWN], *([f"… and {more} more lines"] if more > 0 else [])]


def try_hook(
    event: str, command: str, host: str, root: Path, documents: Sequence[Document]
) -> Trial:
    """Run our own command with a sample event, in the way that the command in the file does."""
    words = _words(command, host)
    if not words:
        return Trial(event, "", "sage is not on the PATH; install it, or write them again")
    sample = {
        "hook_event_name": event,
        "cwd": str(root),
        "source": "startup",
        "prompt": f"How do we do {documents[0].title if documents else 'it'}?",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(root / _file_in_scope(documents))},
        "session_id": f"doctor-{os.getpid()}-{event}",
    }
    try:
        ended = subprocess.run(  # noqa: S603 - our own command, whatever the file says
            [*words, "--root", str(root)],
            input=json.dumps(sample).encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        answer = json.loads(ended.stdout) if ended.stdout else {}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Trial(event, "", type(error).__name__)
    if ended.returncode:
        return Trial(event, "", f"exit code {ended.returncode}")
    return Trial(event, _text(answer))


def _words(command: str, host: str) -> list[str]:
    """Not the words of the file: whoever can write it could let us start any program."""
    tail = ["hook", "--host", host]
    if command.split()[0] != "sage":
        return [sys.executable, "-P", "-m", "sage", *tail]
    found = shutil.which("sage")
    return [found, *tail] if found else []


def _text(answer: Mapping[str, object]) -> str:
    inner = answer.get("hookSpecificOutput")
    held = inner.get("additionalContext") if isinstance(inner, dict) else None
    told = held or answer.get("additional_context") or answer.get("systemMessage")
    return str(told or "")


def _file_in_scope(documents: Sequence[Document]) -> str:
    """A path that some page's scope holds, where its glob is simple enough to tell."""
    globs = [glob for document in documents for glob in document.meta.applies_to]
    for glob in globs:
        path = glob.replace("**", "sample").replace("*", "sample")
        if not set("?[]{}") & set(path):
            return path
    return "sample.txt"
