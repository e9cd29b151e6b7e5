"""The mapping of a repository's own documentation."""

from pathlib import Path

import pytest

from sage.errors import ConfigError
from sage.install.adopt import propose, write_config
from sage.knowledge import open_knowledge
from sage.settings import load_settings

SHAPES = {
    "flat": {"docs/a.md": "# A\n", "docs/b.md": "# B\n"},
    "hugo": {
        "content/en/docs/concepts/_index.md": "# Concepts\n",
        "content/en/docs/concepts/pods.md": "# Pods\n",
        "content/en/docs/tasks/run.md": "# Run\n",
        "content/en/docs/home.md": "+++\ntitle = 'Home'\n+++\nText.\n",
    },
    "docusaurus": {"docs/intro.mdx": "# Intro\n", "docs/guides/a.mdx": "# A\n"},
    "adr": {"docs/adr/0001-a.md": "# A\n", "docs/adr/0002-b.md": "# B\n", "docs/x.rst": "x"},
    "odd": {"docs/a b/c'd.md": "# C\n", "docs/- x/y.md": "# Y\n", "docs/node_modules/z.md": "z"},
}


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


@pytest.mark.parametrize("shape", SHAPES)
def test_every_page_of_the_proposal_is_served_once_it_is_written(
    shape: str, tmp_path: Path
) -> None:
    put(tmp_path, SHAPES[shape])
    proposal = propose(tmp_path, [next(iter(SHAPES[shape])).split("/")[0]])
    assert sum(one.pages for one in proposal.folders) == proposal.pages
    write_config(tmp_path, proposal)
    settings = load_settings({"root": tmp_path}, {"SAGE_CACHE_DIR": str(tmp_path / "c")}, tmp_path)
    assert len(open_knowledge(settings).documents()) == proposal.pages


def test_folders_go_to_the_layer_that_their_name_speaks_for(tmp_path: Path) -> None:
    put(tmp_path, SHAPES["hugo"])
    assert propose(tmp_path, ["content/en/docs"]).layers == {
        "frameworks": ["content/en/docs/concepts"],
        "practices": ["content/en/docs/tasks", "content/en/docs"],
    }


def test_pages_of_other_kinds_are_counted(tmp_path: Path) -> None:
    put(tmp_path, SHAPES["adr"])
    proposal = propose(tmp_path, ["docs"])
    assert (proposal.pages, proposal.other_pages) == (2, 1)
    assert proposal.layers == {"guidelines": ["docs/adr"]}


def test_what_hosts_read_by_themselves_is_not_mapped_unasked(tmp_path: Path) -> None:
    put(tmp_path, {"AGENTS.md": "# Agents\n", "web/CLAUDE.md": "# Web\n", "docs/adr/1.md": "# A\n"})
    proposal = propose(tmp_path, ["."])
    assert proposal.layers == {"guidelines": ["docs/adr"]}
    assert proposal.host_places == ("AGENTS.md",)
    assert propose(tmp_path, [".", "AGENTS.md"]).layers == {
        "guidelines": ["docs/adr", "**/AGENTS.md"]
    }


def test_where_the_root_is_mapped_its_files_are_not_called_left_out(tmp_path: Path) -> None:
    put(tmp_path, {"AGENTS.md": "# Agents\n", "README.md": "# Read me\n"})
    proposal = propose(tmp_path, ["."])
    assert (proposal.layers, proposal.pages) == ({"practices": ["."]}, 2)
    assert proposal.host_places == ()


@pytest.mark.parametrize("start", ["../x", "/etc", "gone", "empty", ".git"])
def test_folder_that_cannot_be_served_is_refused(start: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError):
        propose(tmp_path, [start])


@pytest.mark.parametrize("there", ["sage.yaml", ".knowledge/sage.yaml"])
def test_settings_that_are_there_stay(there: str, tmp_path: Path) -> None:
    put(tmp_path, {**SHAPES["flat"], there: "log_level: info\n"})
    with pytest.raises(ConfigError, match="is there already"):
        write_config(tmp_path, propose(tmp_path, ["docs"]))
    assert (tmp_path / there).read_text() == "log_level: info\n"
