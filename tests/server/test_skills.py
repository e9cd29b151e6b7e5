"""Pages as skills, listed and fetched by a real client."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.skills import Skill, SkillsClientExtension
from mcp.shared.exceptions import MCPError

from sage.knowledge import KnowledgeBase, open_knowledge
from sage.safe_yaml import load_yaml
from sage.server.mcp_server import create_server
from sage.settings import load_settings
from tests.processes import write_base

DEPLOY = """---
summary: "How a release: reaches 'production'."
---
# Deploying

See [the rules](../core/principles.md).

Press the green button.
"""
LATER = {"draft": "status: draft", "old": "status: superseded\nsuperseded_by: practices/deploy"}


@pytest.fixture
def knowledge(tmp_path: Path) -> KnowledgeBase:
    root = write_base(tmp_path)
    write(root, "practices/deploy", DEPLOY)
    write(root, "core/described", "---\nsummary: Not a practice.\n---\n# Described\n")
    write(root, "practices/plain", "# Plain\n\nNo description of its own.\n")
    for name, status in LATER.items():
        write(root, f"practices/{name}", f"---\nsummary: Not in force.\n{status}\n---\n# {name}\n")
    environment = {"SAGE_CACHE_DIR": str(tmp_path / "cache")}
    return open_knowledge(load_settings({"root": root}, environment))


def write(root: Path, topic: str, text: str) -> None:
    path = root / ".knowledge" / f"{topic}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def ask(knowledge: KnowledgeBase, question: Callable[[Any], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        client: Any = Client(create_server(knowledge), extensions=[SkillsClientExtension()])
        async with client:
            return await question(client)

    return asyncio.run(scenario())


def topics(skills: list[Skill]) -> list[str]:
    return [(skill.frontmatter.metadata or {})["topic"] for skill in skills]


def test_practices_in_force_with_a_description_are_skills(knowledge: KnowledgeBase) -> None:
    skills = ask(knowledge, lambda client: client.list_skills())
    assert topics(skills) == ["practices/deploy", "practices/testing"]
    assert skills[0].frontmatter.name == "sage-practices-deploy"
    assert skills[0].frontmatter.description == "How a release: reaches 'production'."


def test_what_is_fetched_is_what_was_listed(knowledge: KnowledgeBase) -> None:
    async def question(client: Any) -> tuple[Skill, Skill, str]:
        listed = (await client.list_skills())[0]
        (content,) = await client.read_resource(listed.uri)
        return listed, await client.get_skill(listed.uri), content.text

    listed, got, text = ask(knowledge, question)
    assert got == listed
    (resource,) = listed.resources
    assert resource.digest == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert resource.size == len(text.encode())
    _, head, body = text.split("---\n", 2)
    assert load_yaml(head) == listed.frontmatter.root
    assert "Press the green button." in body
    assert "Source: practices/deploy" in body


def test_an_edit_is_in_the_next_list(knowledge: KnowledgeBase) -> None:
    async def question(client: Any) -> tuple[Skill, Skill, str]:
        before = (await client.list_skills())[0]
        write(knowledge.settings.root, "practices/deploy", DEPLOY.replace("green", "red"))
        after = (await client.list_skills())[0]
        (content,) = await client.read_resource(after.uri)
        return before, after, content.text

    before, after, text = ask(knowledge, question)
    assert before.resources != after.resources
    assert "red button" in text


def test_a_long_list_comes_in_pages(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.server.mcp_server.PAGE_SIZE", 2)
    skills = ask(knowledge, lambda client: client.list_skills())
    assert topics(skills) == ["practices/deploy", "practices/testing"]


def test_names_that_would_be_the_same_are_told_apart(knowledge: KnowledgeBase) -> None:
    for name in ("a b", "a-b", "a_b", "-", "日本", "x" * 90):
        write(knowledge.settings.root, f"practices/{name}", DEPLOY.replace("Deploying", name))

    async def question(client: Any) -> tuple[list[Skill], list[Skill]]:
        skills = await client.list_skills()
        return skills, [await client.get_skill(skill.uri) for skill in skills]

    listed, got = ask(knowledge, question)
    assert len({skill.uri for skill in listed}) == len(listed) == 8
    assert got == listed


@pytest.mark.parametrize(
    "uri",
    [
        "skill://sage-practices-plain/SKILL.md",
        "skill://sage-practices-draft/SKILL.md",
        "skill://sage-core-described/SKILL.md",
        "skill://sage-practices-deploy",
        "skill://sage-practices-deploy/OTHER.md",
        "skill://../../etc/passwd/SKILL.md",
        "skill://",
    ],
)
def test_what_is_no_skill_is_not_found(knowledge: KnowledgeBase, uri: str) -> None:
    for question in (
        lambda client: client.get_skill(uri),
        lambda client: client.read_resource(uri),
    ):
        with pytest.raises(MCPError, match=r"^NOT_FOUND: no skill"):
            ask(knowledge, question)


def test_a_cursor_of_somebody_else_is_refused(knowledge: KnowledgeBase) -> None:
    with pytest.raises(MCPError, match="INVALID_INPUT: this cursor"):
        ask(knowledge, lambda client: client.list_skills_mcp(cursor="x"))


def test_without_a_layer_of_practices_every_described_page_is_a_skill(tmp_path: Path) -> None:
    root = write_base(tmp_path)
    (root / ".knowledge" / "sage.yaml").write_text("layers: [core]\n")
    write(root, "core/described", "---\nsummary: What it is for.\n---\n# Described\n")
    knowledge = open_knowledge(load_settings({"root": root}, {}))
    assert topics(ask(knowledge, lambda client: client.list_skills())) == ["core/described"]
