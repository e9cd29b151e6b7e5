"""The settings of a replica: the operator's, with what is published of each source."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sage.cluster.loading import SourceGeneration
from sage.cluster.replica import Replica
from sage.cluster.view import Scope, View
from sage.context.recipes import load_recipes, recipes_for_layers
from sage.errors import ConfigError
from sage.settings import CheckSettings, ContextSettings, Settings
from sage.sources import Source
from sage.values import OWN


def scope_of(view: View, settings: Settings) -> Scope:
    """What may be seen of a view with some settings."""
    is_narrowed = settings.is_narrowed
    return view.scope(settings.layers, settings.seen_sources, is_narrowed=is_narrowed)


class PublishedSettings:
    """Follows the settings of what a replica serves. Thread-safe."""

    def __init__(self, replica: Replica, settings: Settings) -> None:
        """Args:
        settings: what the operator of the replica decides.
        """
        self._replica = replica
        self._operators = settings
        self._known: ViewSettings | None = None

    @property
    def current(self) -> Settings:
        """Those of the view in force; as long as they stay the same, the same object."""
        return self._in_force.settings

    @property
    def refused(self) -> str:
        """Of which sources they cannot be used and why; empty when all are."""
        return self._in_force.refused

    def narrowed(self, settings: Settings) -> Settings:
        """Settings of those in force for somebody who may know of no more than is seen with them.

        A synonym, a task type or a name of a source may be as telling as a page: of a source
        without a page to be seen there is none.
        """
        return self._in_force.narrowed(settings) if settings.is_narrowed else settings

    @property
    def _in_force(self) -> "ViewSettings":
        view, known = self._replica.views[0], self._known
        if known is None or known.view is not view:
            before = known.settings if known is not None else None
            known = self._known = ViewSettings(view, self._operators, before)
        return known


class ViewSettings:
    """The settings that were published with one view. Thread-safe."""

    def __init__(self, view: View, operators: Settings, before: Settings | None) -> None:
        """Args:
        before: those that were in force before.
        """
        self.view = view
        self._published = _in_order(view)
        every = published_settings(self._published, view.faults, operators)
        said, self.refused = _usable(self._published, every)
        found = replace(every, **_words_of(said))
        self.settings = before if before is not None and found == before else found
        self._lock = threading.Lock()
        self._narrowed: dict[tuple[tuple[str, ...], tuple[str, ...]], Mapping[str, Any]] = {}

    def narrowed(self, settings: Settings) -> Settings:
        """Settings with what is said by the sources that have a page to be seen with them."""
        key = (settings.layers, settings.seen_sources)
        with self._lock:
            if key not in self._narrowed:
                self._narrowed[key] = self._seen_with(settings)
            return replace(settings, **self._narrowed[key])

    def _seen_with(self, settings: Settings) -> Mapping[str, Any]:
        names = scope_of(self.view, settings).names
        seen = [one for one in self._published if one.meta.source in names]
        # Of the others nothing may be known: not what clashes with it, and not its order.
        layers = tuple(layer for layer in _layers_of(seen) if layer in settings.layers)
        settings = replace(settings, layers=layers or settings.layers)
        words = _words_of(_usable(seen, settings)[0])
        return {
            **words,
            "layers": settings.layers,
            "recipes": recipes_for_layers(words["recipes"], settings.layers),
            "further": tuple(one for one in self.settings.further if one.name in names),
        }


def _in_order(view: View) -> list[SourceGeneration]:
    """The sources; the one without a name first: others are beside it."""
    return sorted(view.sources, key=lambda one: (one.meta.source != OWN, one.meta.source))


def _layers_of(published: Sequence[SourceGeneration]) -> tuple[str, ...]:
    """The layers of some sources, those of the first one first."""
    return tuple(dict.fromkeys(layer for one in published for layer in one.all_layers))


def published_settings(
    published: Sequence[SourceGeneration], faults: Mapping[str, str], settings: Settings
) -> Settings:
    """The operator's settings, with the layers of the sources of a view, and no words of theirs.

    Args:
        faults: why some sources cannot be loaded: they are named, as those of files are, and
            which layers they have nobody knows.
    """
    there = {one.meta.source: one.all_layers for one in published}
    further = [Source(name, settings.root, layers=there[name]) for name in there if name != OWN]
    further += [
        Source(name, settings.root, fault=why)
        for name, why in sorted(faults.items())
        if name not in {*there, OWN}
    ]
    return replace(
        settings,
        layers=_layers_of(published) or settings.layers,
        own_layers=there.get(OWN, ()),
        own_fault="" if OWN in there else faults.get(OWN, ""),
        further=tuple(further),
        layer_paths={},
        **_words_of(()),
    )


def _usable(
    published: Sequence[SourceGeneration], settings: Settings
) -> tuple[Sequence[SourceGeneration], str]:
    """Those whose words can be used beside those of the ones before, and why others cannot."""
    kept: list[SourceGeneration] = []
    refused: list[str] = []
    for one in published:
        if why := one.settings.fault or _why_not([*kept, one], settings):
            refused.append(
                f"the settings that were published last for the source {one.meta.source} cannot "
                f"be used ({why}); its pages are served without them: correct sage.yaml and "
                "publish again"
            )
        else:
            kept.append(one)
    return kept, "; ".join(refused)


def _why_not(published: Sequence[SourceGeneration], settings: Settings) -> str:
    """Why the words of some sources cannot be used together; empty when they can."""
    words = _words_of(published)
    if settings.is_narrowed:
        words["recipes"] = recipes_for_layers(words["recipes"], settings.layers)
    try:
        load_recipes(replace(settings, **words))
    except ConfigError as error:
        return str(error)
    return ""


def _words_of(published: Sequence[SourceGeneration]) -> dict[str, Any]:
    """The settings that tell words of pages and tasks.

    What several sources call a synonym of a word all are; of recipes of one name the first is
    right. Those of the first source come first: what one is based on stands before it.
    """
    said = [one.settings for one in published]
    synonyms: dict[str, tuple[str, ...]] = {}
    recipes: dict[str, object] = {}
    for one in said:
        for word, others in one.synonyms.items():
            synonyms[word] = tuple(dict.fromkeys((*synonyms.get(word, ()), *others)))
        for name, recipe in one.recipes.items():
            recipes.setdefault(name, recipe)
    language = next((one.language for one in said if one.language), "")
    check = CheckSettings()
    months = max((one.stale_months for one in said), default=check.stale_months)
    return {
        "synonyms": synonyms,
        "recipes": recipes,
        "context": ContextSettings(language=language),
        "check": replace(check, stale_months=months),
    }
