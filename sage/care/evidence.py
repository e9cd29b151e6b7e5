"""Gathers what the work list of a knowledge base is made from."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from sage.care.history import History, code_changes, history_of
from sage.care.usage import UsageSummary
from sage.care.work_list import CareEvidence
from sage.documents.document import Document
from sage.knowledge import KnowledgeBase
from sage.values import OWN

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness


def gather_evidence(
    knowledge: KnowledgeBase,
    usage: UsageSummary | None,
    today: date,
    nearness: "Callable[[], Nearness | None] | None" = None,
    documents: Sequence[Document] | None = None,
) -> CareEvidence:
    """The pages, what git says of those of the repository's own, and what was used.

    A base that is narrowed asks nothing of git, which knows every layer.

    Args:
        nearness: tells what is near in meaning; None to ask the base itself.
        documents: every page in reading order; None to read them.
    """
    settings = knowledge.settings
    if documents is None:
        documents = knowledge.documents()
    own = [document.path for document in documents if document.source == OWN]
    history = History() if settings.is_narrowed else history_of(settings.root, own, today)
    return CareEvidence(
        documents,
        history,
        code_changes(settings.root, history.last) if history.last else {},
        usage,
        lambda query: knowledge.search(query, limit=1)["found"] != "no",
        today,
        nearness or knowledge.nearness,
    )
