"""What is asked for and what is sent: plain values, known to no web framework."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HTML = "text/html; charset=utf-8"
# Nothing is loaded from elsewhere, nothing runs that is not a file of ours, and no other page may
# put this one into a frame.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    # With no-referrer a browser sends `Origin: null` with our own form, which is refused.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MAX_VALUE = 4_000
"""Characters of one value in an address; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The address that a browser asks for."""

    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    version: str = ""
    """The state of the files before anything was read for the answer."""

    def text(self, name: str, default: str = "") -> str:
        """The first value of a name."""
        values = self.query.get(name) or (default,)
        return values[0][:MAX_VALUE]

    def texts(self, name: str, most: int = 50) -> list[str]:
        """Every value of a name that says something."""
        return [value[:MAX_VALUE] for value in self.query.get(name, ())[:most] if value.strip()]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within its limits; the default for anything else."""
        value = self.text(name)
        # More digits than any limit has are no number anybody meant, and slow to read.
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            return default
        return min(max(int(value), least), most)

    @property
    def is_part(self) -> bool:
        """Whether the script asks for the part of a page that changes."""
        return self.text("part") == "1"


@dataclass(frozen=True, slots=True)
class PageResponse:
    """What a browser gets."""

    body: bytes
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        """With those that every page has."""
        return {**_ALWAYS, **self.headers}
