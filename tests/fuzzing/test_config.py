"""Any `sage.yaml` and any environment: settings within their bounds, or a `ConfigError`."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sage.errors import ConfigError
from sage.settings import Settings, declared_settings, load_settings

NAMES = [setting.key for setting in declared_settings()]
VARIABLES = [setting.variable for setting in declared_settings() if setting.variable]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 300),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["core", "all", "../core", "CORE", "cl100k_base", "*.md", "!", "[", "\ud800"]),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=8), inner, max_size=4),
    ),
    max_leaves=8,
)
trees = st.dictionaries(
    st.one_of(st.sampled_from([name.split(".")[0] for name in NAMES]), st.text(max_size=8)),
    st.one_of(
        values,
        st.dictionaries(
            st.sampled_from([name.rpartition(".")[2] for name in NAMES]), values, max_size=3
        ),
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    (root / ".knowledge").mkdir()
    return root


def check(root: Path, data: bytes, environment: dict[str, str]) -> None:
    (root / ".knowledge" / "sage.yaml").write_bytes(data)
    try:
        settings = load_settings(
            {"root": root}, {"SAGE_CACHE_DIR": str(root / "cache"), **environment}
        )
    except ConfigError as error:
        said = str(error)
    else:
        check_bounds(settings)
        said = ""
    assert said.isprintable()


def check_bounds(settings: Settings) -> None:
    assert settings.layers
    assert all("/" not in layer and layer.strip(".") for layer in settings.layers)
    assert 0 <= settings.cache.ttl_seconds <= 86_400
    assert 1_000 <= settings.limits.max_file_bytes <= 10_000_000
    assert 100 <= settings.limits.call_timeout_ms <= 600_000


@given(trees)
def test_any_tree_is_settings_or_a_configuration_error(root: Path, tree: object) -> None:
    # JSON is YAML, so every value arrives as it was made.
    check(root, json.dumps(tree).encode(), {})


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(b"layers: [" * 500)
@example(b"&a [*a]")
@example(b"cache: {ttl_seconds: .nan}")
@example(b"limits: {max_files: 1e999}")
@example(b"layers: [core, core]")
@example(b"layers: ['\\ud800']")
@example(b"9" * 5_000)
@example(b"2024-13-45: x")
@example(b"\xff\xfel\0a\0")
@example(b"? [a, b]\n: c")
@example(b"null: x")
@example(b"cache:\n  1: 2")
def test_any_bytes_are_settings_or_a_configuration_error(root: Path, data: bytes) -> None:
    check(root, data, {})


variables = st.text(st.characters(exclude_characters="\0"), max_size=20)


@given(st.dictionaries(st.sampled_from(VARIABLES), variables, max_size=4))
@example({"SAGE_LOG_LEVEL": "\udcff"})
def test_any_variables_are_settings_or_a_configuration_error(
    root: Path, environment: dict[str, str]
) -> None:
    check(root, b"", environment)
