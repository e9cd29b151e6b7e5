"""A small knowledge base to start from; nothing of anybody's is overwritten."""

from datetime import date
from pathlib import Path

import pytest

from sage.check.run import check_knowledge
from sage.errors import ConfigError
from sage.install.scaffold import AGENT_FILES, BEGIN, END, write_agent_section, write_knowledge
from sage.settings import load_settings


def actions(steps: object) -> dict[str, str]:
    return {step.path: step.action for step in steps}  # type: ignore[attr-defined]  # steps


def test_the_starting_base_is_complete_and_healthy(tmp_path: Path) -> None:
    steps = actions(write_knowledge(tmp_path))
    assert set(steps.values()) == {"written"}
    settings = load_settings({"root": tmp_path}, {})
    report = check_knowledge(settings, date(2026, 1, 1))
    assert report.problems == ()
    assert report.pages == len(settings.layers) == 4
    assert settings.config_path is not None


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    list(write_knowledge(tmp_path))
    page = tmp_path / ".knowledge" / "core" / "how-we-work.md"
    page.write_text("ours", "utf-8")
    assert set(actions(write_knowledge(tmp_path)).values()) == {"kept"}
    assert page.read_text("utf-8") == "ours"


def test_a_layer_with_pages_of_its_own_gets_no_example(tmp_path: Path) -> None:
    own = tmp_path / ".knowledge" / "practices" / "deep" / "own.md"
    own.parent.mkdir(parents=True)
    own.write_text("# Own\n", "utf-8")
    steps = actions(write_knowledge(tmp_path))
    assert steps[".knowledge/practices/write-a-page.md"] == "kept"
    assert steps[".knowledge/core/how-we-work.md"] == "written"


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a folder"):
        list(write_knowledge(tmp_path / "gone"))


def test_every_commented_setting_can_be_switched_on(tmp_path: Path) -> None:
    list(write_knowledge(tmp_path))
    config = tmp_path / ".knowledge" / "sage.yaml"
    lines = config.read_text("utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("# ignore"))
    keep = [line for line in lines[at:] if not line[2:3].isupper()]
    config.write_text("\n".join(lines[:at] + [line.removeprefix("# ") for line in keep]), "utf-8")
    settings = load_settings({"root": tmp_path}, {})
    assert settings.ignore == ("drafts/",)
    assert settings.synonyms["k8s"] == ("kubernetes",)


def test_agents_are_told_in_a_new_file(tmp_path: Path) -> None:
    assert actions(write_agent_section(tmp_path)) == {"AGENTS.md": "written"}
    text = (tmp_path / "AGENTS.md").read_text("utf-8")
    assert text.startswith(BEGIN)
    assert text.endswith(f"{END}\n")
    assert all(tool in text for tool in ("sage_get_context", "sage_search", "sage_get_knowledge"))
    assert actions(write_agent_section(tmp_path)) == {"AGENTS.md": "kept"}


@pytest.mark.parametrize(
    "text", [b"# Mine\n\nText\n", b"# Mine", b"\xef\xbb\xbf# Mine\r\nText\r\n"]
)
def test_an_existing_file_keeps_every_byte(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(text)
    assert actions(write_agent_section(tmp_path)) == {"CLAUDE.md": "updated"}
    after = file.read_bytes()
    assert after.startswith(text)
    assert after.count(b"\r\n") == (after.count(b"\n") if b"\r\n" in text else 0)
    assert not (tmp_path / "AGENTS.md").exists()


def test_a_former_section_is_replaced_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(f"before\n\n{BEGIN}\nold words\n{END}\n\nafter\n", "utf-8")
    list(write_agent_section(tmp_path))
    text = file.read_text("utf-8")
    assert text.startswith(f"before\n\n{BEGIN}\n## ")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "old words" not in text


@pytest.mark.parametrize("marks", [BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_damaged_marks_are_refused(tmp_path: Path, marks: str) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(f"a\n{marks}\nb\n", "utf-8")
    with pytest.raises(ConfigError, match="damaged"):
        list(write_agent_section(tmp_path))
    assert file.read_text("utf-8") == f"a\n{marks}\nb\n"


def test_a_file_that_links_to_or_includes_the_other_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# A\n", "utf-8")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert actions(write_agent_section(tmp_path)) == {"AGENTS.md": "updated"}
    (tmp_path / "CLAUDE.md").unlink()
    (tmp_path / "CLAUDE.md").write_text("@AGENTS.md\n", "utf-8")
    assert actions(write_agent_section(tmp_path)) == {"AGENTS.md": "kept"}
    (tmp_path / "CLAUDE.md").write_text("# Other\n", "utf-8")
    assert actions(write_agent_section(tmp_path)) == {"AGENTS.md": "kept", "CLAUDE.md": "updated"}


def test_agent_file_that_links_out_is_refused_with_where_it_leads(tmp_path: Path) -> None:
    root, shell = tmp_path / "repository", tmp_path / ".bashrc"
    root.mkdir()
    shell.write_text("alias ls=ls\n")
    (root / "AGENTS.md").symlink_to(shell)
    with pytest.raises(ConfigError, match=r"AGENTS.md is a link to .*\.bashrc"):
        list(write_agent_section(root))
    assert shell.read_text() == "alias ls=ls\n"


@pytest.mark.parametrize(("real", "link"), [AGENT_FILES, AGENT_FILES[::-1]])
def test_of_two_names_of_one_file_the_real_one_is_written(
    tmp_path: Path, real: str, link: str
) -> None:
    (tmp_path / real).write_text("# Ours\n")
    (tmp_path / link).symlink_to(real)
    assert [step.path for step in write_agent_section(tmp_path)] == [real]
    assert (tmp_path / link).is_symlink()


def test_agent_file_that_links_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to(tmp_path.parent / "nothing")
    with pytest.raises(ConfigError, match="is a link to"):
        list(write_agent_section(tmp_path))
    assert not (tmp_path.parent / "nothing").exists()
