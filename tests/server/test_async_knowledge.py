"""What a request costs the knowledge base; its answers are tested through the server."""

import asyncio
from typing import Any

from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.library import Library, Loaded
from sage.server.async_knowledge import AsyncKnowledge
from tests.conftest import Base

PAGES = {f"core/page-{number}.md": f"# Page {number}\n\nText.\n" for number in range(6)}


class Noting(Library):
    """A library that notes which files it is asked for."""

    asked: list[str]

    def look_up(self, source: SourceFile, deadline: Deadline) -> Loaded:
        self.asked.append(source.path.rpartition("/")[2])
        return super().look_up(source, deadline)


def noting_desk(base: Base, files: dict[str, str]) -> tuple[AsyncKnowledge, Noting]:
    knowledge = base.open(files)
    library = Noting(knowledge.settings, base.clocks)
    library.asked = []
    knowledge.library = library
    return AsyncKnowledge(knowledge), library


def asked(async_knowledge: AsyncKnowledge, question: Any) -> Any:
    try:
        return asyncio.run(question)
    finally:
        async_knowledge.close()


def test_a_page_of_documents_loads_those_on_it_and_no_others(base: Base) -> None:
    async_knowledge, library = noting_desk(base, PAGES)
    documents, more = asked(async_knowledge, async_knowledge.page(2, 3))
    assert [document.title for document in documents] == ["Page 2", "Page 3", "Page 4"]
    assert more
    assert library.asked == ["page-2.md", "page-3.md", "page-4.md"]


def test_the_last_page_says_so_and_is_in_reading_order(base: Base) -> None:
    async_knowledge, _ = noting_desk(
        base, {**PAGES, "core/page-5.md": "---\norder: 1\n---\n# First\n"}
    )
    documents, more = asked(async_knowledge, async_knowledge.page(4, 3))
    assert [document.title for document in documents] == ["First", "Page 4"]
    assert not more
