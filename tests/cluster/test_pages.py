"""Pages are found in a replica by the same names as in files, whatever was read before."""

import pytest

from sage.cluster.conformance import PAGES
from sage.errors import NotFound
from sage.knowledge import KnowledgeBase
from tests.cluster.conftest import Team

ERRORS = {
    "guidelines/errors.md": (
        "# Errors\n\nRaise them.\n\n## Handling failures\n\nRetry, then give up.\n\n"
        "## What to log {#logging}\n\nThe reason.\n"
    ),
    "practices/retries.md": "# Retries\n\nThree.\n\n## Handling failures\n\nWait longer.\n",
}
NAMES = (
    "#handling-failures",
    "## Handling failures",
    "#logging",
    "{#logging}",
    "#handling-failure",
    "handlin failures",
    "## What to log",
    "what-to-loog",
    "zanzibar",
)


def read(knowledge: KnowledgeBase, name: str, layer: str = "all") -> str:
    """What a name leads to, or why it leads nowhere."""
    try:
        return knowledge.get(layer, name)["content"]
    except NotFound as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_leads_where_it_does_in_files(name: str, team: Team) -> None:
    team.publish({**PAGES, **ERRORS})
    files = team.base.open()
    assert read(team.replica(), name) == read(files, name)
    assert read(team.replica(), name, "practices") == read(files, name, "practices")


def test_a_heading_beyond_the_scope_leads_nowhere(team: Team) -> None:
    team.publish({**PAGES, **ERRORS})
    replica = team.replica(("core", "practices"))
    assert "Wait longer" in read(replica, "#handling-failures")
    assert "then give up" not in read(replica, "#handling-failures")
    assert "nothing is called" in read(replica, "#logging")
    assert "errors" not in read(replica, "what-to-loog")


def test_many_pages_are_asked_for_a_heading_at_once(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {f"core/p{n}.md": f"# P{n}\n\n## Part {n}\n\nText {n}.\n" for n in range(30)}
    team.publish(pages)
    replica = team.replica()
    asked: list[str] = []
    request = team.connection.request

    def noted(method: str, path: str, *rest: object, **more: object) -> object:
        asked.append(path)
        return request(method, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(team.connection, "request", noted)
    assert "Text 7" in read(replica, "#part-7")
    assert asked.count("/_msearch") == 2
