"""What a hook costs and says: process time against Python and Typer, tokens, and silence.

Processor time of whole processes on 5,000 sections with a kept index, in turns in the same run;
then the prompts of `hook_prompts.yaml` over our own base.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.search import synthetic
from sage.hooks.command import run
from sage.safe_yaml import load_yaml
from sage.token_counter import TokenCounter

ROOT = Path(__file__).parent.parent
PROMPTS = Path(__file__).with_name("hook_prompts.yaml")
ROUNDS = 7
SECTIONS = 5_000
HOOK = ["-P", "-m", "sage", "hook", "--host", "claude-code"]


def main() -> int:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        _costs(Path(folder))
    with tempfile.TemporaryDirectory() as cache:
        _answers({**os.environ, "SAGE_CACHE_DIR": cache})
    return 0


def _costs(folder: Path) -> None:
    pages = synthetic(SECTIONS)
    for name, text in pages.items():
        path = folder / "base" / ".knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    title = next(iter(pages.values())).partition("\n")[0].strip("# ")
    environment = {**os.environ, "SAGE_CACHE_DIR": str(folder / "cache")}
    common = {"cwd": str(folder / "base"), "tool_input": {"file_path": "src/a.py"}}
    events = {
        "a session starts": {"hook_event_name": "SessionStart"},
        "a prompt about something": {"hook_event_name": "UserPromptSubmit", "prompt": title},
        "a prompt that needs nothing": {"hook_event_name": "UserPromptSubmit", "prompt": "thanks"},
        "a file is edited": {"hook_event_name": "PreToolUse", "session_id": "s"},
    }
    commands: dict[str, tuple[list[str], bytes]] = {
        "python -c pass": (["-c", "pass"], b""),
        "python -c 'import typer'": (["-c", "import typer"], b""),
        **{
            name: (HOOK, json.dumps({**common, **event}).encode()) for name, event in events.items()
        },
    }
    # The first start of a session keeps the index, unless it takes longer than a hook may.
    subprocess.run(
        [sys.executable, "-m", "sage", "info", "--root", str(folder / "base")],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    turns = [
        {name: _seconds(*command, environment) for name, command in commands.items()}
        for _ in range(ROUNDS)
    ]
    cost = {name: statistics.median(turn[name] for turn in turns) for name in commands}
    bare, typer = (cost[name] for name in list(commands)[:2])
    print(f"{'':28} CPU ms  x python  x importing typer")
    for name, seconds in cost.items():
        print(f"{name:28} {seconds * 1000:6.0f}  {seconds / bare:8.1f}  {seconds / typer:17.1f}")


def _seconds(words: list[str], event: bytes, environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        input=event,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _answers(environment: dict[str, str]) -> None:
    data: Any = load_yaml(PROMPTS.read_text("utf-8"))
    counter = TokenCounter()
    # As in a session: its start builds the index, which a prompt's time would not suffice for.
    start = {"hook_event_name": "SessionStart", "cwd": str(ROOT)}
    run(["--host", "claude-code"], json.dumps(start).encode(), environment, ROOT)
    for half, name in enumerate(("seen while the rule was written", "kept aside")):
        needs = [(one["prompt"], one["pages"]) for one in data["needs"][half::2]]
        texts = [_text(prompt, environment) for prompt, _ in needs]
        right = sum(
            any(f".knowledge/{page}.md" in text for page in pages)
            for text, (_, pages) in zip(texts, needs, strict=True)
        )
        tokens = statistics.median(counter.count(text) for text in texts if text)
        others = data["nothing"][half::2]
        silent = sum(not _text(prompt, environment) for prompt in others)
        got = sum(map(bool, texts))
        print(
            f"{name}: of {len(texts)} prompts that need a page {got} got something, {right} a "
            f"right one, {tokens:.0f} tokens in the middle; of {len(others)} others {silent} got "
            "nothing"
        )


def _text(prompt: str, environment: dict[str, str]) -> str:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(ROOT)}
    answer = run(["--host", "claude-code"], json.dumps(event).encode(), environment, ROOT)
    return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer else ""


if __name__ == "__main__":
    sys.exit(main())
