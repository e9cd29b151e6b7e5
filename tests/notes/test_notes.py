"""Notes from the command line: drafted, accepted, resolved, replaced; the page and nothing else."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Run, run
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS

__all__ = ["run"]
LEARNED = "Retry the label call only with its idempotency key. The carrier bills twice."


def drafted(run: Run, *more: str) -> dict[str, Any]:
    code, out, err = run("note", LEARNED, "--json", *more)
    assert code == 0, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def page(base: Base, found: dict[str, Any]) -> str:
    return Path(base.root, found["path"]).read_text("utf-8")


def test_a_sentence_becomes_a_draft_in_the_inbox(base: Base, run: Run) -> None:
    found = drafted(run, "--type", "bug-fix", "--file", "src/labels/**", "--owner", "ann")
    text = page(base, found)
    assert found["path"].startswith(".knowledge/practices/inbox/")
    assert f"id: {found['id']}\n" in text
    assert "status: draft\n" in text
    assert "type: bug_fix\n" in text
    assert 'applies_to: ["src/labels/**"]\n' in text
    assert text.endswith(f"# Retry the label call only with its idempotency key\n\n{LEARNED}\n")
    assert found["id"] in found["topic"]


def test_a_draft_is_found_and_marked_but_is_no_context_until_it_is_accepted(run: Run) -> None:
    found = drafted(run)

    def context() -> str:
        return run("context", "coding", "--task", LEARNED)[1]

    assert found["id"] in run("search", "label idempotency key")[1]
    assert "bills twice" not in context()
    assert run("accept", found["id"])[0] == 0
    assert "bills twice" in context()
    assert run("resolve", found["id"], "--reason", "they fixed it")[0] == 0
    assert "bills twice" not in context()
    assert found["id"] in run("search", "label idempotency key")[1]
    assert "esolved" in run("get", "all", found["topic"])[1]


def test_an_id_is_shown_and_names_the_page_wherever_it_moves(base: Base, run: Run) -> None:
    found = drafted(run)
    moved = base.path("guidelines/labels.md")
    moved.parent.mkdir(parents=True)
    Path(base.root, found["path"]).rename(moved)
    result = json.loads(run("search", "label idempotency", "--json")[1])["results"][0]
    assert (result["topic"], result["id"]) == ("guidelines/labels", found["id"])
    by_id = json.loads(run("search", found["id"], "--json")[1])["results"][0]
    assert by_id["topic"] == result["topic"]
    assert "bills twice" in run("get", "all", found["id"])[1]
    assert run("accept", found["id"])[0] == 0
    answer = json.loads(run("context", "coding", "--task", LEARNED, "--json")[1])
    assert found["id"] in [source.get("id") for source in answer["sources"]]
    assert run("related", found["id"])[0] == 0


def test_an_id_that_the_topic_says_already_is_not_said_twice(base: Base, run: Run) -> None:
    base.write({"core/setup.md": "---\nid: setup\n---\n# Local setup\n\nRun make.\n"})
    result = json.loads(run("search", "local setup", "--json")[1])["results"][0]
    assert "id" not in result


def test_what_is_known_is_shown_before_anything_is_written(base: Base, run: Run) -> None:
    base.write(
        {
            "core/retries.md": "# Retries\n\nA label call is retried with its idempotency key, "
            "as the carrier bills twice.\n",
            "core/labels.md": "---\napplies_to: 'src/labels/**'\n---\n# Labels\n\nNever retry a "
            "label call with its idempotency key.\n",
        }
    )
    known = drafted(run, "--file", "src/labels/**", "--dry-run")["known"]
    reasons = {(one["why"], one["topic"].partition("#")[0]) for one in known}
    assert ("alike", "core/retries") in reasons
    assert ("same files", "core/labels") in reasons
    assert ("may disagree", "core/labels") in reasons
    assert not base.path("practices/inbox").exists()


def test_a_chain_of_replacements_is_followed_and_never_closed(base: Base, run: Run) -> None:
    base.write({f"core/{name}.md": f"# {name}\n" for name in "abc"})
    assert run("supersede", "core/b", "core/c")[0] == 0
    assert run("resolve", "core/a", "--status", "superseded", "--by", "core/b")[0] == 0
    assert "superseded_by: core/c" in base.path("core/a.md").read_text()
    code, _, err = run("supersede", "core/c", "core/a")
    assert (code, "is itself replaced" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("note", "x", "--type", "gossip"), "--type is 'gossip'"),
        (("note", "  "), "empty"),
        (("note", "x", "--review-by", "soon"), "write a day"),
        (("accept", "nothing-like-it"), "no page has"),
        (("resolve", "core/principles", "--status", "gone"), "use resolved or superseded"),
        (("resolve", "core/principles", "--by", "practices/testing"), "needs --by"),
    ],
)
def test_a_wrong_call_says_what_is_right_and_writes_nothing(
    base: Base, run: Run, words: tuple[str, ...], said: str
) -> None:
    before = {path: path.read_bytes() for path in base.root.rglob("*") if path.is_file()}
    code, _, err = run(*words)
    assert code
    assert said in err
    assert before == {path: path.read_bytes() for path in base.root.rglob("*") if path.is_file()}


def test_the_inbox_can_be_elsewhere_but_never_outside_the_layers(base: Base, run: Run) -> None:
    base.write({"sage.yaml": "notes: {layer: core, folder: drafts/new}\n"})
    assert drafted(run)["path"].startswith(".knowledge/core/drafts/new/")
    for folder in ("../../x", ".hidden", "", "/etc"):
        base.write({"sage.yaml": f"notes: {{folder: '{folder}'}}\n"})
        assert run("note", LEARNED)[0] == 4


def test_a_note_goes_to_the_folder_that_its_layer_is_mapped_to(base: Base, run: Run) -> None:
    (base.root / "docs" / "how").mkdir(parents=True)
    base.write({"sage.yaml": "layers: {core: docs/*.md, practices: docs/how}\n"})
    found = drafted(run)
    assert found["path"].startswith("docs/how/inbox/")
    assert found["topic"].startswith("practices/inbox/")
    assert run("accept", found["id"])[0] == 0
    assert "status: published" in page(base, found)
    base.write({"sage.yaml": "layers: {practices: docs/how, core: docs/*.md}\n"})
    assert "mapped to globs" in run("note", LEARNED)[2]


def test_a_link_out_of_the_repository_is_not_written_through(
    base: Base, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    base.path("practices/inbox").symlink_to(tmp_path / "outside")
    assert run("note", LEARNED)[0] == 4
    assert not list((tmp_path / "outside").iterdir())


def test_killed_at_any_point_a_page_is_the_old_one_or_the_new(base: Base) -> None:
    old = ("---\nstatus: draft\n---\n# T\n\n" + "words " * 20_000).encode()
    base.write({"core/t.md": old})
    new = old.replace(b"status: draft", b"status: resolved")
    program = (
        "import sys; from pathlib import Path\n"
        "from sage.notes.front_matter_edit import set_keys\n"
        "from sage.atomic import replace_bytes\n"
        "root = Path(sys.argv[1]); path = root / '.knowledge/core/t.md'\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for status in ('resolved', 'draft'):\n"
        "        data = path.read_bytes()\n"
        "        replace_bytes(path, data, set_keys(data, {'status': status}), root)\n"
        "        print('.', end='', flush=True)\n"
    )
    chance = random.Random(3)
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(base.root)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.read(len("ready\n") + chance.randrange(1, 40))
        process.kill()
        process.communicate()
        assert base.path("core/t.md").read_bytes() in (old, new)


@pytest.mark.skipif(os.name != "posix", reason="UNTESTED: limits of a process are POSIX")
def test_a_full_disk_leaves_the_old_page(base: Base) -> None:
    old = ("---\nstatus: draft\n---\n# T\n\n" + "words " * 20_000).encode()
    base.write({"core/t.md": old})
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from sage.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "sys.argv = ['sage', 'resolve', 'core/t']\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=base.root,
        env={"PATH": os.environ["PATH"], **base.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode
    assert "cannot be written" in ended.stderr
    assert base.path("core/t.md").read_bytes() == old
    assert [path.name for path in base.path("core").iterdir()] == ["t.md"]
