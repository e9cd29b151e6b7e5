"""What replicas need of the settings of one repository: as it is published, and as it is read.

Another version may publish more, or less, or something else under the same name: what is missing
takes its default, and of what is of another kind the reason is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sage.errors import ConfigError
from sage.settings import CheckSettings, declared_settings
from sage.settings_schema import TextLists, Tree, check_groups
from sage.sources import check_layers
from sage.values import Values, WrongValue


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The settings of one source."""

    layers: tuple[str, ...] = ()
    """Those that it may have pages in; none where that is not known."""
    synonyms: TextLists = field(default_factory=dict)
    recipes: Tree = field(default_factory=dict)
    language: str = ""
    stale_months: int = CheckSettings().stale_months
    fault: str = ""
    """Why nothing but the layers can be used; empty when all can."""

    def to_json(self) -> dict[str, Any]:
        """What is published of it."""
        return {
            "layers": list(self.layers),
            "synonyms": {word: list(others) for word, others in self.synonyms.items()},
            "recipes": self.recipes,
            "language": self.language,
            "stale_months": self.stale_months,
        }


def settings_from(published: Mapping[str, Any]) -> SourceSettings:
    """What was published of a source, as far as it can be used."""
    known: dict[str, Any] = {}
    wrong: list[str] = []
    for name in _values().keys() & published.keys():
        try:
            known[name] = _checked(name, published[name])
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        return SourceSettings(known.get("layers", ()), fault="; ".join(sorted(wrong)))
    return SourceSettings(**known)


def _checked(name: str, value: object) -> Any:
    try:
        checked = _values()[name].checked(value)
    except WrongValue as error:
        raise ConfigError(f"{name}: {error}") from error
    if name == "layers":
        check_layers(checked, name)
    elif name == "synonyms":
        check_groups(checked)
    return checked


@cache
def _values() -> Mapping[str, Values]:
    """The values that each name takes: those that it takes in `sage.yaml`."""
    declared = {one.key: one.values for one in declared_settings()}
    return {
        "layers": declared["layers"],
        "synonyms": declared["synonyms"],
        # What stands in them is checked with the recipes of other sources. Of their texts a topic
        # is longer here than in `sage.yaml`.
        "recipes": Values("object"),
        "language": declared["context.language"],
        "stale_months": declared["check.stale_months"],
    }
