"""Pages as skills: which pages are, under which name, and the text that a host fetches.

Everything comes from the pages that are served, never from a folder of skills: layers, sources and
states hold here as they do everywhere.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sage.deadline import Deadline
from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.source_roots import files_of
from sage.errors import NotFound
from sage.export.hosts import is_skill
from sage.export.selection import ExportSelection
from sage.export.texts import names_of, skill_name
from sage.knowledge import KnowledgeBase
from sage.reading import load_in_time
from sage.sanitize import clean
from sage.server.resource_uris import SKILL
from sage.settings import Settings

_FILE = "/SKILL.md"
_MAX_DESCRIPTION = 1_000


@dataclass(frozen=True, slots=True)
class PageSkill:
    """A page as a skill."""

    name: str
    description: str
    metadata: dict[str, str]
    """Where it comes from: its topic, and its source where there are several."""
    body: str

    @property
    def uri(self) -> str:
        """The address of its text."""
        return f"{SKILL}{self.name}{_FILE}"

    @property
    def front_matter(self) -> dict[str, Any]:
        """What stands above its text."""
        return {"name": self.name, "description": self.description, "metadata": self.metadata}

    @property
    def text(self) -> str:
        """What a host fetches. JSON is YAML, and needs no escaping of ours."""
        head = "\n".join(
            f"{key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in self.front_matter.items()
        )
        source = f"Source: {self.metadata['topic']}; sage_get_knowledge reads what it links to."
        return f"---\n{head}\n---\n\n{self.body}\n\n{source}\n"

    @property
    def size(self) -> int:
        """The bytes of its text."""
        return len(self.text.encode())

    @property
    def digest(self) -> str:
        """What a host compares the text with that it fetched."""
        return f"sha256:{hashlib.sha256(self.text.encode()).hexdigest()}"


def list_skills(
    knowledge: KnowledgeBase, start: int, size: int, deadline: Deadline
) -> tuple[list[PageSkill], bool]:
    """The skills among so many pages from a position on, and whether more pages follow.

    Raises:
        TimeoutExceeded: the pages could not be read in time.
    """
    files = _files(knowledge, deadline)
    names = names_of(source.topic for source in files)
    part = files[start : start + size]
    found = [
        _skill(knowledge, names, one) for one in load_in_time(knowledge.library, part, deadline)
    ]
    return [one for one in found if one is not None], start + size < len(files)


def find_skill(knowledge: KnowledgeBase, uri: str, deadline: Deadline) -> PageSkill:
    """The skill at an address.

    Raises:
        NotFound: there is none.
        TimeoutExceeded: the page could not be read in time.
    """
    files = _files(knowledge, deadline)
    names = names_of(source.topic for source in files)
    wanted = uri.removeprefix(SKILL).removesuffix(_FILE)
    named = [one for one in files if skill_name(names[one.topic]) == wanted]
    for document in load_in_time(knowledge.library, named, deadline):
        skill = _skill(knowledge, names, document)
        if skill is not None and skill.uri == uri:
            return skill
    raise NotFound("no skill has this URI; skills/list lists them")


def _files(knowledge: KnowledgeBase, deadline: Deadline) -> Sequence[SourceFile]:
    listings = knowledge.library.refresh(knowledge.settings.layers, deadline)
    return files_of(listings)


def _skill(knowledge: KnowledgeBase, names: dict[str, str], document: Document) -> PageSkill | None:
    if not ExportSelection().keeps(document) or not is_skill(document, _layers(knowledge.settings)):
        return None
    description = clean(" ".join(document.summary.split()))[:_MAX_DESCRIPTION].strip()
    if not description or document.topic not in names:
        return None
    metadata = {"topic": clean(document.topic)}
    if knowledge.has_sources:
        metadata["source"] = clean(document.source)
    body = clean(document.body).strip("\n")
    return PageSkill(skill_name(names[document.topic]), description, metadata, body)


def _layers(settings: Settings) -> set[str]:
    """Every layer there is, also those that a caller does not see: what is a skill for one
    caller is one for all."""
    theirs = (layer for source in settings.further for layer in source.layers)
    return {*settings.repository.layers, *theirs}
