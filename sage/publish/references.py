"""What names in a source's pages and settings mean, as it is called beside other sources.

Whoever writes a page knows the pages of one repository. Beside others its topics have the name of
the source in them, and what they were called at home may be a page of another source: so a name
is looked up among the pages of its own source, and published as the topic that replicas know.
"""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.front_matter import FrontMatter, split_front_matter
from sage.documents.library import Library, decoded
from sage.documents.topics import (
    documents_titled,
    files_asked,
    topic_parts,
    ways_to_read,
)
from sage.errors import ConfigError
from sage.notes.front_matter_edit import set_keys
from sage.settings_schema import Tree
from sage.values import OWN

_SUCCESSOR = "superseded_by"
_MARK = "\ufeff"


def address_beside_others(topic: str, name: str) -> str:
    """The topic of a page beside those of other sources."""
    if name == OWN:
        return topic
    layer, _, rest = topic.partition("/")
    return f"{layer}/{name}/{rest}"


class SourceReferences:
    """The names of pages that one source uses."""

    def __init__(self, library: Library, files: Sequence[SourceFile], name: str) -> None:
        """Args:
        files: its pages as the repository alone knows them.
        name: that of the source.
        """
        self._library = library
        self._files = files
        self._name = name
        self._by_address = {tuple(topic_parts(one.topic)): one for one in reversed(files)}

    def in_page(self, source: SourceFile, data: bytes) -> bytes:
        """A page that names its successor as it is called beside other sources.

        Raises:
            ConfigError: it has one, and its front matter cannot be edited.
        """
        text = "" if self._name == OWN else decoded(data)
        if _SUCCESSOR not in text:
            return data
        meta, body = _split(text, source.path)
        named = meta.superseded_by
        public = self.topic(named, source) if named else named
        if public == named:
            return data
        edited = set_keys(text.encode(), {_SUCCESSOR: public})
        wanted = replace(meta, superseded_by=public), body
        if _split(decoded(edited), source.path) != wanted:
            raise ConfigError("front matter cannot be edited without touching more")
        return edited

    def in_recipes(self, recipes: Tree) -> Tree:
        """Recipes that name their pages as they are called beside other sources."""
        if self._name == OWN:
            return recipes
        return {name: self._in_recipe(changes) for name, changes in recipes.items()}

    def topic(self, named: str, near: SourceFile | None = None) -> str:
        """The topic beside other sources of what a name means; the name where it means no page.

        Args:
            near: the page that says it, which names others by a path from itself too.
        """
        page, hash_mark, heading = named.partition("#")
        found = self._page(page.strip(), near) if self._name != OWN else None
        if found is None:
            return named
        return address_beside_others(found.topic, self._name) + hash_mark + heading

    def _in_recipe(self, changes: object) -> object:
        if not isinstance(changes, Mapping) or "always" not in changes:
            return changes
        given: Any = changes["always"]
        named = [given] if isinstance(given, str) else given
        return {**changes, "always": [self.topic(one.strip()) for one in named]}

    def _page(self, name: str, near: SourceFile | None) -> SourceFile | None:
        """The page that a name means: by its path, as a page knows others, or by its title."""
        if not name or "://" in name:
            return None
        ways = [name]
        if near is not None:
            ways.insert(0, posixpath.normpath(posixpath.join(posixpath.dirname(near.topic), name)))
        exact = (self._by_address.get(tuple(topic_parts(way))) for way in ways)
        asked = (files_asked(self._files, one) for way in ways for one in ways_to_read(way))
        for found in exact:
            if found not in (None, near):
                return found
        for pages in asked:
            if pages and pages[0] != near:
                return pages[0]
        return self._titled(name, near)

    def _titled(self, name: str, near: SourceFile | None) -> SourceFile | None:
        for source in self._library.titles.find(self._files, name, Deadline()).files:
            document = self._library.load(source, Deadline())
            if source != near and document is not None and documents_titled([document], name):
                return source
        return None


def _split(text: str, path: str) -> tuple[FrontMatter, str]:
    """What a page says of itself, and all else of it."""
    text = text.lstrip(_MARK)
    split = split_front_matter(text, path)
    return split.meta, text[split.body_start :]
