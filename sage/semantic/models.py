"""The models that can be used, by name or by the path of a folder, and what they need.

Nothing but names is imported here: asking whether a model is there loads nothing.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sage.errors import did_you_mean
from sage.search.fusion import Bounds
from sage.semantic.weights import INSTALL, ModelUnavailable, NotInstalled
from sage.settings import Settings

if TYPE_CHECKING:
    from sage.semantic.encoder import Matrix

NEEDED = ("numpy", "onnxruntime", "threadpoolctl", "tokenizers")


class Encoder(Protocol):
    """Makes vectors of texts."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    def embed(self, texts: Sequence[str]) -> "Matrix":
        """One vector of length 1 for each text."""


class Model(NamedTuple):
    """A model before it is loaded."""

    name: str
    """What `sage_info` calls it."""
    id: str
    """Changes whenever its vectors would: vectors of different ids are never compared."""
    bounds: Bounds
    is_multilingual: bool
    load: Callable[[], Encoder]


def model_named(name: str) -> Model:
    """The model of a setting.

    Raises:
        ModelUnavailable: there is no such model, or something that it needs is missing.
    """
    if name in _NAMED:
        _check_libraries(NEEDED)
        return _NAMED[name]()
    folder = Path(name).expanduser()
    if not folder.is_absolute():
        known = ", ".join(_NAMED)
        raise ModelUnavailable(
            f"search.model is {name!r}; use one of {known}, or the absolute path of a folder with "
            f"ONNX weights and a tokenizer{did_you_mean(name, _NAMED)}"
        )
    if not folder.is_dir():
        raise ModelUnavailable(f"search.model: there is no folder {folder}")
    _check_libraries(NEEDED)
    return _of_folder(folder)


def wanted_model(settings: Settings) -> tuple[Model, str] | None:
    """The model of the settings, and why it cannot be used; None where the extra is missing.

    Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
    """
    name = settings.search.model
    try:
        return model_named(name), ""
    except ModelUnavailable as error:
        if settings.search.semantic == "on":
            raise
        return None if isinstance(error, NotInstalled) else (_unusable(name, error), str(error))


def _unusable(name: str, why: ModelUnavailable) -> Model:
    """A model that was asked for and cannot be used: it says why whenever it is wanted."""

    def load() -> Encoder:
        raise why

    return Model(name, "none", Bounds(0.0, 1.01, 1.02), False, load)


def _check_libraries(needed: Sequence[str]) -> None:
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise NotInstalled(f"{', '.join(missing)} cannot be imported; {INSTALL}")


# The similarities were measured: 98 % of the best ones of questions about something else lie below
# `near`, and few of the best ones of any question below `far`. See docs/semantic.md.
def _granite() -> Model:
    from sage.semantic.weights import GRANITE

    GRANITE.locate()

    def load() -> Encoder:
        from sage.semantic.granite import Granite

        return Granite()

    return Model(
        "granite", f"granite-{GRANITE.sha256[:12]}-1", Bounds(0.50, 0.72, 0.84, 0.78), False, load
    )


def _multilingual() -> Model:
    from sage.semantic.weights import MULTILINGUAL, PIECES

    MULTILINGUAL.locate()
    PIECES.locate()

    def load() -> Encoder:
        from sage.semantic.multilingual import Multilingual

        return Multilingual()

    return Model(
        "multilingual",
        f"multilingual-{MULTILINGUAL.sha256[:12]}-1",
        Bounds(0.10, 0.55, 0.75, 0.70),
        True,
        load,
    )


def _of_folder(folder: Path) -> Model:
    from sage.semantic.onnx_folder import OnnxFolder, digest_of

    def load() -> Encoder:
        return OnnxFolder(folder)

    # Nothing is known of such a model: its nearest are shown, and never called an answer.
    bounds = Bounds(0.0, 1.01, 1.02)
    return Model(folder.name, f"folder-{digest_of(folder)}-1", bounds, True, load)


_NAMED: dict[str, Callable[[], Model]] = {"granite": _granite, "multilingual": _multilingual}
