"""The pages that belong to a page, as a resource."""

import pytest
from mcp.shared.exceptions import MCPError

from sage.knowledge import KnowledgeBase
from tests.server.test_mcp_server import ask, knowledge

__all__ = ["knowledge"]


@pytest.mark.parametrize("uri", ["related://core/principles", "related://all/core/Principles.md"])
def test_the_pages_that_belong_to_a_page_are_a_resource(knowledge: KnowledgeBase, uri: str) -> None:
    page = knowledge.settings.knowledge_dir / "practices" / "linked.md"
    page.write_text("# Linked\n\nSee [the principles](../core/principles.md).\n", "utf-8")
    (content,) = ask(knowledge, lambda client: client.read_resource(uri))
    assert content.mime_type == "text/markdown"
    assert "[practices/linked](knowledge://practices/linked) Linked: links to it" in content.text


@pytest.mark.parametrize("uri", ["related://core/nowhere", "related://core", "related://none/x"])
def test_what_belongs_to_no_page_is_not_found(knowledge: KnowledgeBase, uri: str) -> None:
    with pytest.raises(MCPError, match=r"^NOT_FOUND: "):
        ask(knowledge, lambda client: client.read_resource(uri))
