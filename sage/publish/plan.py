"""What has to be done to bring a cluster to the pages of a repository, and what is told of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sage.cluster.generations import Meta
from sage.cluster.schema import Name
from sage.documents.problems import Problem
from sage.publish.repository_pages import RepositoryPages

_MOST_CHANGED = 0.5
"""When more than this share changed, everything is written anew."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a publish did, or would do."""

    source: str
    index: str
    documents: int
    sections: int
    added: int
    changed: int
    removed: int
    moved: bool
    """Whether another generation is served now."""
    settings_changed: bool
    """Whether what replicas need of the settings is another thing than before."""
    problems: Sequence[Problem]
    """What is not published as it is written."""
    pruned: tuple[str, ...] = ()
    """Generations that were removed."""


class ServedPage(NamedTuple):
    """A page that is served."""

    hashed: str
    sections: int


def is_whole(meta: Meta, known: Mapping[str, ServedPage]) -> bool:
    """Whether a generation holds as many pages and sections as it says."""
    sections = sum(page.sections for page in known.values())
    return (len(known), sections) == meta.counts


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What has to be done to bring the cluster to some pages."""

    name: Name
    pages: RepositoryPages
    held: Mapping[str, Meta]
    """Every generation of this source that lies in the cluster."""
    served: tuple[str, ...]
    """Those that the alias knows."""
    before: tuple[str, Meta] | None
    """What is served, where it can be read."""
    known: Mapping[str, ServedPage]
    changed: list[str]
    """New and changed paths."""
    removed: list[str]

    @property
    def is_needed(self) -> bool:
        if self.before is None:
            return True
        index, meta = self.before
        is_other = self.served != (index,) or self.pages.content != meta.content
        return is_other or bool(self.changed or self.removed)

    @property
    def copies(self) -> bool:
        """Whether the generation before is copied and changed, in place of writing all."""
        moved = len(self.changed) + len(self.removed)
        return self.before is not None and moved <= _MOST_CHANGED * len(self.known)

    def told(self, sections: int, *, moved: bool) -> Published:
        added = sum(path not in self.known for path in self.changed)
        served = "" if self.is_needed or self.before is None else self.before[0]
        before = self.pages.settings if self.before is None else self.before[1].settings
        return Published(
            source=self.name.source,
            index=served or str(self.name),
            documents=len(self.pages.by_path),
            sections=sections,
            added=added,
            changed=len(self.changed) - added,
            removed=len(self.removed),
            moved=moved,
            settings_changed=json.dumps(before) != json.dumps(self.pages.settings),
            problems=self.pages.problems,
        )
