"""A note as text, for an agent that cannot run a command: the page, its path, what is known.

Nothing is written: whoever asked puts the page into the repository, and people review it.
"""

from collections.abc import Sequence
from datetime import date

from sage.answers import DraftAnswer
from sage.deadline import Deadline
from sage.errors import NotFound
from sage.knowledge import KnowledgeBase
from sage.notes.draft import Note, drafted
from sage.notes.known import known_about
from sage.values import ALL_LAYERS, OWN


def draft_note(
    knowledge: KnowledgeBase,
    *,
    text: str,
    type: str = "discovery",  # noqa: A002 - the argument of the tool
    title: str = "",
    files: Sequence[str] = (),
    tags: Sequence[str] = (),
    source: str = "",
    owner: str = "",
    review_by: str = "",
    deadline: Deadline,
) -> DraftAnswer:
    """The page of a note and where it belongs.

    Raises:
        InvalidInput: no text, or a day that is none.
        NotFound: the caller sees no layer of the repository that a note could go to.
        TimeoutExceeded: the pages could not all be compared in time.
    """
    settings = knowledge.settings
    if OWN not in (one.name for one in settings.served) or not settings.repository_layers:
        raise NotFound("no layer of the repository is served here; a note has no place to go")
    note = Note(text, type, title, tuple(files), tuple(tags), source, owner, review_by)
    draft = drafted(note, settings, date.today())  # noqa: DTZ011 - the day where it is served
    documents = knowledge.documents(ALL_LAYERS, deadline)
    known = known_about(note, documents, deadline, knowledge.nearness(deadline))
    return DraftAnswer(
        id=draft.id,
        path=draft.path,
        topic=draft.topic,
        page=draft.page,
        known=[one.answer for one in known],
        next=f"nothing is written; put `page` at `path` and commit it; once reviewed, "
        f"`sage accept {draft.id}` makes it settled",
    )
