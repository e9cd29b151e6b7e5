"""What a hostile case is: something planted in a repository, and what must come of it.

The modules beside this one list the cases; the tests plant them and ask real servers.
SAGE_HOSTILE_SECONDS=60 runs the long version of everything.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sage.documents.document import searched_length
from sage.status import SHOWN_PROBLEMS

SECONDS = float(os.environ.get("SAGE_HOSTILE_SECONDS", "3"))
"""How long a race is run; a minute and more also asks for the full sizes everywhere."""
LONG = SECONDS >= 60
CANARY = "canary-5f0c2e: nobody may read this"
HEALTHY = {
    "core/healthy.md": "# Healthy\n\nThe quokka reads this line first.\n",
    "practices/whole.md": "# Whole\n\n## Steps\n\nThe axolotl rinses twice: ünïcode, 日本語, 🎉.\n",
}
TOO_LARGE = "too-large"
KNOWLEDGE, MAPPED, SOURCE = "knowledge", "mapped", "source"
KINDS = (KNOWLEDGE, MAPPED, SOURCE)
"""Where pages can lie: in `.knowledge`, in folders that `sage.yaml` maps, in a further source."""
_LAYERS = ("core", "guidelines", "frameworks", "practices")
_MOST_IN_A_BATCH = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where cases are planted: a repository, and a folder beside it that nobody may see."""

    root: Path
    outside: Path
    kind: str = KNOWLEDGE

    @classmethod
    def made_in(cls, folder: Path, kind: str = KNOWLEDGE) -> "Place":
        """A repository with healthy pages, and its neighbours with the canary."""
        place = cls(folder / "repository", folder / "outside", kind)
        if kind == MAPPED:
            lines = "".join(f"  {layer}: docs/{layer}\n" for layer in _LAYERS)
            place.write_beside("sage.yaml", f"layers:\n{lines}")
        elif kind == SOURCE:
            (place.served / ".knowledge").mkdir(parents=True)
            place.write_beside("sage.yaml", f"layers: [{', '.join(_LAYERS)}]\n")
        for path, text in HEALTHY.items():
            place.write(path, text)
        place.outside.mkdir()
        twin = folder / "repository-two"
        twin.mkdir()
        for secret in (place.outside / "secret.md", twin / "secret.md", folder / "README.md"):
            secret.write_text(f"# Secret\n\n{CANARY}\n")
        return place

    @property
    def served(self) -> Path:
        """The root of the server: the repository, or another one whose further source it is."""
        return self.root.with_name("main") if self.kind == SOURCE else self.root

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the server needs."""
        return {"SAGE_SOURCES": f"further={self.root}"} if self.kind == SOURCE else {}

    @property
    def folder(self) -> str:
        """The folder of the layers."""
        return "docs" if self.kind == MAPPED else ".knowledge"

    @property
    def layers(self) -> Path:
        """Where the layers lie."""
        return self.root / self.folder

    @property
    def core(self) -> Path:
        """The layer in which most is planted."""
        return self.layers / "core"

    def shown(self, path: str) -> str:
        """How a path below the layers is told."""
        return f"{'further:' * (self.kind == SOURCE)}{self.folder}/{path}"

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file below the layers."""
        return self.write_beside(f"{self.folder}/{path}", content)

    def write_beside(self, path: str, content: str | bytes) -> Path:
        """Write a file below the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def link(self, path: str, target: Path | str) -> Path:
        """Plant a symbolic link below the layers."""
        link = self.layers / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        return link

    def pipe(self, path: str) -> Path:
        """Plant a named pipe below the layers."""
        os.mkfifo(self.layers / path)
        return self.layers / path

    def sweep(self) -> None:
        """Remove everything but the healthy pages."""
        healthy = {self.layers / path for path in HEALTHY}
        kept = healthy | {parent for path in healthy for parent in path.parents}
        kept.add(self.root / "sage.yaml")
        for folder in sorted(kept - healthy):
            if folder.is_relative_to(self.root) and folder.is_dir():
                _remove(path for path in folder.iterdir() if path not in kept)


def _remove(paths: Iterable[Path]) -> None:
    """Remove what is there, trees deeper than Python's recursion limit included."""
    for path in paths:
        name = os.fsencode(path)
        if not path.is_symlink() and path.is_dir():
            subprocess.run(["chmod", "-R", "u+rwX", "--", name], check=True)
        subprocess.run(["rm", "-rf", "--", name], check=True)


@dataclass(frozen=True, slots=True)
class Case:
    """One hostile thing and its outcome."""

    name: str
    build: Callable[[Place], object]
    problems: Mapping[str, str] = field(default_factory=dict)
    """Which rule is named for which path below the layers, as it is shown."""
    served: Mapping[str, str] = field(default_factory=dict)
    """What the page of a topic says all the same, in the cleaned form that leaves."""
    alone: bool = False
    """Whether it changes more than names of its own."""
    hidden: str = CANARY
    """What must not be in any answer."""
    kinds: tuple[str, ...] = KINDS
    """Where the outcome is this."""


def page(
    name: str,
    content: str | bytes,
    rule: str = "",
    says: str | None = None,
    file: str | None = None,
) -> Case:
    """A case of one file in the layer core; `says` is what its page must still say.

    A text of too many characters is not searched to its end.
    """
    path = file or f"core/{name}.md"
    text = content if isinstance(content, str) else content.decode(errors="replace")
    if not rule and searched_length(text) < len(text):
        rule = TOO_LARGE
    return Case(
        name,
        lambda place: place.write(path, content),
        {path: rule} if rule else {},
        {} if says is None else {path.rpartition(".")[0]: says},
    )


def batches(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Cases planted together, so few that `sage_info` names every problem of theirs."""
    batch: list[Case] = []
    for case in cases:
        problems = sum(len(one.problems) for one in [*batch, case])
        full = problems > SHOWN_PROBLEMS or len(batch) == _MOST_IN_A_BATCH
        if batch and (full or case.alone or batch[-1].alone):
            yield batch
            batch = []
        batch.append(case)
    if batch:
        yield batch
