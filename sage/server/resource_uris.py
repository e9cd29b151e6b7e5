"""The URI of knowledge as a resource: `knowledge://layer` and `knowledge://layer/topic`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from sage.documents.files import SourceFile
from sage.errors import NotFound
from sage.values import ALL_LAYERS

SCHEME = "knowledge://"
LAYER_TEMPLATE = SCHEME + "{layer}"
TOPIC_TEMPLATE = SCHEME + "{layer}/{topic*}"


class ResourceUri(NamedTuple):
    """A layer, and a topic in it when there is one."""

    layer: str
    topic: str | None = None

    @property
    def uri(self) -> str:
        """The URI as text; a heading stays readable behind its #."""
        path = self.layer if self.topic is None else f"{self.layer}/{self.topic}"
        # A file name may hold what is no character at all; such a page is never listed by name.
        return SCHEME + quote(path, safe="/#", errors="replace")


def parse_uri(uri: str, layers: Iterable[str]) -> ResourceUri:
    """The layer and topic that a URI stands for.

    Raises:
        NotFound: it is not one of ours, or its layer does not exist.
    """
    layer, _, topic = unquote(uri.removeprefix(SCHEME)).partition("/")
    known = {name.casefold(): name for name in (*layers, ALL_LAYERS)}
    if not uri.startswith(SCHEME) or layer.casefold() not in known:
        raise NotFound(
            f"no resource has this URI; URIs are {SCHEME}LAYER and "
            f"{SCHEME}LAYER/TOPIC with the layers {', '.join(known.values())}"
        )
    return ResourceUri(known[layer.casefold()], topic.strip("/") or None)


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
