"""The URIs of resources: `knowledge://layer`, `knowledge://layer/topic`, `related://layer/topic`.

Those of skills, `skill://name/SKILL.md`, are made from pages by `skills`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from sage.documents.files import SourceFile
from sage.errors import NotFound
from sage.values import ALL_LAYERS

SCHEME = "knowledge://"
LAYER_TEMPLATE = SCHEME + "{layer}"
TOPIC_TEMPLATE = SCHEME + "{layer}/{topic*}"
SKILL = "skill://"
RELATED = "related://"
RELATED_TEMPLATE = RELATED + "{layer}/{topic*}"


class ResourceUri(NamedTuple):
    """A layer, and a topic in it when there is one."""

    layer: str
    topic: str | None = None
    is_related: bool = False
    """Whether it stands for the pages that belong to the topic, not for the topic itself."""

    @property
    def uri(self) -> str:
        """The URI as text; a heading stays readable behind its #."""
        path = self.layer if self.topic is None else f"{self.layer}/{self.topic}"
        # A file name may hold what is no character at all; such a page is never listed by name.
        scheme = RELATED if self.is_related else SCHEME
        return scheme + quote(path, safe="/#", errors="replace")


def parse_uri(uri: str, layers: Iterable[str]) -> ResourceUri:
    """The layer and topic that a URI stands for.

    Raises:
        NotFound: it is not one of ours, or its layer does not exist.
    """
    is_related = uri.startswith(RELATED)
    path = uri.removeprefix(RELATED if is_related else SCHEME)
    layer, _, topic = unquote(path).partition("/")
    topic = topic.strip("/")
    known = {name.casefold(): name for name in (*layers, ALL_LAYERS)}
    is_ours = path != uri and layer.casefold() in known and (topic or not is_related)
    if not is_ours:
        raise NotFound(
            f"no resource has this URI; URIs are {SCHEME}LAYER, {SCHEME}LAYER/TOPIC and "
            f"{RELATED}LAYER/TOPIC with the layers {', '.join(known.values())}"
        )
    return ResourceUri(known[layer.casefold()], topic or None, is_related)


def uri_of(topic: str) -> ResourceUri:
    """The URI of a document from its topic, which begins with its layer."""
    layer, _, rest = topic.partition("/")
    return ResourceUri(layer, rest)


def changed_uris(before: Iterable[SourceFile], after: Iterable[SourceFile]) -> set[str]:
    """The URIs whose content differs between two listings: documents, their layers, and all."""
    changed = set(before).symmetric_difference(after)
    return {uri for source in changed for uri in _affected(source)}


def _affected(source: SourceFile) -> Iterator[str]:
    yield ResourceUri(ALL_LAYERS).uri
    yield ResourceUri(source.layer).uri
    yield uri_of(source.topic).uri
