from pathlib import Path

import pytest

from sage.errors import ConfigError, InvalidInput
from sage.settings import Settings, declared_settings, load_settings
from tests.conftest import Base


def load(base: Base, config: str = "", **environment: str) -> Settings:
    if config:
        base.write({"sage.yaml": config})
    return load_settings({"root": base.root}, {**base.environment, **environment}, base.root)


def error(base: Base, config: str = "", **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(base, config, **environment)
    return str(caught.value)


def test_no_configuration_gives_the_defaults(base: Base) -> None:
    settings = load(base)
    assert settings.layers == ("core", "guidelines", "frameworks", "practices")
    assert settings.cache.ttl_seconds == 300
    assert settings.limits.max_file_bytes == 1_000_000
    assert settings.config_path is None
    assert settings.knowledge_dir == base.root / ".knowledge"
    assert settings.found_by == "--root"


def test_file_is_read_in_all_its_kinds(base: Base) -> None:
    settings = load(
        base,
        "layers: [core, team-notes]\nignore: ['*.draft.md']\n"
        "synonyms: {k8s: kubernetes, db: [database, postgres]}\nrecipes: {coding: {size: 3}}\n"
        "check: {stale_months: 5}\nhooks:\n  session: false\n",
    )
    assert settings.layers == ("core", "team-notes")
    assert settings.ignore == ("*.draft.md",)
    assert settings.synonyms == {"k8s": ("kubernetes",), "db": ("database", "postgres")}
    assert settings.recipes == {"coding": {"size": 3}}
    assert (settings.check.stale_months, settings.hooks.session) == (5, False)
    assert settings.config_path == base.path("sage.yaml")


def test_flags_win_over_environment_over_file_over_defaults(base: Base) -> None:
    base.write({"sage.yaml": "check: {stale_months: 1, max_page_tokens: 9}"})
    own = base.root / "config" / "sage" / "config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("log_level: info\ncheck: {max_page_tokens: 7}\ncache: {ttl_seconds: 1}\n")
    environment = {
        "SAGE_LOG_LEVEL": "error",
        "SAGE_CACHE_TTL_SECONDS": "2",
        "XDG_CONFIG_HOME": str(base.root / "config"),
    }
    flags = {"root": base.root, "log_level": "debug", "layers": None}
    settings = load_settings(flags, environment, base.root)
    assert settings.log_level == "debug"
    assert settings.cache.ttl_seconds == 2
    assert (settings.check.stale_months, settings.check.max_page_tokens) == (1, 7)


def test_environment_of_the_process_is_used_by_default(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGE_ROOT", str(base.root))
    monkeypatch.setenv("SAGE_LAYERS", "core, extra")
    assert load_settings().layers == ("core", "extra")


def test_empty_variable_counts_as_unset(base: Base) -> None:
    assert load(base, SAGE_CACHE_TTL_SECONDS="", SAGE_CONFIG="").cache.ttl_seconds == 300


def test_every_setting_has_words_and_its_own_variable() -> None:
    declared = declared_settings()
    variables = [setting.variable for setting in declared if setting.variable]
    assert len(set(variables)) == len(variables)
    assert all(setting.doc.endswith(".") for setting in declared)


def test_unknown_key_names_the_file_the_key_the_nearest_and_the_allowed(base: Base) -> None:
    message = error(base, "layer: [core]")
    assert message.startswith(".knowledge/sage.yaml: layer is not a setting; did you mean layers?")
    assert "cache.ttl_seconds" in message
    assert "ignore" in message


def test_unknown_key_in_a_group_names_the_keys_of_that_group(base: Base) -> None:
    message = error(base, "cache:\n  ttl: 5\n")
    assert "cache.ttl is not a setting" in message
    assert "(allowed: cache.ttl_seconds)" in message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("cache: {ttl_seconds: soon}", "cache.ttl_seconds: expected a number from 0 to 86,400"),
        ("cache: {ttl_seconds: -1}", "found -1"),
        ("cache: {ttl_seconds: }", "found None"),
        ("cache: 5", "cache: expected a mapping, found 5"),
        ("log_level: loud", "log_level: expected one of debug, info, warning, error"),
        ("layers: core", "layers: expected a list of at most 50 texts"),
        ("ignore: [1]", "ignore: expected a list of at most 100 texts"),
        ("- core", "expected a mapping of settings, found list"),
        ("layers: [core", "sage.yaml:1: not valid YAML"),
        ("a: &x 1\nb: *x", "sage.yaml:1: anchors and aliases are not allowed"),
        ("log_level: info\nlog_level: info", "sage.yaml:2: the key 'log_level' appears twice"),
        ("1: x", "1 is not a setting"),
    ],
)
def test_wrong_file_is_an_error_that_names_it(base: Base, config: str, words: str) -> None:
    message = error(base, config)
    assert words in message
    assert message.startswith(".knowledge/sage.yaml")


def test_wrong_variable_is_an_error_that_names_it(base: Base) -> None:
    message = error(base, SAGE_CACHE_TTL_SECONDS="soon")
    assert message.startswith("SAGE_CACHE_TTL_SECONDS: expected a number from 0 to 86,400")


def test_wrong_flag_is_an_error_that_names_it(base: Base) -> None:
    with pytest.raises(InvalidInput, match="--ttl-seconds: expected a number"):
        base.settings(cache__ttl_seconds="soon")


@pytest.mark.parametrize("config", ["", "# only a comment\n", "cache:\n", "\ufeffignore: []\n"])
def test_file_that_sets_nothing_is_allowed(base: Base, config: str) -> None:
    base.write({"sage.yaml": config})
    assert load(base).cache.ttl_seconds == 300


def test_file_that_is_no_text_is_an_error(base: Base) -> None:
    base.write({"sage.yaml": b"layers: \xff"})
    assert error(base) == ".knowledge/sage.yaml: cannot be read: not UTF-8 text"


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ("[]", "name at least one folder"),
        ("[core, ../secret]", "'../secret' cannot be a layer"),
        ("[core, .git]", "'.git' cannot be a layer"),
        ("[core, all]", "'all' cannot be a layer"),
        ("[core, a/b]", "'a/b' cannot be a layer"),
        ("[core, '']", "'' cannot be a layer"),
        ("[core, Core]", "a layer appears twice"),
    ],
)
def test_layers_are_names_of_single_folders(base: Base, layers: str, words: str) -> None:
    assert words in error(base, f"layers: {layers}")


def test_configuration_elsewhere_is_named_by_flag_or_variable(base: Base, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("log_level: info")
    (tmp_path / "b.yaml").write_text("log_level: error")
    base.write({"sage.yaml": "log_level: debug"})
    environment = {"SAGE_CONFIG": str(tmp_path / "a.yaml")}
    assert load(base, **environment).log_level == "info"
    flags = {"root": base.root, "config": tmp_path / "b.yaml"}
    assert load_settings(flags, environment, base.root).log_level == "error"


def test_missing_configuration_is_an_error_that_names_its_source(base: Base) -> None:
    for given in ("nowhere.yaml", "~no-such-user-here/x.yaml"):
        assert error(base, SAGE_CONFIG=given) == f"SAGE_CONFIG names {given}, which is not a file"
    with pytest.raises(ConfigError, match="--config names"):
        base.settings(config="nowhere.yaml")


def test_configuration_outside_the_root_is_named_by_its_whole_path(
    base: Base, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text("colour: red")
    assert error(base, SAGE_CONFIG=str(tmp_path / "a.yaml")).startswith(f"{tmp_path / 'a.yaml'}: ")


def test_settings_are_not_read_through_a_link_that_leaves_the_repository(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("password: hunter2\n")
    (tmp_path / "repo" / ".knowledge").mkdir(parents=True)
    (tmp_path / "repo" / ".knowledge" / "sage.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(ConfigError, match="leaves the repository") as raised:
        load_settings({"root": tmp_path / "repo"}, {})
    assert "password" not in str(raised.value)


def test_settings_of_any_size_are_refused_before_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / ".knowledge" / "sage.yaml"
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    with pytest.raises(ConfigError, match="more than 65536 bytes"):
        load_settings({"root": tmp_path}, {})


def test_a_root_that_cannot_be_looked_at_is_a_configuration_error(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = base.settings()

    def fail(path: Path) -> bool:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(Path, "is_dir", fail)
    with pytest.raises(ConfigError, match=r"\.knowledge cannot be looked at: Input/output error"):
        load_settings({"root": base.root}, base.environment)
    assert not settings.has_folder


def test_an_unknown_key_that_cannot_be_printed_is_shown_escaped(base: Base) -> None:
    base.write({"sage.yaml": '"a\\nb": 1\n'})
    with pytest.raises(ConfigError, match=r"'a\\nb' is not a setting"):
        base.settings()


def test_a_layer_that_a_variable_names_wrongly_is_not_blamed_on_the_file(base: Base) -> None:
    base.write({"sage.yaml": "ignore: []\n"})
    environment = {**base.environment, "SAGE_LAYERS": "core,../secret"}
    with pytest.raises(ConfigError, match=r"^SAGE_LAYERS: '\.\./secret' cannot be a layer"):
        load_settings({"root": base.root}, environment, base.root)


OPERATORS = sorted(one.key for one in declared_settings() if one.is_operators)


def test_what_the_operator_decides_is_a_known_list() -> None:
    assert OPERATORS == [
        "cache.ttl_seconds",
        "check.ignore_safety",
        "hooks.session_timeout_ms",
        "hooks.timeout_ms",
        "limits.call_timeout_ms",
        "limits.max_file_bytes",
        "limits.max_files",
        "log_level",
        "notes.draft_tool",
    ]


def as_yaml(key: str, value: object) -> str:
    group, _, name = key.rpartition(".")
    return f"{group}: {{{name}: {value}}}\n" if group else f"{name}: {value}\n"


@pytest.mark.parametrize("key", OPERATORS)
def test_a_repository_cannot_decide_what_is_the_operators(base: Base, key: str) -> None:
    setting = next(one for one in declared_settings() if one.key == key)
    text = as_yaml(key, str(setting.default).lower())
    told = error(base, text)
    assert f".knowledge/sage.yaml: {key} is for whoever runs SAGE" in told
    assert setting.variable in told
    operators = base.root / "operators.yaml"
    operators.write_text(text)
    assert load(base, "", SAGE_CONFIG=str(operators)).config_path == operators


def test_a_repository_cannot_have_its_queries_logged(base: Base) -> None:
    assert "log_level is for whoever runs SAGE" in error(base, "log_level: debug\n")
    base.path("sage.yaml").unlink()
    assert load(base, SAGE_LOG_LEVEL="debug").log_level == "debug"


def test_a_repository_cannot_keep_a_check_from_failing(base: Base) -> None:
    assert "a repository cannot set never" in error(base, "check: {fail_on: never}\n")
    assert load(base, "check: {fail_on: warning}\n").check.fail_on == "warning"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            f"synonyms: {{a: [{', '.join(f'w{n}' for n in range(7_000))}]}}",
            "of at most 2,000 words",
        ),
        (f"synonyms: {{a: [{', '.join(f'w{n}' for n in range(21))}]}}", "21 words, at most 20"),
        (f"synonyms: {{a: [{'w' * 201}]}}", "each of up to 200 characters"),
        (f"ignore: [{', '.join(f'a{n}*b*c*' for n in range(101))}]", "at most 100 texts"),
        (f"ignore: ['{'a*' * 60}']", "each of up to 100 characters"),
        (f"layers: [{', '.join(f'l{n}' for n in range(51))}]", "at most 50 texts"),
        (f"recipes: {{coding: {{words: [{', '.join(['w'] * 1_001)}]}}}}", "at most 1,000 parts"),
        (f"check: {{ignore: [{', '.join(['w'] * 101)}]}}", "at most 100 texts"),
        ("page: {edit_url: 'javascript:alert(1)'}", "page.edit_url: expected an address"),
    ],
)
def test_what_a_repository_sets_is_bounded(base: Base, config: str, words: str) -> None:
    assert words in error(base, config)


def test_a_repository_names_a_model_but_never_a_path(tmp_path: Path) -> None:
    (tmp_path / ".knowledge").mkdir()
    config = tmp_path / ".knowledge" / "sage.yaml"
    config.write_text("search: {model: multilingual, semantic: off}\n")
    settings = load_settings({"root": tmp_path}, {})
    assert (settings.search.model, settings.search.semantic) == ("multilingual", "off")
    config.write_text("search: {model: /tmp/model}\n")
    with pytest.raises(ConfigError, match="a repository can name a model, not a path"):
        load_settings({"root": tmp_path}, {})
    config.unlink()
    operators = load_settings({"root": tmp_path}, {"SAGE_SEARCH_MODEL": "/tmp/model"})
    assert operators.search.model == "/tmp/model"
