"""From what somebody calls a topic to the documents and sections they mean.

Case, suffix, hyphens, underscores and spaces do not matter; a path, a bare name, a title, an
alias, a folder, `name#heading` and a link copied from a page all work. Several documents of one
name are all meant. From a page that was replaced it is one step more, to the page in force.
"""

import functools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

from sage.documents.document import INDEX_NAMES, Document, Section, section_topic, slug
from sage.documents.files import SourceFile
from sage.documents.nearest import Named, nearest_named, nearest_scored
from sage.paths import KNOWLEDGE_DIR
from sage.sanitize import normal_form

Parts = tuple[str, ...]


class HasNames(Protocol):
    """Something with the names of a document: the document, or what an index keeps of it."""

    @property
    def path(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...
    @property
    def superseded_by(self) -> str: ...


N = TypeVar("N", bound=HasNames)

_SUFFIX = re.compile(r"\.(?:md|markdown|mdx|mdc|html?)$")
_NUMBER = re.compile(r"^\d+(?:\.\d+)*[-.]+(?=.)")
_WIKI = re.compile(r"!?\[\[([^\[\]|]{1,500})(?:\|[^\[\]]{0,500})?\]\]")
_MARKDOWN = re.compile(
    r"!?\[[^\[\]]{0,500}\]\(\s{0,10}<?([^\s()<>]{1,500})>?(?:\s{1,10}[\"'][^\"']{0,300}[\"'])?\s{0,10}\)"
)
_SHORTCODE = re.compile(
    r"\{\{[<%]\s{0,10}(?:rel)?ref\s{1,10}(?:path=)?[\"']?([^\s\"'<>%]{1,500})[\"']?\s{0,10}[>%]\}\}"
)
_SITE = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^/\s]{0,300}", re.IGNORECASE)
_LINES = re.compile(r"(?:#L|:)(\d{1,7})(?:(?:C\d{1,5})?(?:-L?\d{1,7}(?:C\d{1,5})?)?)\Z")
_ID = re.compile(r"\{#([^{}\s]{1,200})\}\Z")
_MOST_NEAREST, _MOST_HEADINGS = 5, 3
_LEAST_HEADING = 0.7
"""There are many headings: one must be closer than a page to be named."""
_LEADS_AWAY = ("/", "./", "../", ".\\", "..\\")


class AskedTopic(NamedTuple):
    """One way to understand a topic."""

    name: str
    heading: str = ""
    line: int = 0
    is_link: bool = False
    is_exact: bool = False


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
    return name.strip(), heading_id(heading)


def ways_to_read(topic: str) -> list[AskedTopic]:
    """What a topic may mean, likeliest first: names and headings may both hold a `#`."""
    splits = (topic.partition("#"), topic.rpartition("#"))
    named = [(name.strip(), heading.strip()) for name, _, heading in splits]
    exact = AskedTopic(topic, is_exact=True)
    plain = [
        AskedTopic(topic),
        *(AskedTopic(name, heading) for name, heading in named if name and heading),
    ]
    link = pasted_link(topic)
    if link is None or not (link.page or link.heading):
        return list(dict.fromkeys([exact, *plain]))
    pasted = [AskedTopic(link.page, link.heading, link.line, is_link=True)]
    pasted += [AskedTopic(link.page, link.heading, link.line)]
    return list(dict.fromkeys([exact, *pasted, *plain]))


def files_asked(files: Sequence[SourceFile], asked: AskedTopic) -> list[SourceFile]:
    """The files that a topic names by path, bare name, folder or link, best way first."""
    if asked.is_exact:  # a name may look like a link, or like another file's
        return [source for source in files if asked.name in (source.topic, source.path)]
    if asked.is_link:
        return _files_linked(files, asked.name)
    return files_named(files, asked.name)


def files_named(files: Sequence[SourceFile], topic: str) -> list[SourceFile]:
    """The files that a topic names by path, bare name or folder, best way first."""
    wanted = tuple(topic_parts(topic))
    if not wanted:
        return []
    addressed = [(source, _address(source.topic)) for source in files]
    by_path = [source for source in files if source.address and _address(source.path) == wanted]
    if by_path:  # the place of a page that is mapped into its layer
        return by_path
    pages = [] if topic.rstrip().endswith("/") else _pages_named(addressed, wanted)
    if any(parts in (wanted, (parts[0], *wanted)) for _, parts in pages):
        return [source for source, _ in pages]
    below = [pair for pair in addressed if _lies_below(pair[1][:-1], wanted)]
    if not pages and not below:
        below = [pair for pair in addressed if _holds(pair[1][:-1], wanted)]
    return list(dict.fromkeys(source for source, _ in (*pages, *below)))


def documents_titled(documents: Iterable[N], topic: str) -> list[N]:
    """The documents that a topic names by title or alias."""
    wanted = normalised(topic)
    return [
        document
        for document in documents
        if wanted in map(normalised, (document.title, *document.aliases))
    ]


def sections_asked(document: Document, asked: AskedTopic) -> list[int]:
    """The positions of the sections that a topic names by heading or line."""
    if asked.line:
        return [
            position
            for position, section in enumerate(document.sections)
            if section.start_line <= asked.line <= section.end_line
        ][:1]
    return sections_named(document, asked.heading)


def sections_named(document: Document, heading: str) -> list[int]:
    """The positions of the sections that a heading names, best way first."""
    heading = heading_id(heading)
    written = slug(heading)
    wanted = slug(_SUFFIX.sub("", heading)).strip("-")
    if not wanted:
        return []
    named = [(position, one) for position, one in enumerate(document.sections) if one.anchor]
    ways = (
        lambda section: section.anchor == heading,
        lambda section: section.anchor == written,
        lambda section: wanted in (section.anchor, slug(section.heading)),
        lambda section: _unnumbered(section.anchor) == _unnumbered(wanted),
        lambda section: normalised(section.anchor) == normalised(wanted),
        lambda section: f"-{wanted}-" in f"-{section.anchor}-",
    )
    for matches in ways:
        found = [position for position, section in named if matches(section)]
        if found:
            return found
    return []


def nearest_topics(
    files: Iterable[SourceFile], titles: Iterable[Named], topic: str, headings: Iterable[Named] = ()
) -> list[str]:
    """The topics whose name, title or alias is closest to an unknown one.

    Args:
        headings: of pages; those that are closer than every page come behind the nearest ones.
    """
    link = pasted_link(topic)
    parts = topic_parts(split_heading(topic)[0] if link is None else link.page)
    wanted = anchor_asked(topic) or (parts[-1] if parts else "")
    topics = [source.topic for source in files]
    names = [Named(_address(topic)[-1], topic) for topic in topics]
    pages = nearest_scored([*names, *titles], wanted)
    least = max(_LEAST_HEADING, pages[0][1] if pages else 0.0)
    closer = [near for near, score in nearest_scored(headings, wanted) if score > least]
    closer = closer[:_MOST_HEADINGS]
    found = [near for near, _ in pages[: _MOST_NEAREST - len(closer)]]
    if len(parts) > 1:
        # Of two as close, the one in the folder that was named.
        folders = set(parts[:-1])
        found.sort(key=lambda near: folders.isdisjoint(_address(near)[:-1]))
    return [*found, *closer]


def nearest_headings(document: Document, heading: str, most: int = 5) -> list[str]:
    """The section topics of a document closest to an unknown heading, else its first ones."""
    headed: list[Section] = [section for section in document.sections if section.level > 1]
    topics = [section_topic(document, section) for section in headed]
    names = [
        Named(name, topic)
        for section, topic in zip(headed, topics, strict=True)
        for name in {section.heading, section.anchor.replace("-", " ")}
    ]
    return nearest_named(names, heading_id(heading).replace("-", " "), most) or topics[:most]


def named_document(
    documents: Sequence[N],
    addresses: Mapping[tuple[str, ...], N],
    name: str,
    near: N | None = None,
) -> N | None:
    """The document that a topic, a path or a title means; a link from `near` may be relative."""
    topic, _ = split_heading(name)
    ways = [tuple(topic_parts(topic))]
    if near is not None:
        joined = posixpath.join(posixpath.dirname(near.path), topic)
        ways.insert(0, tuple(topic_parts(posixpath.normpath(joined))))
    found = next((addresses[way] for way in ways if way in addresses), None)
    if found is None and ways[-1]:
        ending = [one for parts, one in addresses.items() if parts[-len(ways[-1]) :] == ways[-1]]
        found = next(iter(ending or documents_titled(documents, topic)), None)
    return found


def addresses_of(documents: Iterable[N]) -> Mapping[tuple[str, ...], N]:
    """Documents by the parts of their topics."""
    return {tuple(topic_parts(document.topic)): document for document in documents}


def successors(documents: Sequence[N]) -> Mapping[str, N]:
    """For the path of every page that another replaces, the page that is in force."""
    replaced = [document for document in documents if document.superseded_by]
    if not replaced:
        return {}
    addresses = addresses_of(documents)
    steps = {
        document.path: named_document(documents, addresses, document.superseded_by, document)
        for document in replaced
    }
    return {path: last for path in steps if (last := _last(path, steps)) is not None}


def file_replacing(files: Sequence[SourceFile], document: Document) -> SourceFile | None:
    """The file that a page names as its successor, by a path from itself or by any name."""
    name, _ = split_heading(document.meta.superseded_by)
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(document.topic), name))
    ways = (beside, name)
    found = (files_asked(files, asked) for way in ways for asked in ways_to_read(way))
    return next((pages[0] for pages in found if pages and pages[0].path != document.path), None)


@functools.lru_cache(maxsize=100_000)
def _address(topic: str) -> Parts:
    """The parts of a topic; kept, for every topic is compared with every file."""
    return tuple(topic_parts(topic))


def _pages_named(
    addressed: Iterable[tuple[SourceFile, Parts]], wanted: Parts
) -> list[tuple[SourceFile, Parts]]:
    """The pages whose topic is the wanted one, else those whose topic ends with it."""
    ending = [pair for pair in addressed if _ends(pair[1], wanted)]
    return [pair for pair in ending if pair[1] == wanted] or ending


def _files_linked(files: Sequence[SourceFile], link: str) -> list[SourceFile]:
    """The pages that a link leads to, from whatever page it was copied.

    The beginning of an address may belong to the site and not to this base: `/docs/a/b/` is the
    page `a/b`. At least two of its names must agree, or all that one and its folder give.
    """
    wanted = tuple(part for part in topic_parts(link) if part != "..")
    addressed = [(source, way) for source in files for way in _site_addresses(source.topic)]
    for dropped in range(len(wanted)):
        rest = wanted[dropped:]
        if dropped > 1 and len(rest) < 2:
            break
        pages = _pages_named(addressed, rest)
        if pages:
            return list(dict.fromkeys(source for source, _ in pages))
    return []


def _site_addresses(topic: str) -> Iterator[Parts]:
    """A page's own address, and for the index page of a folder the folder's."""
    parts = _address(topic)
    yield parts
    if len(parts) > 1 and parts[-1] in INDEX_NAMES:
        yield parts[:-1]


def _lies_below(folders: Parts, wanted: Parts) -> bool:
    """Whether folders begin with the wanted ones, named with their layer or without."""
    return folders[: len(wanted)] == wanted or folders[1 : 1 + len(wanted)] == wanted


def _ends(parts: Parts, wanted: Parts) -> bool:
    if parts[-len(wanted) :] == wanted:
        return True
    *folders, name = parts[-len(wanted) :]
    return len(parts) >= len(wanted) and wanted == (*folders, _unnumbered(name))


def _holds(folders: Parts, wanted: Parts) -> bool:
    size = len(wanted)
    return any(folders[at : at + size] == wanted for at in range(len(folders) - size + 1))


def _unnumbered(name: str) -> str:
    return _NUMBER.sub("", name)


def _last(path: str, steps: Mapping[str, N | None]) -> N | None:
    """Follow the replacements to their end; a circle leads nowhere."""
    seen = {path}
    document = steps[path]
    while document is not None and document.path in steps:
        if document.path in seen:
            return None
        seen.add(document.path)
        document = steps[document.path]
    return document


class PastedLink(NamedTuple):
    """Where a copied link leads: a page, and a heading or a line of it when it names one."""

    page: str
    heading: str = ""
    line: int = 0


def pasted_link(text: str) -> PastedLink | None:
    """The target of a text that was a link; None when it is a plain name."""
    target = _unwrapped(text.strip())
    is_link = target != text.strip()
    target, site = _SITE.subn("/", target, count=1)
    is_link = is_link or bool(site) or target.startswith(_LEADS_AWAY)
    if lines := _LINES.search(target):
        return PastedLink(_page(target[: lines.start()]), line=int(lines[1]))
    page, _, heading = target.partition("#")
    page, heading = _without_query(page), _without_query(heading)
    if not is_link and "?" not in target[len(page) :] and "%" not in target:
        return None
    return PastedLink(_page(page), heading_id(unquote(heading)))


def anchor_asked(topic: str) -> str:
    """The heading of an unknown page that a topic names: `{#id}`, `#id` or a heading's line."""
    link = pasted_link(topic)
    if link is not None and link.heading and not link.page:
        return link.heading
    written = topic.strip()
    return heading_id(written) if written.startswith("#") or _ID.search(written) else ""


def heading_id(heading: str) -> str:
    """A heading as it is asked for: `{#id}` means its id."""
    named = _ID.search(heading)
    return named[1] if named else heading.strip().lstrip("#").strip()


def _unwrapped(text: str) -> str:
    for form in (_WIKI, _MARKDOWN, _SHORTCODE):
        match = form.fullmatch(text)
        if match:
            return match[1].strip()
    if text.startswith("<") and text.endswith(">"):
        return text[1:-1].strip()
    return text.strip("`").strip()


def _without_query(path: str) -> str:
    """A path of a site without what follows `?` in its last part."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + name.partition("?")[0]


def _page(target: str) -> str:
    return unquote(target).strip()
