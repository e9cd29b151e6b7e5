"""Swaps files and folders for links out of the root and back, as quickly as it can.

`python swapper.py ROOT OUTSIDE FOLDER`, with the folder of the layers: it ends when its input
does, and leaves everything in place.
"""

import os
import sys
import threading
from pathlib import Path

# What is swapped below the folder of the layers, and what lies outside under the same name.
TARGETS = ("/core/page.md", "/core/folder", "/practices", "/core/linked.md", "")


def swap(place: Path, away: Path, link: Path) -> None:
    """Put a link in the place of something for a moment."""
    os.rename(place, away)
    os.rename(link, place)
    os.rename(place, link)
    os.rename(away, place)


def prepare(root: Path, outside: Path, folder: str) -> list[tuple[Path, Path, Path]]:
    """For each target: itself, where it is put aside, and the link that takes its place."""
    prepared = []
    for number, target in enumerate(TARGETS):
        link = root / f"link-{number}"
        link.symlink_to(outside / f"{folder}{target}")
        prepared.append((root / f"{folder}{target}", root / f"away-{number}", link))
    return prepared


def wait_for_end(ended: threading.Event) -> None:
    """Tell when the input ends."""
    sys.stdin.read()
    ended.set()


def run(root: Path, outside: Path, folder: str) -> int:
    """Swap until the input ends; how often."""
    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
    prepared, count = prepare(root, outside, folder), 0
    while not ended.is_set():
        swap(*prepared[count % len(prepared)])
        count += 1
    return count


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
