"""A note as a page: from a sentence or more to the bytes of a draft in the team's inbox."""

import re
import secrets
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sage.atomic import replace_bytes
from sage.documents.document import slug
from sage.documents.front_matter import TYPES, day_in
from sage.documents.places import Place, Places
from sage.errors import ConfigError, InvalidInput, did_you_mean
from sage.notes.front_matter_edit import rendered
from sage.settings import Settings

MAX_NOTE = 100_000
_MAX_TITLE = 80
_MAX_SLUG = 48
# No vowels and nothing that looks like another: an id is read aloud and typed.
_LETTERS = "23456789bcdfghjkmnpqrstvwxz"
_SENTENCE = re.compile(r"\s*(.+?[.!?。](?=\s|$)|[^\n]+)")


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody learned, and what is known about it."""

    text: str
    type: str = "discovery"
    title: str = ""
    files: tuple[str, ...] = ()
    """What it is about: globs, as in `applies_to`."""
    tags: tuple[str, ...] = ()
    source: str = ""
    owner: str = ""
    review_by: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A page that could be written."""

    id: str
    path: str
    """From the root, with forward slashes."""
    topic: str
    page: str


def drafted(note: Note, settings: Settings, today: date, id_: str | None = None) -> Draft:
    """The page of a note.

    Raises:
        InvalidInput: no text, too much of it, no such type, or a day that is none.
    """
    text = note.text.strip()
    if not text:
        raise InvalidInput("the note is empty; say what was learned in a sentence or more")
    if len(text) > MAX_NOTE:
        raise InvalidInput(f"the note has {len(text):,} characters; at most {MAX_NOTE:,} are taken")
    _check(note)
    id_ = id_ or "n" + "".join(secrets.choice(_LETTERS) for _ in range(6))
    title = " ".join(note.title.split()) or _title(text)
    name = f"{id_}-{_short_slug(title)}".rstrip("-")
    layer = _layer(settings)
    place = _place(settings, layer)
    path = f"{place.folder}/{settings.notes.folder}/{name}.md".lstrip("/")
    return Draft(id_, path, place.topic(layer, path), _page(note, id_, title, text, today))


def write(draft: Draft, settings: Settings) -> Path:
    """Write the page below its layer; nothing is ever overwritten.

    Raises:
        ConfigError: something has that name, a link is in the way, or it cannot be written.
    """
    path = settings.root / draft.path
    try:
        replace_bytes(path, None, draft.page.encode("utf-8", "replace"), settings.root)
    except ConfigError as error:
        raise ConfigError(f"the note is not written: {error}") from error
    return path


def _layer(settings: Settings) -> str:
    layer = settings.notes.layer or settings.repository_layers[-1]
    if layer not in settings.repository_layers:
        known = ", ".join(settings.repository_layers)
        raise ConfigError(f"notes.layer is {layer!r}, which is not a layer; use one of {known}")
    folder = settings.notes.folder
    if any(part in ("", ".", "..") or part.startswith(".") for part in folder.split("/")):
        raise ConfigError(f"notes.folder is {folder!r}; name a folder below the layer")
    return layer


def _place(settings: Settings, layer: str) -> Place:
    """The first folder of a layer, wherever in the repository it is mapped to."""
    for place in Places(settings.repository_layers, settings.layer_paths).of(layer):
        if not place.glob:
            return place
    raise ConfigError(
        f"the layer {layer} is mapped to globs or files; set notes.layer to one with a folder"
    )


def _check(note: Note) -> None:
    if note.type not in TYPES:
        close = did_you_mean(note.type, TYPES)
        raise InvalidInput(f"--type is {note.type!r}; use one of {', '.join(TYPES)}{close}")
    if note.review_by:
        check_review_by(note.review_by)


def check_review_by(day: str) -> None:
    """Refuse a day of review that is none.

    Raises:
        InvalidInput: with an example.
    """
    if day_in(day) != day:
        raise InvalidInput(f"--review-by is {day!r}; write a day as 2027-01-31")


def _title(text: str) -> str:
    first = text.lstrip("# \t").partition("\n\n")[0]
    match = _SENTENCE.match(first)
    title = " ".join((match.group(1) if match else first).split()).rstrip(".。")
    if len(title) <= _MAX_TITLE:
        return title
    return title[:_MAX_TITLE].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _short_slug(title: str) -> str:
    return slug(title)[:_MAX_SLUG].strip("-").replace("/", "-")


def _page(note: Note, id_: str, title: str, text: str, today: date) -> str:
    lines = [f"id: {id_}", f"title: {rendered(title)}", f"type: {note.type}", "status: draft"]
    for key, words in (("tags", note.tags), ("applies_to", note.files)):
        if words:
            lines.append(f"{key}: [{', '.join(_quoted(word) for word in words)}]")
    for key, value in (
        ("source", note.source),
        ("owner", note.owner),
        ("review_by", note.review_by),
        ("last_updated", today.isoformat()),
    ):
        if value.strip():
            lines.append(f"{key}: {rendered(value.strip())}")
    body = text if text.startswith("# ") else f"# {title}\n\n{text}"
    return "\n".join(["---", *lines, "---", "", body, ""])


def _quoted(word: str) -> str:
    """A word of a list in brackets; what a list would divide is quoted."""
    plain = rendered(word.strip())
    return plain if plain.startswith('"') or "," not in plain else f'"{plain}"'
