"""The programs that run hooks: what their events mean, how an answer is wrapped and how long it is.

Their documentation was read in autumn 2026; what was tried with the real programs stands in
docs/hooks.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Moment = Literal["session", "prompt", "tool", "end"]
Envelope = Callable[[str, str], dict[str, Any]]


def _hook_specific(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _additional_context(_: str, text: str) -> dict[str, Any]:
    return {"additional_context": text}


def reminder_envelope(text: str) -> dict[str, Any]:
    """A line for the person; every host with an event at the end of a turn knows this field.

    What the same events offer for the model makes it go on working, which no reminder is worth.
    """
    return {"systemMessage": text}


@dataclass(frozen=True, slots=True)
class EventHost:
    """A program that runs hooks."""

    name: str
    title: str
    moments: Mapping[str, Moment]
    """The events at which it takes context, or shows a reminder, by its own names."""
    max_characters: int
    max_tokens: int
    envelope: Envelope = _hook_specific


_CLAUDE_EVENTS: Mapping[str, Moment] = {
    "SessionStart": "session",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PostToolUse": "tool",
    "Stop": "end",
}


def hosts() -> tuple[EventHost, ...]:
    """Every host, in alphabetical order."""
    return (
        # More than 10,000 characters are put in a file, of which the model sees the beginning.
        EventHost("claude-code", "Claude Code", _CLAUDE_EVENTS, 9_500, 2_500),
        EventHost("codex", "Codex", _CLAUDE_EVENTS, 9_500, 2_400),
        # Its `stop` can only send the agent another prompt: no reminder there.
        EventHost(
            "cursor",
            "Cursor",
            {"sessionStart": "session", "postToolUse": "tool"},
            9_500,
            2_500,
            _additional_context,
        ),
        EventHost(
            "gemini",
            "Gemini CLI",
            {
                "SessionStart": "session",
                "BeforeAgent": "prompt",
                "AfterTool": "tool",
                "AfterAgent": "end",
            },
            9_500,
            2_500,
        ),
        # Its UserPromptSubmit takes no context.
        EventHost(
            "vscode",
            "VS Code",
            {
                "SessionStart": "session",
                "PreToolUse": "tool",
                "PostToolUse": "tool",
                "Stop": "end",
            },
            9_500,
            2_500,
        ),
    )


def host_named(name: str) -> EventHost | None:
    """The host of that name."""
    return next((host for host in hosts() if host.name == name), None)
