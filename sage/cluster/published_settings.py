"""The settings of a replica: the operator's, with what is published of each source."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sage.cluster.generations import Meta
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
        published = _in_order(view)
        every = published_settings(published, view.faults, operators)
        said, self.refused = _usable(published, every)
        self._said = {one.source: one for one in said}
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
        seen = [one for name, one in self._said.items() if name in names]
        # A recipe may name another one, of a source that is not seen.
        words = _words_of(_usable(seen, settings)[0])
        return {
            **words,
            "recipes": recipes_for_layers(words["recipes"], settings.layers),
            "further": tuple(one for one in self.settings.further if one.name in names),
        }


def _in_order(view: View) -> list[Meta]:
    """What is said of each source; that of the one without a name first: others are beside it."""
    published = [one.meta for one in view.sources]
    return sorted(published, key=lambda one: (one.source != OWN, one.source))


def published_settings(
    published: Sequence[Meta], faults: Mapping[str, str], settings: Settings
) -> Settings:
    """The operator's settings, with the layers of the sources of a view, and no words of theirs.

    Args:
        faults: why some sources cannot be loaded: they are named, as those of files are.
    """
    own = [one for one in published if one.source == OWN]
    said = tuple(dict.fromkeys(layer for one in published for layer in one.settings["layers"]))
    layers = said or settings.layers
    further = [
        Source(one.source, settings.root, layers=tuple(one.settings["layers"]))
        for one in published
        if one.source != OWN
    ]
    there = {one.source for one in published}
    further += [
        Source(name, settings.root, layers=layers, fault=why)
        for name, why in sorted(faults.items())
        if name not in {*there, OWN}
    ]
    return replace(
        settings,
        layers=layers,
        own_layers=tuple(own[0].settings["layers"]) if own else (),
        further=tuple(further),
        layer_paths={},
        **_words_of(()),
    )


def _usable(published: Sequence[Meta], settings: Settings) -> tuple[Sequence[Meta], str]:
    """Those whose words can be used, all together, and why the others cannot."""
    if not _why_not(published, settings):
        return published, ""
    kept: list[Meta] = []
    refused: list[str] = []
    for one in published:
        if why := _why_not([*kept, one], settings):
            refused.append(
                f"the settings that were published last for the source {one.source} cannot be used "
                f"({why}); its pages are served without them: correct sage.yaml and publish again"
            )
        else:
            kept.append(one)
    return kept, "; ".join(refused)


def _why_not(published: Sequence[Meta], settings: Settings) -> str:
    """Why the words of some sources cannot be used together; empty when they can."""
    words = _words_of(published)
    if settings.is_narrowed:
        words["recipes"] = recipes_for_layers(words["recipes"], settings.layers)
    try:
        load_recipes(replace(settings, **words))
    except ConfigError as error:
        return str(error)
    return ""


def _words_of(published: Sequence[Meta]) -> dict[str, Any]:
    """The settings that tell words of pages and tasks; of two sources the first is right."""
    said = [one.settings for one in published]
    synonyms: dict[str, list[str]] = {}
    recipes: dict[str, Any] = {}
    for one in reversed(said):
        synonyms |= one["synonyms"]
        recipes |= one["recipes"]
    language = next((one["language"] for one in said if one["language"]), "")
    check, months = CheckSettings(), [one["stale_months"] for one in said]
    return {
        "synonyms": {word: tuple(others) for word, others in synonyms.items()},
        "recipes": recipes,
        "context": ContextSettings(language=language),
        "check": replace(check, stale_months=max(months, default=check.stale_months)),
    }
