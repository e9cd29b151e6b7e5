"""What people send to read a file that is not theirs, in every disguise."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

_DOTS = (
    "..",
    "...",
    "%2e%2e",
    "%252e%252e",
    ".%2e",
    "%c0%ae%c0%ae",
    "%u002e%u002e",
    "\uff0e\uff0e",
    "\u2025",
    ".\u200b.",
    "..;",
    "..\0",
    "\\.\\.",
)
_SLASHES = ("/", "\\", "%2f", "%5c", "%252f", "//", "/./", "\u2215", "\uff0f", "%c0%af", "\\/")
_SCHEMES = (
    "file://",
    "file:",
    "FILE:///",
    "sage://",
    "knowledge:///",
    "knowledge://core/..",
    "http://127.0.0.1/",
    "jar:file://",
    "data:text/plain,",
    "\\\\?\\",
    "\\\\.\\",
    "//localhost",
    "\\\\localhost\\c$",
    "C:",
    "c:\\",
    "~",
    "~root",
    "${HOME}",
    "$(cat ",
    "`cat ",
    "|cat ",
    "@",
    "zip://",
    "php://filter/resource=",
)
_NAMES = (
    ".knowledge/../../outside/secret.md",
    "../outside/secret.md",
    "core/link-absolute.md",
    "core/link-relative",
    "core/link-to-a-folder.md/secret.md",
    "core/door/secret.md",
    "core/link-to-top.md/etc/passwd",
    "core/link-to-proc-environ",
    "core/pipe",
    "core/socket.md",
    ".git/config",
    "../.git/notes.md",
    "core/.hidden",
    "sage.yaml",
    ".knowledge/sage.yaml",
    "core/\u202egpj.md",
    "core/%ff.md",
    "core/\udcff.md",
    "core/\x00.md",
    "core/healthy.md\x00.txt",
    "core/healthy.md/..",
    "core/healthy.md/../../../outside/secret.md",
    "core/healthy#../../outside/secret.md",
    "#/etc/passwd",
    "core#" + "../" * 20,
    "/proc/self/environ",
    "/proc/self/cwd/../outside/secret.md",
    "/proc/self/fd/0",
    "/dev/stdin",
    "/dev/zero",
    "",
    " ",
    ".",
    "..",
    "/",
    "\\",
    "*",
    "**/*",
    "{..,..}/secret",
    "[.][.]/secret",
    "A" * 5_000,
    "../" * 2_000,
    "\u0000" * 100,
    "\ud800",
    "\u202e\u2066/etc/passwd",
    "\x1b[2J/etc/passwd",
    "{{7*7}}",
    "%s%n%x",
    "' OR 1=1 --",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "__class__",
    "../../../../../../../../windows/win.ini",
    "CON",
    "NUL.md",
    "secret.md::$DATA",
)


def payloads(secret: Path) -> Iterator[str]:
    """At least two hundred ways to ask for a file outside, the canary's among them."""
    climbed = str(secret).strip("/")
    for dots in _DOTS:
        for slash in _SLASHES:
            yield (dots + slash) * 12 + climbed.replace("/", slash)
    for scheme in _SCHEMES:
        yield f"{scheme}{secret}"
    yield str(secret)
    yield quote(str(secret), safe="")
    yield quote(quote(str(secret), safe=""), safe="")
    yield from _NAMES
