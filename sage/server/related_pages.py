"""The pages that belong to a page, as a text with the reason for each."""

from sage.deadline import Deadline
from sage.knowledge import KnowledgeBase
from sage.notes.changes import page_of
from sage.notes.related import Related, Relations
from sage.server.resource_uris import uri_of
from sage.values import ALL_LAYERS


def related_text(knowledge: KnowledgeBase, topic: str, deadline: Deadline) -> str:
    """What belongs to a page, the nearest first.

    Raises:
        NotFound: there is no such page.
        TimeoutExceeded: the pages could not all be compared in time.
    """
    documents = knowledge.documents(ALL_LAYERS, deadline)
    page = page_of(documents, topic)
    relations = Relations(documents, deadline=deadline)
    found = relations.related(page, nearness=knowledge.nearness(deadline))
    lines = [_line(one) for one in found] or ["No page belongs to it."]
    return "\n".join([f"# Related to {page.topic}", "", *lines, ""])


def _line(one: Related) -> str:
    return f"- [{one.topic}]({uri_of(one.topic).uri}) {one.title}: {'; '.join(one.reasons)}"
