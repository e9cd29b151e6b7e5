"""From what somebody calls a topic to the documents and sections they mean.

Case, suffix, hyphens, underscores and spaces do not matter; a path, a bare name, a title, an
alias, a folder and `name#heading` all work. Several documents of one name are all meant.
"""

import difflib
import functools
import re
from collections.abc import Iterable, Sequence

from sage.documents import Document, Section, section_topic, slug, topic_of
from sage.files import SourceFile
from sage.forms import normal_form
from sage.places import KNOWLEDGE_DIR

_SUFFIX = re.compile(r"\.(?:md|markdown)$")
_NUMBER = re.compile(r"^\d+(?:\.\d+)*[-.]+(?=.)")


def normalised(text: str) -> str:
    """A name without what people spell differently."""
    folded = normal_form("NFKC", text).casefold().strip()
    return _SUFFIX.sub("", re.sub(r"[\s_-]+", "-", folded).strip("-"))


def topic_parts(topic: str) -> list[str]:
    """The normalised folders and name of a topic, without the knowledge folder."""
    parts = [normalised(part) for part in topic.replace("\\", "/").split("/")]
    parts = [part for part in parts if part and part != "."]
    return parts[1:] if parts[:1] == [KNOWLEDGE_DIR] else parts


def split_heading(topic: str) -> tuple[str, str]:
    """A topic's document and heading; the heading is empty when none is named."""
    name, _, heading = topic.partition("#")
    return name.strip(), heading.strip()


def spellings(topic: str) -> list[tuple[str, str]]:
    """What a topic may mean as a document and a heading, likeliest first: both may hold a `#`."""
    splits = (topic.partition("#"), topic.rpartition("#"))
    named = [(name.strip(), heading.strip()) for name, _, heading in splits]
    return list(dict.fromkeys([(topic, ""), *(pair for pair in named if all(pair))]))


def files_named(files: Sequence[SourceFile], topic: str) -> list[SourceFile]:
    """The files that a topic names by path, bare name or folder, best way first."""
    wanted = tuple(topic_parts(topic))
    if not wanted:
        return []
    addressed = [(source, _address(source.path)) for source in files]
    folder_only = topic.rstrip().endswith("/")
    exact = [source for source, parts in addressed if parts == wanted]
    if exact and not folder_only:
        return exact
    named = [source for source, parts in addressed if _ends(parts, wanted) and not folder_only]
    if named and any(parts[1:] == wanted for _, parts in addressed):
        return named
    below = [source for source, parts in addressed if _starts(parts, wanted)]
    inner = [source for source, parts in addressed if _holds(parts[:-1], wanted)]
    return list(dict.fromkeys(named + below)) or inner


def documents_titled(documents: Iterable[Document], topic: str) -> list[Document]:
    """The documents that a topic names by title or alias."""
    wanted = normalised(topic)
    return [
        document
        for document in documents
        if wanted in map(normalised, (document.title, *document.meta.aliases))
    ]


def sections_named(document: Document, heading: str) -> list[int]:
    """The positions of the sections that a heading names, best way first."""
    written = slug(heading)
    wanted = slug(_SUFFIX.sub("", heading)).strip("-")
    if not wanted:
        return []
    anchors = [(position, section.anchor) for position, section in enumerate(document.sections)]
    ways = (
        lambda anchor: anchor == written,
        lambda anchor: anchor == wanted,
        lambda anchor: _NUMBER.sub("", anchor) == _NUMBER.sub("", wanted),
        lambda anchor: normalised(anchor) == normalised(wanted),
        lambda anchor: f"-{wanted}-" in f"-{anchor}-",
    )
    for matches in ways:
        found = [position for position, anchor in anchors if anchor and matches(anchor)]
        if found:
            return found
    return []


def nearest_topics(documents: Sequence[Document], topic: str, most: int = 5) -> list[str]:
    """The topics whose name, title or alias is closest to an unknown one."""
    wanted = normalised(topic_parts(topic)[-1]) if topic_parts(topic) else ""
    names: dict[str, list[str]] = {}
    for document in documents:
        stem = topic_parts(document.topic)[-1]
        for name in (stem, normalised(document.title), *map(normalised, document.meta.aliases)):
            names.setdefault(name, []).append(document.topic)
    close = difflib.get_close_matches(wanted, names, n=most, cutoff=0.5)
    close += [name for name in names if wanted and wanted in name]
    found = dict.fromkeys(topic for name in close for topic in names[name])
    return list(found)[:most]


def nearest_headings(document: Document, heading: str, most: int = 5) -> list[str]:
    """The section topics of a document closest to an unknown heading, else its first ones."""
    headed: list[Section] = [section for section in document.sections if section.level > 1]
    anchors = {section.anchor: section_topic(document, section) for section in headed}
    close = difflib.get_close_matches(slug(heading), anchors, n=most, cutoff=0.4)
    return [anchors[anchor] for anchor in close or list(anchors)[:most]]


@functools.lru_cache(maxsize=100_000)
def _address(path: str) -> tuple[str, ...]:
    """The parts of a file's topic; kept, for every topic is compared with every file."""
    return tuple(topic_parts(topic_of(path)))


def _starts(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether a file lies below a folder, named with its layer or without."""
    folders = parts[:-1]
    return folders[: len(wanted)] == wanted or folders[1 : 1 + len(wanted)] == wanted


def _ends(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    *folders, name = parts[-len(wanted) :]
    return len(parts) >= len(wanted) and (
        wanted in ((*folders, name), (*folders, _NUMBER.sub("", name)))
    )


def _holds(folders: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(folders[at : at + size] == wanted for at in range(len(folders) - size + 1))
