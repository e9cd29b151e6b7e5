"""The settings of a replica: the operator's, with what is published of each source."""

from dataclasses import replace
from typing import Any

from sage.cluster.replica import Replica, View
from sage.context.recipes import load_recipes
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
            found = published_settings(view, self._operators)
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
                if found != self._settings:
                    self._settings = found
            self._view = view
        return self._settings


def published_settings(view: View, settings: Settings) -> Settings:
    """The operator's settings, with what the sources of a view say of their pages."""
    # What the source without a name says comes first: the others are beside it.
    sources = sorted(view.sources, key=lambda one: (one.meta.source != OWN, one.meta.source))
    said = [source.meta.settings for source in sources]
    own = [one.meta for one in sources if one.meta.source == OWN]
    further = tuple(
        Source(one.meta.source, settings.root, layers=tuple(one.meta.settings["layers"]))
        for one in sources
        if one.meta.source != OWN
    )
    layers = dict.fromkeys(layer for one in said for layer in one["layers"])
    synonyms: dict[str, list[str]] = {}
    recipes: dict[str, Any] = {}
    for one in reversed(said):
        synonyms |= one["synonyms"]
        recipes |= one["recipes"]
    return replace(
        settings,
        layers=tuple(layers),
        own_layers=tuple(own[0].settings["layers"]) if own else (),
        further=further,
        layer_paths={},
        synonyms={word: tuple(others) for word, others in synonyms.items()},
        recipes=recipes,
        context=ContextSettings(language=next((o["language"] for o in said if o["language"]), "")),
        check=replace(CheckSettings(), stale_months=max(one["stale_months"] for one in said)),
    )
