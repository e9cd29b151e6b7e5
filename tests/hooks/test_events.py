"""Events of hosts: what is read from them, and what is refused."""

import json
from typing import Any

import pytest

from sage.hooks.events import MAX_EVENT_BYTES, MAX_FILES, MAX_PROMPT, UnusableEvent, parse_event
from sage.hooks.hosts import EventHost, host_named


def host(name: str) -> EventHost:
    found = host_named(name)
    assert found is not None
    return found


def event(name: str = "claude-code", **fields: Any) -> Any:
    return parse_event(json.dumps(fields).encode(), host(name))


def test_a_prompt_is_read() -> None:
    found = event(
        hook_event_name="UserPromptSubmit", session_id="s", cwd="/repo", prompt="Add a retry"
    )
    assert (found.moment, found.session, found.folder, found.prompt) == (
        "prompt",
        "s",
        "/repo",
        "Add a retry",
    )


def test_vs_code_spells_its_fields_in_its_own_way() -> None:
    found = event(
        "vscode",
        hookEventName="PreToolUse",
        sessionId="s",
        tool_input={"files": ["src/a.ts", "src/b.ts"]},
    )
    assert (found.name, found.session, found.files) == ("PreToolUse", "s", ("src/a.ts", "src/b.ts"))


def test_cursor_names_its_conversation_and_its_folders() -> None:
    found = event(
        "cursor",
        hook_event_name="postToolUse",
        conversation_id="c",
        workspace_roots=["/repo"],
        tool_input={"file_path": "/repo/a.py"},
    )
    assert (found.session, found.folder, found.files) == ("c", "/repo", ("/repo/a.py",))


def test_the_files_of_a_patch_are_those_it_names() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n"
    found = event("codex", hook_event_name="PreToolUse", tool_input={"command": patch})
    assert found.files == ("src/a.py", "b.md")


def test_a_command_of_a_shell_names_no_file() -> None:
    found = event("codex", hook_event_name="PreToolUse", tool_input={"command": "rm *** a"})
    assert found.files == ()


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_a_session_that_lost_its_context_begins_anew(source: str) -> None:
    assert event(hook_event_name="SessionStart", source=source).begins_anew


@pytest.mark.parametrize(
    ("name", "moment"),
    [("vscode", "UserPromptSubmit"), ("gemini", "BeforeTool"), ("cursor", "stop")],
)
def test_an_event_that_takes_no_context_is_none(name: str, moment: str) -> None:
    assert event(name, hook_event_name=moment, prompt="Add a retry") is None


def test_what_is_long_is_cut_and_what_is_many_is_counted() -> None:
    assert len(event(hook_event_name="UserPromptSubmit", prompt="x" * 99_999).prompt) == MAX_PROMPT
    many = {"files": [f"f{number}" for number in range(500)]}
    assert len(event("vscode", hook_event_name="PreToolUse", tool_input=many).files) == MAX_FILES


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"hook_event_name": "UserPromptSubmit"',
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"hook_event_name": 3}',
        b'{"hook_event_name": "UserPromptSubmit", "prompt": ["x"]}',
        b'{"hook_event_name": "SessionStart", "cwd": "a\\u0000b"}',
        b'{"hook_event_name": "SessionStart", "session_id": "' + b"x" * 300 + b'"}',
        b'{"n": ' + b"9" * 9_000 + b"}",
        b" " * (MAX_EVENT_BYTES + 1),
    ],
    ids=range(12),
)
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(UnusableEvent):
        parse_event(data, host("claude-code"))


def test_a_byte_order_mark_before_an_event_does_not_matter() -> None:
    data = b'\xef\xbb\xbf{"hook_event_name": "sessionStart", "conversation_id": "c"}'
    found = parse_event(data, host("cursor"))
    assert found is not None
    assert (found.moment, found.session) == ("session", "c")
