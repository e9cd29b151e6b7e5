"""Which pages are exported, and within how many tokens.

The choice is written into the mark of what is exported, so that it can be made again, or compared,
without being told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from sage.documents.document import Document
from sage.documents.scopes import matching_glob
from sage.errors import InvalidInput, did_you_mean

DEFAULT_EXPORT = 2_000
MIN_EXPORT = 200
MAX_EXPORT = 50_000
_MAX_WORDS = 50
_MAX_WORD = 200
_IN_FORCE = "published"


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """What of a knowledge base is exported."""

    layers: tuple[str, ...] = ()
    """All when none is named."""
    tags: tuple[str, ...] = ()
    scope: str = ""
    """A path of the repository: only pages that belong to it."""
    budget_tokens: int = DEFAULT_EXPORT

    def keeps(self, document: Document) -> bool:
        """Whether a page is among those asked for."""
        meta = document.meta
        return (
            meta.status == _IN_FORCE
            and not meta.superseded_by
            and (not self.layers or document.layer in self.layers)
            and (not self.tags or not set(self.tags).isdisjoint(map(str.casefold, meta.tags)))
            and (not self.scope or _belongs(meta.applies_to, self.scope))
        )

    @property
    def words(self) -> str:
        """The selection as a mark holds it."""
        pairs = [f"budget={self.budget_tokens}"]
        pairs += [f"layer={quote(one)}" for one in self.layers]
        pairs += [f"tag={quote(one)}" for one in self.tags]
        pairs += [f"scope={quote(self.scope)}"] if self.scope else []
        return " ".join(pairs)


def selection_of(
    layers: Sequence[str], tags: Sequence[str], scope: str, budget_tokens: int, known: Sequence[str]
) -> ExportSelection:
    """A selection whose values are right.

    Raises:
        InvalidInput: no such layer, or a budget out of range.
    """
    for layer in layers:
        if layer not in known:
            near = did_you_mean(layer, known)
            raise InvalidInput(f"there is no layer {layer!r}; use one of {', '.join(known)}{near}")
    if not MIN_EXPORT <= budget_tokens <= MAX_EXPORT:
        raise InvalidInput(
            f"the budget of an export is {budget_tokens}; use {MIN_EXPORT} to {MAX_EXPORT:,} tokens"
        )
    if max(len(layers), len(tags)) > _MAX_WORDS or any(
        len(one) > _MAX_WORD for one in (*layers, *tags, scope)
    ):
        raise InvalidInput(f"at most {_MAX_WORDS} layers and tags of {_MAX_WORD} characters each")
    folded = (tag.casefold() for tag in tags)
    return ExportSelection(
        tuple(one for one in known if one in layers),
        tuple(sorted(set(folded))),
        scope.replace("\\", "/").strip("/").removeprefix("./"),
        budget_tokens,
    )


def recorded(mark: bytes, known: Sequence[str]) -> ExportSelection:
    """The selection that a mark holds.

    Raises:
        InvalidInput: a layer of it is gone, or somebody wrote something else into it.
    """
    given: dict[str, list[str]] = {}
    for word in mark.decode("utf-8", "replace").split():
        key, equals, value = word.partition("=")
        if equals:
            given.setdefault(key, []).append(unquote(value))
    return selection_of(
        given.get("layer", []),
        given.get("tag", []),
        _last(given, "scope", ""),
        _number(_last(given, "budget", str(DEFAULT_EXPORT))),
        known,
    )


def chosen(
    documents: Iterable[Document], selection: ExportSelection, layers: Sequence[str]
) -> list[Document]:
    """The pages of a selection: what matters most first, then in reading order."""
    kept = [document for document in documents if selection.keeps(document)]
    places = {layer: place for place, layer in enumerate(layers)}
    return sorted(
        kept,
        key=lambda one: (-one.meta.priority, places.get(one.layer, 0), one.reading_order),
    )


def _belongs(globs: Sequence[str], path: str) -> bool:
    """Whether a page's scope holds a path, or something below it."""
    if not globs:
        return False
    inner = (glob for glob in globs if glob.removeprefix("./").startswith(f"{path}/"))
    return bool(matching_glob(globs, path)) or any(inner)


def _last(given: Mapping[str, Sequence[str]], key: str, default: str) -> str:
    return given[key][-1] if given.get(key) else default


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1
