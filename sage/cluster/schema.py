"""What lies in the cluster under which name: one strict mapping, versioned, and names of indexes.

A base is an alias over one index for each source; an index is one generation and is never changed
once the alias knows it. Its name holds the version of the mapping and the hash of its content.
"""

import hashlib
import re
import zlib
from functools import lru_cache
from typing import Any, NamedTuple

from sage.errors import WrongOption
from sage.terms.analysis import stem_of
from sage.values import ALL_LAYERS, OWN

MAPPING = 6
"""To be raised whenever the mapping, or what is written into it, changes."""
BUCKETS = 64
"""The places of words lie in so many fields, by stem: a search loads those of its own words."""
CHUNKS = 64
"""The words of a layer lie in so many documents, by stem."""
PAGE, WORDS, GONE = "page", "words", "gone"
"""The kinds of documents; GONE names a page that an earlier generation had."""
_MAX_FORMS = 100_000
_AVERAGE_WORDS, _LENGTH_SHARE = 250.0, 0.75
TITLE, FIELDS, TEXT = "title_stems", "field_stems", "text_stems"
HEADINGS, ANCHORS = "heading_lines", "anchors"
"""Of a page, so that one that has a heading is found without any text."""
VECTORS = "vectors"
"""Of what a page says, where it was published with the extra `semantic`."""

_STEMS = {"type": "rank_features"}
"""What a stem is worth on a page comes from the page alone: a score by the counts of the whole
index would tell of pages that may not be seen."""
_KEPT = {"type": "text", "index": False, "store": True}
_COLUMN = {"type": "binary", "doc_values": True}
"""Read for many pages at once: as stored fields they would unpack all else of each page too, and
the records of the ten best pages took twice as long."""
_WORD = {"type": "keyword"}
BUCKET_FIELDS = tuple(f"places_{number}" for number in range(BUCKETS))


def index_body(meta: dict[str, Any], shards: int) -> dict[str, Any]:
    """What a new index is created with."""
    kept, columns = ("text", "words"), ("record", HEADINGS, VECTORS, *BUCKET_FIELDS)
    return {
        "settings": {
            "number_of_shards": shards,
            "auto_expand_replicas": "0-1",
            "refresh_interval": "-1",
        },
        "mappings": {
            "dynamic": "strict",
            "_meta": meta,
            "_source": {"excludes": [TITLE, FIELDS, TEXT, ANCHORS, *kept, *columns]},
            "properties": {
                **dict.fromkeys(("kind", "path", "layer", "type", "status", "hash"), _WORD),
                **dict.fromkeys(("tags", "languages", "source"), _WORD),
                ANCHORS: {"type": "keyword", "doc_values": False},
                **{name: {"type": "long"} for name in ("generation", "sections", "chunk")},
                "entry": {"type": "object", "enabled": False},
                **dict.fromkeys((TITLE, FIELDS, TEXT), _STEMS),
                **dict.fromkeys(kept, _KEPT),
                **dict.fromkeys(columns, _COLUMN),
            },
        },
    }


_NAME = re.compile(
    r"(?P<base>[^-]+)-v(?P<mapping>[0-9]{1,9})-(?P<source>.+)-(?P<content>[^-]+)", re.DOTALL
)
_SOURCE = re.compile(r"[a-z0-9_][a-z0-9_-]{0,39}")


class Name(NamedTuple):
    """The parts of the name of an index."""

    base: str
    source: str
    content: str
    mapping: int = MAPPING

    def __str__(self) -> str:
        return f"{self.base}-v{self.mapping}-{self.source}-{self.content}"


def pattern(base: str, source: str = "*") -> str:
    """Matches the indexes of a base, or of one of its sources, and of some others."""
    return f"{base}-v*-{source}-*"


def parse_name(name: str) -> Name | None:
    """The parts of a name; None when it is not one of ours."""
    # Only a source may hold a hyphen: neither a base nor a hash does.
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Name(found["base"], found["source"], found["content"], int(found["mapping"]))


def checked_source(name: str) -> str:
    """A name for a source.

    Raises:
        WrongOption: it cannot be part of the name of an index.
    """
    if not _SOURCE.fullmatch(name) or name == ALL_LAYERS:
        raise WrongOption(
            f"--source {name!r}: use at most 40 lower-case letters, digits, underscores and "
            f"hyphens, no hyphen first, and not {ALL_LAYERS}; without it the name is {OWN}"
        )
    return name


def length_norm(words: float) -> float:
    """How much longer than an average page a page of so many words counts."""
    return 1 - _LENGTH_SHARE + _LENGTH_SHARE * words / _AVERAGE_WORDS


@lru_cache(maxsize=_MAX_FORMS)
def feature_of(stem: str) -> str:
    """A stem as the cluster takes it for a name."""
    return stem.replace(".", "|")


def page_id(path: str) -> str:
    """The id of a page's document."""
    return "page-" + hashlib.blake2b(path.encode("utf-8"), digest_size=16).hexdigest()


def words_id(layer: str, chunk: int) -> str:
    """The id of a document of words."""
    return f"words-{hashlib.blake2b(layer.encode('utf-8'), digest_size=8).hexdigest()}-{chunk}"


@lru_cache(maxsize=_MAX_FORMS)
def bucket_of(form: str) -> str:
    """The field that holds where a form occurs."""
    return BUCKET_FIELDS[zlib.crc32(stem_of(form).encode("utf-8")) % BUCKETS]


def chunk_of(stem: str) -> int:
    """The document of words that a stem belongs to."""
    return zlib.crc32(stem.encode("utf-8")) // BUCKETS % CHUNKS
