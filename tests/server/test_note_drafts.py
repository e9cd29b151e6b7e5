"""The tool that returns a note as text, which a server has only where its operator wants it."""

import os
from pathlib import Path
from typing import Any

import pytest

from sage.documents.document import parse_document
from sage.documents.front_matter import TYPES
from sage.errors import ConfigError
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.settings import load_settings
from tests.processes import write_base
from tests.server.test_mcp_server import ask, call, refused

DRAFT = "sage_draft_note"
LEARNED = {"text": "Fixtures build real files, never mocks.", "type": "gotcha", "files": ["a/**"]}


def opened(folder: Path, **variables: str) -> KnowledgeBase:
    root = write_base(folder)
    environment = {"SAGE_CACHE_DIR": str(folder / "cache"), **variables}
    return open_knowledge(load_settings({"root": root}, environment))


@pytest.fixture
def knowledge(tmp_path: Path) -> KnowledgeBase:
    return opened(tmp_path, SAGE_NOTES_DRAFT_TOOL="true")


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder, _, names in os.walk(root)
        for path in (Path(folder, name) for name in names)
    }


def test_without_the_operators_word_there_is_no_such_tool(tmp_path: Path) -> None:
    knowledge = opened(tmp_path)
    assert DRAFT not in [one.name for one in ask(knowledge, lambda client: client.list_tools())]
    assert refused(knowledge, DRAFT, LEARNED).startswith("NOT_FOUND: ")


def test_a_repository_cannot_switch_it_on(tmp_path: Path) -> None:
    root = write_base(tmp_path)
    (root / ".knowledge" / "sage.yaml").write_text("notes: {draft_tool: true}\n")
    with pytest.raises(ConfigError, match=r"notes\.draft_tool is for whoever runs SAGE"):
        load_settings({"root": root}, {})


def test_it_returns_the_page_and_its_path_and_writes_nothing(knowledge: KnowledgeBase) -> None:
    root = knowledge.settings.root
    before = files_below(root)
    answer = call(knowledge, DRAFT, LEARNED).structured_content
    assert files_below(root) == before
    assert answer["path"].startswith(".knowledge/practices/inbox/")
    page = parse_document(answer["page"], answer["path"], "practices")
    assert (page.meta.id, page.meta.type, page.meta.status) == (answer["id"], "gotcha", "draft")
    assert page.meta.applies_to == ("a/**",)
    assert f"sage accept {answer['id']}" in answer["next"]
    assert "practices/testing#fixtures" in [one["topic"] for one in answer["known"]]


def test_the_page_that_it_returns_is_served_once_somebody_puts_it_there(
    knowledge: KnowledgeBase,
) -> None:
    answer = call(knowledge, DRAFT, LEARNED).structured_content
    path = knowledge.settings.root / answer["path"]
    path.parent.mkdir(parents=True)
    path.write_text(answer["page"], "utf-8")
    asked = {"topic": answer["id"], "timeout_ms": 30_000}
    content = call(knowledge, "sage_get_knowledge", asked).structured_content
    assert "never mocks" in content["content"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": " "}, "INVALID_INPUT: the note is empty"),
        ({"text": "x", "review_by": "soon"}, "write a day as 2027-01-31"),
        ({"text": "x", "type": "gotchas"}, "did you mean gotcha?"),
        ({}, "INVALID_INPUT: text is missing"),
    ],
)
def test_what_is_no_note_is_refused(
    knowledge: KnowledgeBase, given: dict[str, Any], said: str
) -> None:
    assert said in refused(knowledge, DRAFT, given)


def test_a_title_of_several_lines_cannot_end_the_front_matter(knowledge: KnowledgeBase) -> None:
    given = {"text": "x", "title": "a\n---\nstatus: published", "owner": "b\nstatus: published"}
    answer = call(knowledge, DRAFT, given).structured_content
    page = parse_document(answer["page"], answer["path"], "practices")
    assert (page.meta.status, page.title) == ("draft", "a --- status: published")


def test_every_type_of_a_page_can_be_drafted(knowledge: KnowledgeBase) -> None:
    (tool,) = [
        one for one in ask(knowledge, lambda client: client.list_tools()) if one.name == DRAFT
    ]
    assert tool.input_schema["properties"]["type"]["enum"] == list(TYPES)
    assert len(tool.description) < 1_200
