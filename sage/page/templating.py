"""Jinja2's home: templates filled with values, every one of them escaped."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import resources
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sage.page.response import PageRequest, PageResponse
from sage.sanitize import clean

_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"}


class Templates:
    """Fills templates, and knows the files beside them."""

    def __init__(self, can_sign_out: bool = False) -> None:
        """Args:
        can_sign_out: whether whoever looks has a session to end.
        """
        self._environment = Environment(
            loader=PackageLoader("sage.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_cleaned,
        )
        self._environment.globals["static"] = self.address_of
        self._environment.globals["can_sign_out"] = can_sign_out
        self._environment.filters["topic_path"] = topic_path
        self._environment.filters["thousands"] = lambda number: f"{number:,}"
        self._environment.filters["trail"] = _trail
        self._environment.filters["pair"] = lambda value, name: (name, value)
        self._environment.filters["query"] = _query

    def page(
        self, name: str, request: PageRequest, status: int = 200, **values: object
    ) -> PageResponse:
        """A whole page, or the part of it that changes."""
        # A part is the same template without what stands around it.
        frame = "part.html" if request.is_part else "base.html"
        template = self._environment.get_template(name)
        text = template.render(values, frame=frame, version=request.version)
        return PageResponse(text.encode("utf-8", "replace"), status)

    def address_of(self, name: str) -> str:
        """Where a file is fetched: its content is in the address, so it can be kept for ever."""
        return f"/static/{self._versions[name]}/{name}"

    def static(self, path: str) -> PageResponse | None:
        """One of the files, when the address is one of theirs."""
        name = path.rpartition("/")[2]
        if name not in _STATIC:
            return None
        return PageResponse(_content(name), 200, _STATIC[name], _FOR_EVER)

    @cached_property
    def _versions(self) -> dict[str, str]:
        return {
            name: hashlib.blake2b(_content(name), digest_size=6).hexdigest() for name in _STATIC
        }


def topic_path(topic: str) -> str:
    """Where a topic is read: its path, and its heading behind the mark."""
    page, _, heading = topic.partition("#")
    return f"/read/{quote(page)}" + (f"#{quote(heading)}" if heading else "")


def _query(pairs: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """What stands behind the question mark of an address; nothing that is empty."""
    rows = pairs.items() if isinstance(pairs, Mapping) else pairs
    return urlencode([(name, value) for name, value in rows if value])


def _trail(topic: str) -> list[tuple[str, str]]:
    """The folders above a topic: what each is called and where it is."""
    *folders, _ = topic.partition("#")[0].split("/")
    return [(name, "/".join(folders[: number + 1])) for number, name in enumerate(folders)]


def _content(name: str) -> bytes:
    return resources.files("sage.page").joinpath("static", name).read_bytes()


def _cleaned(value: object) -> object:
    """Every value on its way into a page, without what deceives a reader."""
    if isinstance(value, Markup):
        return Markup(clean(value))  # noqa: S704 it was markup before, and cleaning only removes
    return clean(value) if isinstance(value, str) else value
