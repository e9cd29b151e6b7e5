"""The address of knowledge as a resource: `knowledge://layer` and `knowledge://layer/topic`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from sage.bounds import ALL_LAYERS
from sage.documents import topic_of
from sage.errors import NotFound
from sage.files import SourceFile

SCHEME = "knowledge://"
LAYER_TEMPLATE = SCHEME + "{layer}"
TOPIC_TEMPLATE = SCHEME + "{layer}/{topic*}"


class Address(NamedTuple):
    """A layer, and a topic in it when there is one."""

    layer: str
    topic: str | None = None

    @property
    def uri(self) -> str:
        """The address as a URI; a heading stays readable behind its #."""
        path = self.layer if self.topic is None else f"{self.layer}/{self.topic}"
        # A file name may hold what is no character at all; such a page is never listed by name.
        return SCHEME + quote(path, safe="/#", errors="replace")


def parse_address(uri: str, layers: Iterable[str]) -> Address:
    """The address that a URI stands for.

    Raises:
        NotFound: it is not one of ours, or its layer does not exist.
    """
    layer, _, topic = unquote(uri.removeprefix(SCHEME)).partition("/")
    known = {name.casefold(): name for name in (*layers, ALL_LAYERS)}
    if not uri.startswith(SCHEME) or layer.casefold() not in known:
        raise NotFound(
            f"no resource has this address; addresses are {SCHEME}LAYER and "
            f"{SCHEME}LAYER/TOPIC with the layers {', '.join(known.values())}"
        )
    return Address(known[layer.casefold()], topic.strip("/") or None)


def address_of(topic: str) -> Address:
    """The address of a document from its topic, which begins with its layer."""
    layer, _, rest = topic.partition("/")
    return Address(layer, rest)


def changed_addresses(before: Iterable[SourceFile], after: Iterable[SourceFile]) -> set[str]:
    """The URIs whose content differs between two listings: documents, their layers, and all."""
    changed = set(before).symmetric_difference(after)
    return {uri for source in changed for uri in _affected(source)}


def _affected(source: SourceFile) -> Iterator[str]:
    yield Address(ALL_LAYERS).uri
    yield Address(source.layer).uri
    yield address_of(topic_of(source.path)).uri
