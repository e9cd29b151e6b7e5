"""The settings of one knowledge base: what they are, and where their values come from.

Flags win over the environment, the environment over the operator's file, that over the
repository's `sage.yaml`, and all over defaults. A repository may be anybody's: what is logged, what
is allowed to cost how much and which warnings count is not for it to decide.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sage.errors import ConfigError
from sage.paths import (
    CONFIG_FILE,
    KNOWLEDGE_DIR,
    find_cache_dir,
    find_root,
    find_user_config,
    here,
    located,
    repository_config,
)
from sage.settings_schema import (
    Setting,
    TextLists,
    Tree,
    assembled,
    check_groups,
    declare,
    declared_in,
    environment_values,
    file_values,
    flag_sources,
    flag_values,
)
from sage.sources import (
    NamedSource,
    Source,
    check_layers,
    named_as_text,
    named_in,
    resolved,
    with_their_layers,
)
from sage.values import OWN

DEFAULT_LAYERS = ("core", "guidelines", "frameworks", "practices")
LOG_LEVELS = ("debug", "info", "warning", "error")
FAIL_LEVELS = ("note", "warning", "error", "never")
SEMANTIC = ("auto", "off", "on")
DEFAULT_MODEL = "granite"
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How long loaded documents and answers are trusted."""

    ttl_seconds: float = declare(
        300.0,
        "Longest time a loaded document is trusted before it is read again. An edit is seen at "
        "once whatever this says; the limit covers file systems that hide changes.",
        minimum=0,
        maximum=86_400,
        operator=True,
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What one file and one call may cost."""

    max_file_bytes: int = declare(
        1_000_000,
        "A larger markdown file is left out and reported.",
        minimum=1_000,
        maximum=10_000_000,
        operator=True,
    )
    max_files: int = declare(
        200_000, "Most files looked at in one layer.", minimum=1, maximum=10_000_000, operator=True
    )
    call_timeout_ms: int = declare(
        30_000, "Longest time any tool call may take.", minimum=100, maximum=600_000, operator=True
    )


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What `sage check` finds too large or too old, and what it lets pass."""

    stale_months: int = declare(
        12, "A page older than this is reported; 0 for none.", minimum=0, maximum=1_200
    )
    max_page_tokens: int = declare(
        8_000, "A larger page is reported.", minimum=1, maximum=1_000_000
    )
    max_section_tokens: int = declare(
        1_500, "A larger section is reported.", minimum=1, maximum=1_000_000
    )
    fail_on: str = declare(
        "error",
        "The level that fails a check, with those above it. A repository cannot set `never`.",
        choices=FAIL_LEVELS,
    )
    ignore: tuple[str, ...] = declare(
        (), "Rules that are not applied to any page.", maximum=100, max_text=_MAX_TEXT
    )
    ignore_safety: bool = declare(
        False,
        "Let pages and `check.ignore` switch off the rules about safety too: `secret`, "
        "`invisible` and `instruction`.",
        operator=True,
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What a context is made for when the call does not say."""

    language: str = declare(
        "",
        "Language of the work when neither the call nor its files name one; empty for the one "
        "that most source files of the repository are in.",
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Whether meaning is searched beside words, and with which model."""

    semantic: str = declare(
        "auto",
        "Whether pages are also found by meaning: `auto` where the extra `semantic` is installed, "
        "`on` to refuse to work without it.",
        choices=SEMANTIC,
    )
    model: str = declare(
        DEFAULT_MODEL,
        "The model that compares meanings: `granite` for English, `multilingual` for sixteen "
        "languages, or the absolute path of a folder with ONNX weights and a tokenizer. A "
        "repository cannot set a path.",
        max_text=4_096,
    )


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What `sage hook` may deliver to an agent unasked, and how long it may take."""

    budget_tokens: int = declare(
        1_200,
        "Most tokens that one event delivers; the host's own limit holds as well.",
        minimum=200,
        maximum=10_000,
    )
    session: bool = declare(True, "Deliver the principles when a session starts.")
    prompt: bool = declare(True, "Deliver what the base has on a prompt.")
    edit: bool = declare(True, "Deliver the pages whose scope holds a file that a tool touches.")
    reminder: bool = declare(
        True,
        "Remind once, after a session that changed files, that a note can be drafted; only where "
        "the hooks were installed with `--remind`.",
    )
    timeout_ms: int = declare(
        3_000,
        "Longest time one event may take; then nothing is delivered.",
        minimum=100,
        maximum=30_000,
        operator=True,
    )
    session_timeout_ms: int = declare(
        15_000,
        "The same for the start of a session, which also brings the index up to date.",
        minimum=100,
        maximum=60_000,
        operator=True,
    )


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where a person goes from the page of a document."""

    edit_url: str = declare(
        "", "Address that edits a page; `{path}` and `{topic}` are filled in. Empty for no link."
    )
    suggest_url: str = declare(
        "", "Address that suggests a change to a page, with the same names filled in."
    )


@dataclass(frozen=True, slots=True)
class NoteSettings:
    """Where `sage note` puts its drafts."""

    layer: str = declare("", "The layer of drafted notes; the last one when it is empty.")
    folder: str = declare("inbox", "The folder of that layer in which they wait for review.")
    draft_tool: bool = declare(
        False,
        "Offer agents the tool `sage_draft_note`: it returns the page of a note and its path as "
        "text, and writes nothing.",
        operator=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, checked, for one root."""

    root: Path
    cache_dir: Path
    config_path: Path | None = None
    found_by: str = ""
    is_narrowed: bool = False
    """Whether these are some of the layers only, for somebody who may know of no others."""
    further: tuple[Source, ...] = ()
    """The sources beside the repository, nearest first."""
    own_layers: tuple[str, ...] | None = None
    """The repository's, where other sources have more; None when they are all."""
    own_fault: str = ""
    """Why no page of the repository can be served, where it was published; empty when they can."""
    seen_sources: tuple[str, ...] = ()
    """The sources that are served, when not all are."""
    layer_paths: TextLists = field(default_factory=dict)
    """Where the pages of a layer lie that `layers` maps; the others lie in `.knowledge`."""
    layers: tuple[str, ...] = declare(
        DEFAULT_LAYERS,
        "The layers that are served, in the order in which they are read: folders of "
        "`.knowledge`, or in `sage.yaml` a mapping of names to folders, globs and files of the "
        "repository (`guidelines: [docs/guides, docs/adr]`).",
        maximum=50,
        max_text=_MAX_TEXT,
    )
    sources: Tree = declare(
        {},
        "Further folders that are read beside the repository, nearest first, by name: a path, or "
        "a mapping with `path`, `layers` and `ignore`. A repository names folders of its own; "
        "whoever runs SAGE names any, also in `SAGE_SOURCES` as `name=folder,name=folder`.",
        maximum=1_000,
        max_text=1_024,
    )
    ignore: tuple[str, ...] = declare(
        (),
        "Patterns of files to leave out, as in `.gitignore`, relative to `.knowledge`.",
        maximum=100,
        max_text=100,
    )
    log_level: str = declare(
        "warning", "What is logged to stderr.", choices=LOG_LEVELS, operator=True
    )
    synonyms: TextLists = declare(
        {},
        "Words that mean the same in this team: each key is searched with its list, which may "
        "hold 20.",
        maximum=2_000,
        max_text=_MAX_TEXT,
    )
    context: ContextSettings = field(default_factory=ContextSettings)
    recipes: Tree = declare(
        {},
        "Changes to what each task type is given as context; see the context guide.",
        maximum=1_000,
        max_text=_MAX_TEXT,
    )
    cache: CacheSettings = field(default_factory=CacheSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    check: CheckSettings = field(default_factory=CheckSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    notes: NoteSettings = field(default_factory=NoteSettings)
    page: PageSettings = field(default_factory=PageSettings)
    search: SearchSettings = field(default_factory=SearchSettings)

    @property
    def knowledge_dir(self) -> Path:
        """The folder that holds the layers."""
        return self.root / KNOWLEDGE_DIR

    @property
    def repository_layers(self) -> tuple[str, ...]:
        """The layers that the repository itself has, of those that are served."""
        return tuple(one for one in self.repository.layers if one in self.layers)

    @property
    def repository(self) -> Source:
        """The repository as one of the sources."""
        return Source(
            OWN,
            self.root,
            layers=self.layers if self.own_layers is None else self.own_layers,
            layer_paths=self.layer_paths,
            ignore=self.ignore,
            fault=self.own_fault,
        )

    @property
    def served(self) -> tuple[Source, ...]:
        """The sources that are read, the repository first, each with those of its layers that
        are served."""
        every = (self.repository, *self.further)
        wanted = self.seen_sources or [one.name for one in every]
        seen = set(self.layers)
        return tuple(
            replace(
                one,
                layers=tuple(layer for layer in one.layers if layer in seen),
                all_layers=one.layers,
            )
            for one in every
            if one.name in wanted
        )

    @property
    def has_folder(self) -> bool:
        """Whether that folder can be seen now."""
        if self.layer_paths or OWN not in (self.seen_sources or (OWN,)):
            return True
        try:
            return self.knowledge_dir.is_dir()
        except OSError:
            return False


def declared_settings() -> list[Setting]:
    """Every setting, for the reference page."""
    return list(declared_in(Settings))


def load_settings(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    working_dir: Path | None = None,
) -> Settings:
    """The settings in force.

    Args:
        flags: values from the command line under dotted keys; `root` and `config` are paths,
            `sources` a list of `name=folder`.

    Raises:
        ConfigError: no root, an unreadable file, an unknown key or a wrong value.
        InvalidInput: a flag has a wrong value.
    """
    environment = dict(os.environ) if environment is None else environment
    try:
        return _found_settings(flags or {}, environment, working_dir or here())
    except OSError as error:
        reason = f"{error.filename} cannot be looked at: {error.strerror}"
        raise ConfigError(reason) from error


def rootless_settings(
    flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """The settings of whoever serves what lies elsewhere: the operator's alone."""
    environment = dict(os.environ) if environment is None else environment
    cache_dir = find_cache_dir(environment)
    own = find_user_config(environment)
    root = cache_dir / "replica"
    known = declared_settings()
    values = file_values(own, root, known, is_operators=True) if own.is_file() else {}
    values |= environment_values(environment, known) | flag_values(flags or {}, known)
    values |= {"root": root, "cache_dir": cache_dir, "found_by": "the cluster"}
    settings: Settings = assembled(Settings, values)
    return settings


def _found_settings(
    flags: Mapping[str, object], environment: Mapping[str, str], working_dir: Path
) -> Settings:
    root, found_by = find_root(flags.get("root"), environment, working_dir)
    config, is_operators = _config_path(root, flags, environment)
    known = declared_settings()
    values = file_values(config, root, known, is_operators) if config else {}
    named = _named_sources(values, config, root, is_operators)
    own = find_user_config(environment)
    if own.is_file():
        users = file_values(own, root, known, is_operators=True)
        named += _named_sources(users, own, root, is_operators=True)
        values |= users
    given = environment.get("SAGE_SOURCES", "").split(",")
    named += named_as_text(given, "SAGE_SOURCES", working_dir)
    named += named_as_text(flag_sources(flags), "--source", working_dir)
    values |= environment_values(environment, known)
    values |= flag_values(flags, known)
    values |= {
        "root": root,
        "cache_dir": find_cache_dir(environment),
        "config_path": config,
        "found_by": found_by,
    }
    settings: Settings = assembled(Settings, values)
    named_by_variable = environment.get("SAGE_LAYERS")
    check_layers(settings.layers, "SAGE_LAYERS" if named_by_variable else f"{CONFIG_FILE}: layers")
    check_groups(settings.synonyms)
    if not named:
        return settings
    further = resolved(named, root, settings.layers)
    layers = with_their_layers(settings.layers, further)
    return replace(settings, further=further, layers=layers, own_layers=settings.layers)


def _named_sources(
    values: Mapping[str, object], path: Path | None, root: Path, is_operators: bool
) -> list[NamedSource]:
    """The sources that a file names; those of an operator's begin from where it lies."""
    if path is None:
        return []
    base = path.parent if is_operators else root
    return named_in(values.get("sources"), path.name, base, is_operators)


def _config_path(
    root: Path, flags: Mapping[str, object], environment: Mapping[str, str]
) -> tuple[Path | None, bool]:
    """The file of settings, and whether the operator named it."""
    given = flags.get("config") or environment.get("SAGE_CONFIG")
    if given:
        path = located(given, here())
        if not path.is_file():
            source = "--config" if flags.get("config") else "SAGE_CONFIG"
            raise ConfigError(f"{source} names {given}, which is not a file")
        return path, True
    return repository_config(root), False
