from pathlib import Path

import pytest

from sage.errors import ConfigError
from sage.paths import find_cache_dir, find_root, find_token_file, here


def repository(folder: Path) -> Path:
    (folder / ".knowledge").mkdir(parents=True)
    return folder.resolve()


def test_flag_wins_over_environment_and_working_directory(tmp_path: Path) -> None:
    flag, variable, here = (repository(tmp_path / name) for name in ("a", "b", "c"))
    environment = {"SAGE_ROOT": str(variable), "CLAUDE_PROJECT_DIR": str(here)}
    assert find_root(flag, environment, here) == (flag, "--root")


def test_sage_root_wins_over_the_project_of_the_client(tmp_path: Path) -> None:
    variable, project = repository(tmp_path / "a"), repository(tmp_path / "b")
    environment = {"SAGE_ROOT": str(variable), "CLAUDE_PROJECT_DIR": str(project)}
    assert find_root(None, environment, tmp_path) == (variable, "SAGE_ROOT")


def test_project_of_the_client_wins_over_the_working_directory(tmp_path: Path) -> None:
    project, here = repository(tmp_path / "a"), repository(tmp_path / "b")
    environment = {"CLAUDE_PROJECT_DIR": str(project)}
    assert find_root(None, environment, here) == (project, "CLAUDE_PROJECT_DIR")


def test_project_without_knowledge_gives_way_to_the_working_directory(tmp_path: Path) -> None:
    here = repository(tmp_path / "b")
    (tmp_path / "a").mkdir()
    environment = {"CLAUDE_PROJECT_DIR": str(tmp_path / "a")}
    assert find_root(None, environment, here) == (here, "the working directory")


def test_root_is_found_upward_from_a_nested_folder(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (root / "src" / "deep").mkdir(parents=True)
    assert find_root(None, {}, root / "src" / "deep")[0] == root


def test_nearest_of_two_nested_repositories_is_found(tmp_path: Path) -> None:
    repository(tmp_path / "outer")
    inner = repository(tmp_path / "outer" / "inner")
    assert find_root(None, {}, inner)[0] == inner


def test_empty_variables_count_as_unset(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    assert find_root(None, {"SAGE_ROOT": "", "CLAUDE_PROJECT_DIR": ""}, root)[0] == root


def test_root_given_as_the_knowledge_folder_means_its_parent(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    assert find_root(root / ".knowledge", {}, tmp_path)[0] == root


def test_root_reached_through_a_link_is_resolved(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (tmp_path / "link").symlink_to(root)
    assert find_root(tmp_path / "link", {}, tmp_path)[0] == root


def test_missing_knowledge_is_an_error_that_names_the_fix(tmp_path: Path) -> None:
    environment = {"CLAUDE_PROJECT_DIR": str(tmp_path / "project")}
    with pytest.raises(ConfigError) as caught:
        find_root(None, environment, tmp_path)
    for words in ("--root", "SAGE_ROOT", "sage init", str(tmp_path), "CLAUDE_PROJECT_DIR"):
        assert words in str(caught.value)


def test_given_root_without_knowledge_is_an_error_that_names_the_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"SAGE_ROOT names .* holds no \.knowledge .* sage init"):
        find_root(None, {"SAGE_ROOT": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize("given", ["missing", "~no-such-user-here/x", "a\0b"])
def test_given_root_that_is_no_folder_is_an_error(given: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--root names .* not a folder"):
        find_root(given, {}, tmp_path)


def test_file_called_knowledge_is_no_knowledge_base(tmp_path: Path) -> None:
    (tmp_path / ".knowledge").write_text("not a folder")
    with pytest.raises(ConfigError, match=r"no \.knowledge folder"):
        find_root(None, {}, tmp_path)


def test_relative_root_is_looked_for_from_the_working_directory(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    assert find_root("repo", {}, tmp_path)[0] == root
    assert find_root(None, {"SAGE_ROOT": "./repo"}, tmp_path)[0] == root
    assert find_root(None, {"CLAUDE_PROJECT_DIR": "repo"}, tmp_path)[0] == root


def test_deleted_working_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert here() == gone
    gone.rmdir()
    assert here() == Path("/")


def test_cache_folder_is_the_given_one(tmp_path: Path) -> None:
    assert find_cache_dir({"SAGE_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert find_cache_dir({"SAGE_CACHE_DIR": "~/x"}) == Path.home() / "x"
    assert find_cache_dir({"SAGE_CACHE_DIR": "x"}) == Path.cwd() / "x"


def test_folders_are_the_users_own_by_default() -> None:
    for path in (find_cache_dir({}), find_token_file().parent):
        assert path.is_absolute()
        assert path.name == "sage"


def test_a_working_directory_that_may_not_be_seen_is_the_top(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hidden() -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "cwd", hidden)
    assert here() == Path("/")


def test_the_folder_of_a_knowledge_base_is_no_root_of_its_own(tmp_path: Path) -> None:
    inside = tmp_path / ".knowledge" / "core"
    inside.mkdir(parents=True)
    (tmp_path / ".knowledge" / "sage.yaml").write_text("layers: [core]\n")
    assert find_root(None, {}, inside)[0] == tmp_path.resolve()
