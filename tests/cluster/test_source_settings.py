"""What is published of a repository's settings is read again, whatever another version wrote."""

import json
from typing import Any

import pytest

from sage.cluster.generations import Meta
from sage.cluster.loading import SourceGeneration
from sage.cluster.source_settings import SourceSettings, settings_from

SAID = SourceSettings(
    layers=("core", "runbooks"),
    synonyms={"chargeback": ("refund", "dispute")},
    recipes={"triage": {"based_on": "debugging"}},
    language="go",
    stale_months=6,
)


def test_what_is_published_is_read_as_it_was() -> None:
    assert settings_from(json.loads(json.dumps(SAID.to_json()))) == SAID


@pytest.mark.parametrize("name", SAID.to_json())
def test_what_is_missing_takes_its_default(name: str) -> None:
    published = {key: value for key, value in SAID.to_json().items() if key != name}
    found = settings_from(published)
    assert getattr(found, name) == getattr(SourceSettings(), name)
    assert {**found.to_json(), name: None} == {**SAID.to_json(), name: None}
    assert not found.fault


def test_what_this_version_does_not_know_is_left_alone() -> None:
    assert settings_from({**SAID.to_json(), "weather": ["mild"]}) == SAID


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("synonyms", None),
        ("synonyms", {"refund": 5}),
        ("synonyms", {"refund": [str(number) for number in range(21)]}),
        ("recipes", ["triage"]),
        ("language", None),
        ("stale_months", "12"),
        ("stale_months", 10**30),
        ("stale_months", True),
    ],
)
def test_with_words_of_another_kind_the_layers_alone_are_used(name: str, value: object) -> None:
    found = settings_from({**SAID.to_json(), name: value})
    assert name in found.fault
    assert found == SourceSettings(SAID.layers, fault=found.fault)


@pytest.mark.parametrize("layers", [None, 5, [], ["core", 5], ["core", "core"], ["all"], ["a/b"]])
def test_with_layers_of_another_kind_its_pages_say_which_it_has(layers: object) -> None:
    meta = Meta("payments", 0, "key", settings={**SAID.to_json(), "layers": layers})
    source = SourceGeneration("index", meta, {}, {}, {})
    assert "layers" in source.settings.fault
    source.__dict__["layers"] = frozenset({"practices", "core"})
    assert source.all_layers == ("core", "practices")
    assert not source.is_all_in(("core", "practices"))


def test_a_source_is_told_as_a_whole_only_where_its_layers_are_known() -> None:
    def generation(**settings: Any) -> SourceGeneration:
        return SourceGeneration("index", Meta("payments", 0, "key", settings=settings), {}, {}, {})

    assert generation(layers=["core"]).is_all_in(("core", "practices"))
    assert not generation(layers=["core", "runbooks"]).is_all_in(("core",))
    assert not generation().is_all_in(("core",))
