import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sage import __version__
from sage.errors import TimeoutExceeded
from sage.knowledge import KnowledgeBase
from sage.terms.index_file import IndexFile
from tests.commands import FILES, Run, run
from tests.conftest import Base

__all__ = ["run"]
OLD_INDEX = Path(__file__).parent.parent / "search" / "kept" / "format-1.sage"
"""What version 0.1.0 kept of a base with one page."""


def process(base: Base, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "sage", *arguments],
        cwd=base.root,
        env={**inherited, **base.environment, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_get_prints_the_content_as_it_is(run: Run) -> None:
    code, out, err = run("get", "core", "principles#small steps")
    assert (code, err) == (0, "")
    assert out == (
        "<!-- .knowledge/core/principles.md:5-7 -->\n\n## Small steps\n\nShip often. 设计 é\n"
    )


def test_get_json_is_the_object_of_the_tool(run: Run, base: Base) -> None:
    code, out, _ = run("get", "practices", "--json")
    printed = json.loads(out)
    answer = base.open().get("practices")
    printed["metadata"]["load_time_ms"] = answer["metadata"]["load_time_ms"]
    assert code == 0
    assert printed == answer


def test_info_json_is_the_object_of_the_tool(run: Run) -> None:
    code, out, _ = run("info", "--json")
    info = json.loads(out)
    assert code == 0
    assert list(info)[:5] == ["version", "status", "knowledge_base", "cache", "uptime_seconds"]
    assert info["status"] == "healthy"
    assert info["knowledge_base"]["content_files"] == 2


@pytest.mark.parametrize("command", ["info", "search"])
def test_an_index_that_version_0_1_0_kept_is_discarded_with_a_word(
    run: Run, base: Base, command: str
) -> None:
    kept = IndexFile(base.settings().cache_dir, base.settings().root).path
    kept.parent.mkdir(parents=True, mode=0o700)
    shutil.copyfile(OLD_INDEX, kept)
    kept.chmod(0o600)
    code, out, err = run("info") if command == "info" else run("search", "fixtures", "--json")
    assert (code, err) == (0, "")
    if command == "info":
        reason = "built again: the index file is of another version of SAGE"
        assert [line.strip() for line in out.splitlines()].count(reason) == 1
    else:
        assert json.loads(out)["results"][0]["topic"] == "practices/testing"
    assert kept.read_bytes() != OLD_INDEX.read_bytes()
    assert "built again" not in run("info")[1]


def test_info_is_readable(run: Run) -> None:
    code, out, _ = run("info")
    assert code == 0
    rows = [line.split(maxsplit=1) for line in out.splitlines()]
    assert ["version", __version__] in rows
    assert ["status", "healthy"] in rows
    assert ["practices", "1 document, 9 tokens"] in rows


def test_search_finds_and_prints_the_object_of_the_tool(run: Run) -> None:
    code, out, _ = run("search", "fixtures", "--json")
    assert code == 0
    assert [result["topic"] for result in json.loads(out)["results"]] == ["practices/testing"]
    _, out, _ = run("search", "fixtures", "--layer", "practices", "--limit", "1")
    assert ".knowledge/practices/testing.md" in out
    assert out.endswith("1 of 1 document\n")


def test_search_explains_itself(run: Run) -> None:
    code, out, _ = run("search", "fixtures", "--explain")
    assert code == 0
    assert out.startswith(".knowledge/practices/testing.md")


def test_eval_measures_search_and_fails_below_a_floor(run: Run, base: Base) -> None:
    base.write({"eval.yaml": "- {query: fixtures, expect: practices/testing}\n"})
    code, out, _ = run("eval", "--json")
    assert code == 0
    assert json.loads(out)["queries"] == 1
    assert run("eval", "--min-mrr", "0.5")[0] == 0
    base.write({"eval.yaml": "- {query: fixtures, expect: core/principles}\n"})
    code, out, err = run("eval", "--min-mrr", "0.5")
    assert code == 1
    assert "fixtures" in out
    assert err.startswith("sage: ")


def test_context_prints_the_context_the_choices_or_the_object(run: Run) -> None:
    code, out, err = run("context", "coding", "--task", "paint the fence", "--files", "a.py,b.py")
    assert code == 0
    assert "Principles" in out
    assert err == "nothing here is about this task; only principles follow\n"
    _, out, _ = run("context", "coding", "--explain")
    assert out.startswith("lines")
    _, out, _ = run("context", "coding", "--json", "--budget", "500")
    assert 0 < json.loads(out)["token_count"] <= 500


def test_scope_lists_the_pages_of_a_file(run: Run, base: Base) -> None:
    base.write(
        {
            "practices/orders.md": "---\napplies_to: ['src/**', '*.sql']\n---\n# Orders\n\nText.\n",
            "practices/old.md": "---\npaths: src/a.py\nstatus: draft\n---\n# Old\n\nText.\n",
        }
    )
    code, out, _ = run("scope", "src/a.py", "docs/b.md")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:3]] == [
        ["src/a.py", "practices/old", "applies_to", "src/a.py", "draft"],
        ["src/a.py", "practices/orders", "applies_to", "src/**"],
    ]
    assert "no page belongs to docs/b.md" in out
    _, out, _ = run("scope", "db/a.sql", "--json")
    assert json.loads(out) == {
        "file": "db/a.sql",
        "pages": [{"topic": "practices/orders", "title": "Orders", "glob": "*.sql"}],
    }


def test_cut_answer_says_so_on_stderr(run: Run) -> None:
    code, out, err = run("get", "core", "--max-tokens", "12")
    assert code == 0
    assert "Ship often" not in out
    assert err.startswith("sage: not complete: ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("get", "cores", "x"), 2, "there is no layer 'cores'; use one of core, guidelines"),
        (("get", "cores"), 1, "nothing is called 'cores'"),
        (("get", "core", "--max-tokens", "0"), 2, "--max-tokens is 0"),
        (("get", "core", "nowhere"), 1, "nothing is called 'nowhere'"),
        (("get", "core", "--root", "/nonexistent"), 4, "--root names /nonexistent"),
        (("search", " "), 2, "QUERY is empty"),
        (("search", "x", "--limit", "0"), 2, "--limit is 0"),
        (("context", "cooking"), 2, "cooking"),
    ],
)
def test_error_is_one_line_and_an_exit_code(
    run: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert err.startswith("sage: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("get", "missing argument 'LAYER'; see sage get --help"),
        ("get core --colour", "no such option: --colour; see sage get --help"),
        ("serch x", "no such command 'serch'; did you mean 'search', 'serve'; see sage --help"),
        ("get core --timeout-ms 0", "'--timeout-ms': it should be greater than or equal to 1"),
        ("search x --limit ten", "'--limit': not a whole number"),
    ],
)
def test_wrong_arguments_exit_with_two_and_one_line(run: Run, line: str, words: str) -> None:
    code, out, err = run(*line.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    code, _, err = run("token")
    assert code == 2
    assert "  create  Create a token" in err


def test_a_query_needs_no_quotes(run: Run) -> None:
    unquoted = run("search", "fixtures", "not", "mocks", "--limit", "1")
    assert unquoted[1] == run("search", "fixtures not mocks", "--limit", "1")[1]


def test_timeout_exits_with_three(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise TimeoutExceeded("no answer within 1 ms")

    monkeypatch.setattr(KnowledgeBase, "get", late)
    assert run("get", "core") == (3, "", "sage: no answer within 1 ms\n")


def test_wrong_configuration_exits_with_four(run: Run, base: Base) -> None:
    base.write({"sage.yaml": "layer: core"})
    code, _, err = run("get", "core")
    assert code == 4
    assert "did you mean layers?" in err


def test_version_and_help_are_printed(run: Run) -> None:
    assert run("--version") == (0, f"{__version__}\n", "")
    code, out, _ = run("-h")
    assert code == 0
    for command in ("serve", "get", "search", "context", "info"):
        assert command in out


def test_output_is_utf_8_whatever_the_locale(base: Base) -> None:
    base.write(FILES)
    ended = process(base, "get", "core", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    out, err = ended.communicate(timeout=300)
    assert ended.returncode == 0, err
    assert "设计 é" in out.decode("utf-8")


def test_reader_that_goes_away_is_no_error(base: Base) -> None:
    base.write({"core/large.md": ("word and word " * 20 + "\n") * 2_000})
    started = process(base, "get", "core", "--max-tokens", "1000000")
    assert started.stdout is not None
    assert started.stderr is not None
    assert started.stdout.read(10) == b"<!-- .know"
    started.stdout.close()
    assert started.wait(timeout=300) in (0, 1)
    assert started.stderr.read() == b""
    started.stderr.close()


def test_topic_alone_is_looked_for_in_all_layers(run: Run) -> None:
    code, out, _ = run("get", "principles#small steps")
    assert code == 0
    assert out == run("get", "all", "principles#small steps")[1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("search", "QUERY is empty; ask a question or name what you look for, or list pages by"),
        ("search", "--type, --tag, --status, --source or --sort"),
        ("search x --offset -1", "--offset is -1; use a whole number from 0"),
        ("search x --type foo", "--type: there is no 'foo'; use guide"),
        ("search x --status foo", "--status: there is no 'foo'; use draft"),
        ("search x --sort foo", "--sort: there is no 'foo'; use relevance"),
        ("ls --sort foo", "--sort: there is no 'foo'; use topic"),
        ("ls --status foo", "--status: there is no 'foo'; use draft"),
        ("ls --type foo", "--type: there is no 'foo'; use guide"),
        ("ls --limit 0", "--limit is 0; use a whole number from 1"),
        ("ls --offset -1", "--offset is -1; use a whole number from 0"),
        ("get core zebra's", "find it with sage search 'zebra'\"'\"'s'"),
        ("page --port 70000", "it should be less than or equal to 65535"),
        ("serve --http --port 70000", "it should be less than or equal to 65535"),
    ],
)
def test_an_error_names_the_options_of_the_command(run: Run, command: str, words: str) -> None:
    code, out, err = run(*command.split())
    assert code
    assert not out
    assert words in err
