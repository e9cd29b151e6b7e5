"""The settings of a replica: the operator's, with what is published of each source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sage.cluster.generations import Meta
from sage.cluster.replica import Replica, View
from sage.context.recipes import load_recipes, recipes_for_layers
from sage.errors import ConfigError
from sage.settings import CheckSettings, ContextSettings, Settings
from sage.sources import Source
from sage.values import OWN


class PublishedSettings:
    """Follows the settings of what a replica serves."""

    def __init__(self, replica: Replica, settings: Settings) -> None:
        """Args:
        settings: what the operator of the replica decides.
        """
        self._replica = replica
        self._operators = settings
        self._settings: Settings | None = None
        self._view: View | None = None
        self._in_force: Sequence[Meta] = ()
        self.refused = ""
        """Why those that were published last are not in force; empty when they are."""

    @property
    def current(self) -> Settings:
        """Those of the view in force; as long as they stay the same, the same object.

        Raises:
            ConfigError: they cannot be used, and there are none from before.
        """
        view = self._replica.views[0]
        if self._settings is None or view is not self._view:
            published = _in_order(view)
            found = published_settings(published, self._operators)
            try:
                load_recipes(found)
            except ConfigError as error:
                if self._settings is None:
                    raise
                self.refused = (
                    f"the settings that were published last cannot be used ({error}); "
                    "those from before are in force: correct sage.yaml and publish again"
                )
            else:
                self.refused = ""
                self._in_force = published
                if found != self._settings:
                    self._settings = found
            self._view = view
        return self._settings

    def narrowed(self, settings: Settings) -> Settings:
        """Settings of those in force for some sources, without what the others say.

        A synonym or a task type may be as telling as a page.
        """
        if not settings.seen_sources:
            return settings
        seen = [one.settings for one in self._in_force if one.source in settings.seen_sources]
        words = _words_of(seen)
        return replace(
            settings, **{**words, "recipes": recipes_for_layers(words["recipes"], settings.layers)}
        )


def _in_order(view: View) -> list[Meta]:
    """What is said of each source; that of the one without a name first: others are beside it."""
    published = [one.meta for one in view.sources]
    return sorted(published, key=lambda one: (one.source != OWN, one.source))


def published_settings(published: Sequence[Meta], settings: Settings) -> Settings:
    """The operator's settings, with what the sources of a view say of their pages."""
    said = [one.settings for one in published]
    own = [one for one in published if one.source == OWN]
    further = tuple(
        Source(one.source, settings.root, layers=tuple(one.settings["layers"]))
        for one in published
        if one.source != OWN
    )
    return replace(
        settings,
        layers=tuple(dict.fromkeys(layer for one in said for layer in one["layers"])),
        own_layers=tuple(own[0].settings["layers"]) if own else (),
        further=further,
        layer_paths={},
        **_words_of(said),
    )


def _words_of(said: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that tell words of pages and tasks; of two sources the first is right."""
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
