"""What `sage publish` tells of changed settings and of faulty pages, and what it refuses."""

import json

import pytest

from sage.cluster.conformance import PAGES
from sage.errors import ConfigError
from tests.cluster.conftest import Team
from tests.commands import Run, run

__all__ = ["run"]

SETTINGS = "synonyms:\n  marmalade: [jam]\n"


def at(team: Team) -> tuple[str, ...]:
    return ("publish", "--url", team.options.urls[0], "--base", team.options.base)


def test_settings_that_changed_are_told(run: Run, team: Team) -> None:
    team.publish(PAGES)
    team.base.write({"sage.yaml": SETTINGS})
    code, out, err = run(*at(team), "--dry-run")
    assert code == 0, err
    assert "0 removed, the settings changed" in out
    assert "would be published" in out
    assert json.loads(run(*at(team), "--dry-run", "--json")[1])["settings_changed"] is True
    code, out, err = run(*at(team))
    assert "0 removed, the settings changed" in out
    assert "is served" in out
    assert "nothing changed" in run(*at(team), "--dry-run")[1]
    assert json.loads(run(*at(team), "--json")[1])["settings_changed"] is False


def test_pages_that_are_not_as_they_were_written_are_named(run: Run, team: Team) -> None:
    team.base.write({"core/front.md": "---\ntags: [\n---\n# Front\n\nMarmalade.\n"})
    team.base.path("core/latin.md").write_bytes("# Käse\n\nMarmalade.\n".encode("latin-1"))
    team.base.path("core/binary.md").write_bytes(b"# Zero\n\n\0\n")
    for words in ((), ("--dry-run",), ()):
        code, out, err = run(*at(team), *words)
        assert (code, err.count("\n")) == (0, 4), err
        assert "core/latin.md: left out: byte 3 is not UTF-8" in err
        assert "core/binary.md: left out: it holds NUL bytes" in err
        assert "core/front.md:" in err
        assert "3 problems: not all is published as it is written; run: sage check" in err
        assert "problem" not in out
    told = json.loads(run(*at(team), "--json")[1])["problems"]
    assert (told["count"], len(told["first"])) == (3, 3)
    assert run(*at(team), "--quiet")[2] == ""


def test_settings_that_no_replica_can_use_are_refused_before_anything_is_written(
    team: Team,
) -> None:
    team.publish(PAGES)
    before = team.indexes
    wrong = {"sage.yaml": "recipes:\n  special:\n    based_on: other\n", "core/new.md": "# New\n"}
    for dry_run in (True, False):
        with pytest.raises(ConfigError, match=r"sage\.yaml: recipes\.special"):
            team.publish(wrong, dry_run=dry_run)
    assert team.indexes == team.served == before
