"""Cases of links, of things that are no files, and of trees that do not end."""

import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.hostile.cases import CANARY, HEALTHY, KNOWLEDGE, MAPPED, Case, Place

OUT = "link-leaves-root"
_SYSTEM = {
    "etc-passwd": "/etc/passwd",
    "etc": "/etc",
    "top": "/",
    "proc-environ": "/proc/self/environ",
    "proc-root": "/proc/self/root",
    "proc-descriptors": "/proc/self/fd",
    "proc-memory": "/proc/self/mem",
    "null": "/dev/null",
    "zero": "/dev/zero",
    "home": "~",
}


def link_cases() -> Iterator[Case]:
    """Links that lead out of what is served, or nowhere."""
    for name, target in _SYSTEM.items():
        real = Path(target).expanduser()
        yield _link(f"link-to-{name}", real, OUT if real.exists() else "broken-link")
    yield _link("link-absolute", lambda place: place.outside / "secret.md")
    yield _link("link-relative", lambda _: "../../../outside/secret.md")
    yield _link("link-winding", lambda _: "./../core/./../../../outside/../outside/secret.md")
    yield _link("link-to-a-folder", lambda place: place.outside)
    yield _link("link-to-the-parent-repository", lambda _: "../../../README.md")
    yield _link("link-to-a-twin", lambda place: f"{place.root}-two/secret.md")
    yield _link("link-to-itself", lambda _: "link-to-itself.md", "broken-link")
    yield _link("link-to-nothing", lambda _: "nothing.md", "broken-link")
    yield _link("link-to-a-very-long-name", lambda _: "x" * 4_000, "broken-link")
    yield _link("link-with-a-line-break", lambda _: "no\nwhere.md", "broken-link")
    yield Case(
        "links-in-a-ring",
        _ring,
        {"core/ring-a.md": "broken-link", "core/ring-b.md": "broken-link"},
    )
    yield Case(
        "chain-of-links",
        _chain,
        {f"core/chain-{at}.md": OUT for at in range(3)},
    )
    yield Case(
        "link-through-a-linked-folder",
        _through_a_folder,
        {"core/door": OUT, "core/through-door.md": OUT},
    )
    yield from _links_inside()


def _link(name: str, target: object, rule: str = OUT) -> Case:
    path = f"core/{name}.md"

    def build(place: Place) -> None:
        place.link(path, str(target(place) if callable(target) else target))

    return Case(name, build, {path: rule})


def _ring(place: Place) -> None:
    place.link("core/ring-a.md", "ring-b.md")
    place.link("core/ring-b.md", "ring-a.md")


def _chain(place: Place) -> None:
    place.link("core/chain-0.md", "chain-1.md")
    place.link("core/chain-1.md", "chain-2.md")
    place.link("core/chain-2.md", place.outside / "secret.md")


def _through_a_folder(place: Place) -> None:
    place.link("core/door", place.outside)
    place.link("core/through-door.md", "door/secret.md")


def _links_inside() -> Iterator[Case]:
    """Links that stay within the root: followed to markdown, and to nothing hidden."""
    yield Case("link-to-git", _link_to_git, {"core/git.md": OUT, "core/git": OUT})
    yield Case("link-to-a-hidden-page", _link_to_hidden, {"core/shown.md": OUT})
    yield Case("link-to-code", _link_to_code, {"core/code.md": OUT})
    yield Case(
        "link-to-a-page-beside",
        lambda place: (
            place.write_beside("docs/beside.md", "# Beside\n\nBeside the layers.\n"),
            place.link("core/beside.md", "../../docs/beside.md"),
        ),
        served={"core/beside": "Beside the layers."},
    )
    yield Case(
        "hard-link",
        # A hard link is the file itself: whoever could make it could have copied the text.
        lambda place: os.link(place.write_beside("own.md", "# Own\n"), place.core / "hard.md"),
        served={"core/hard": "# Own"},
    )
    yield Case(
        "folders-in-a-ring",
        lambda place: (
            place.write("core/a/b/page.md", "# Deep\n\nIn the ring.\n"),
            place.link("core/a/b/again", place.core / "a"),
            place.link("core/a/b/c", "."),
        ),
        {"core/a/b/again": "listed-twice", "core/a/b/c": "listed-twice"},
        {"core/a/b/page": "In the ring."},
    )
    yield Case(
        "link-to-the-whole-repository",
        lambda place: place.link("core/everything", place.root),
        {"core/everything/.knowledge": "hidden"},
        alone=True,
        kinds=(KNOWLEDGE,),
    )
    yield Case(
        "link-to-the-whole-mapped-repository",
        lambda place: place.link("core/everything", place.root),
        {
            "core/everything/docs/core": "listed-twice",
            "core/everything/sage.yaml": "not-markdown",
        },
        alone=True,
        kinds=(MAPPED,),
    )


def _link_to_git(place: Place) -> None:
    place.write_beside(".git/notes.md", CANARY)
    place.link("core/git.md", "../../.git/notes.md")
    place.link("core/git", "../../.git")


def _link_to_hidden(place: Place) -> None:
    place.write_beside("docs/.hidden.md", CANARY)
    place.link("core/shown.md", "../../docs/.hidden.md")


def _link_to_code(place: Place) -> None:
    place.write_beside("settings.py", f"PASSWORD = '{CANARY}'")
    place.link("core/code.md", "../../settings.py")


def layer_cases() -> Iterator[Case]:
    """Layers that are no folders of the repository."""
    makes = {
        "file": (lambda place: place.write("guidelines", "# No folder\n"), "not-a-folder"),
        "pipe": (lambda place: place.pipe("guidelines"), "not-a-folder"),
        "link-out": (lambda place: place.link("guidelines", place.outside), OUT),
        "link-to-etc": (lambda place: place.link("guidelines", "/etc"), OUT),
        "link-to-nothing": (lambda place: place.link("guidelines", "none"), "not-a-folder"),
        "link-to-itself": (lambda place: place.link("guidelines", "guidelines"), "not-a-folder"),
    }
    for name, (make, rule) in makes.items():
        yield Case(f"layer-{name}", make, {"guidelines": rule}, alone=True)
    yield Case("layer-link-to-git", _layer_in_git, {"guidelines": OUT}, alone=True)


def _layer_in_git(place: Place) -> None:
    place.write_beside(".git/notes.md", CANARY)
    place.link("guidelines", "../.git")


def special_cases() -> Iterator[Case]:
    """Pipes, sockets and devices, which block or never end when they are read."""
    pipe, odd = "core/pipe.md", "not-a-file"
    yield Case("pipe", lambda place: place.pipe("core/pipe.md"), {pipe: odd})
    yield Case("pipe-for-a-folder", lambda place: place.pipe("core/pipe"), {"core/pipe": odd})
    yield Case("socket", _socket, {"core/socket.md": odd})
    yield Case(
        "link-to-a-pipe",
        lambda place: (
            place.pipe("core/real.md"),
            place.link("core/linked.md", "real.md"),
        ),
        {"core/linked.md": odd, "core/real.md": odd},
    )
    if _may_make_devices():
        for name, number in {"zero": 5, "tty": 0, "full": 7}.items():
            path = f"device-{name}.md"
            yield Case(f"device-{name}", _device(path, number), {f"core/{path}": odd})


def _device(name: str, number: int) -> Callable[[Place], object]:
    mode = stat.S_IFCHR | 0o666
    return lambda place: os.mknod(place.core / name, mode, os.makedev(1, number))


def _may_make_devices() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.mknod(f"{folder}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except OSError:
            return False
    return True


def _socket(place: Place) -> None:
    # The address of a socket is short, so it is made elsewhere and moved.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        os.rename(f"{folder}/s", place.core / "socket.md")


def tree_cases() -> Iterator[Case]:
    """Trees that are too deep, too wide or of too many files."""
    yield Case("tree-1200-deep", _deep, {f"core/{'d/' * 63}d": "too-deep"}, alone=True)
    yield Case(
        "tree-just-deep-enough",
        lambda place: place.write(f"core/{'e/' * 60}page.md", "# Deep\n\nAt the bottom.\n"),
        served={f"core/{'e/' * 60}page": "At the bottom."},
    )
    yield Case(
        "tree-of-long-names",
        lambda place: place.write("core/" + "/".join(c * 200 for c in "pqrs") + "/x.md", "# Long"),
        served={"s" * 200 + "/x": "# Long"},
    )
    yield Case(
        "tree-300-wide",
        _wide,
    )
    yield Case(
        "folder-named-as-a-page",
        lambda place: place.write("core/folder.md/page.md", "# Inside\n\nA page below.\n"),
        served={"core/folder.md/page": "A page below."},
    )
    if os.geteuid():  # nothing is closed to the administrator
        closed = HEALTHY["core/healthy.md"]
        yield Case(
            "closed-file",
            lambda place: place.write("core/closed.md", closed).chmod(0),
            {"core/closed.md": "unreadable"},
        )
        yield Case(
            "closed-folder",
            lambda place: place.write("core/closed/page.md", closed).parent.chmod(0),
            {"core/closed": "unreadable"},
        )


def _deep(place: Place) -> None:
    here = os.open(place.core, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def _wide(place: Place) -> None:
    for at in range(300):
        (place.core / f"wide-{at}").mkdir()
