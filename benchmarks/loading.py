"""What loading costs: a warm `get` against a bare stat scan, a cold load against markdown-it alone.

Both sides of a ratio take turns in one run and only CPU time counts, the least of many rounds,
so that other programs on the machine matter little.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from markdown_it import MarkdownIt

from sage.answers import KnowledgeAnswer, KnowledgeMetadata
from sage.deadline import Clocks, no_deadline
from sage.documents.library import Library
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent
CORPUS = ROOT.parent / "shared" / "corpus" / "sage-kb"
WARM_BAR = 1.5
COLD_BAR = 2.0
FILES = 184
SECTIONS = 20_000
# A temporary copy has just been written; a library would wait until it is quiet.
LATER = Clocks(now=lambda: time.time() + 60)


def main() -> int:
    """Print every figure; 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        root = CORPUS
        if not root.is_dir():
            root = _repeated(Path(folder, "files"), lambda files, _: files >= FILES)
        _warm(ROOT)
        met = [_verdict(_warm(root), WARM_BAR), _verdict(_cold(root), COLD_BAR)]
        _memory(Path(folder, "memory"))
    return 0 if all(met) else 1


def _warm(root: Path) -> float:
    """Ask for each layer again and again while nothing changes; the ratio of the largest.

    What a call costs whatever it reads, about 0.03 ms, is half of the time of a tiny layer.
    """
    settings = load_settings({"root": root}, {}, root)
    knowledge = open_knowledge(settings)
    layers = [layer for layer in settings.layers if (settings.knowledge_dir / layer).is_dir()]
    layers.sort(key=lambda layer: _scan(str(settings.knowledge_dir / layer)))
    return [_warm_layer(knowledge, layer) for layer in layers][-1]


def _warm_layer(knowledge: KnowledgeBase, layer: str) -> float:
    answer = knowledge.get(layer)
    top = str(knowledge.settings.knowledge_dir / layer)

    def scan_and_copy() -> None:
        _scan(top)
        _copy(answer)

    plain, ours = _least(scan_and_copy, lambda: knowledge.get(layer), rounds=60, calls=10)
    name = f"warm get of {layer} ({_scan(top)} files, {knowledge.settings.root.name})"
    return _report(name, ours, plain, "stat scan and copy")


def _scan(top: str) -> int:
    """A plain scan: every folder listed, every file looked at."""
    count, folders = 0, [top]
    while folders:
        with os.scandir(folders.pop()) as names:
            for name in names:
                if name.is_dir(follow_symlinks=False):
                    folders.append(name.path)
                else:
                    name.stat(follow_symlinks=False)
                    count += 1
    return count


def _copy(answer: KnowledgeAnswer) -> tuple[bytes, KnowledgeMetadata]:
    metadata = answer["metadata"].copy()
    metadata["omitted"] = [omitted.copy() for omitted in metadata["omitted"]]
    return answer["content"].encode(), metadata


def _cold(root: Path) -> float:
    """All the files of a base, from nothing, as often as it takes to trust the figure."""
    layers = sorted(path.name for path in (root / ".knowledge").iterdir() if path.is_dir())
    settings = load_settings({"root": root, "layers": layers}, {}, root)
    texts = [path.read_text("utf-8-sig") for path in _markdown(root)]
    parser = MarkdownIt()
    full, ours = _least(
        lambda: [parser.parse(text) for text in texts], lambda: _load(settings), rounds=5, calls=1
    )
    return _report(f"cold load of {len(texts)} files", ours, full, "markdown-it alone")


def _markdown(root: Path) -> list[Path]:
    layers = (path for path in (root / ".knowledge").iterdir() if path.is_dir())
    return [path for layer in layers for path in sorted(layer.rglob("*.md"))]


def _load(settings: Settings) -> int:
    """Load every document; the number of their sections."""
    library = Library(settings, LATER)
    listings = library.refresh(settings.layers, no_deadline())
    loaded = [library.load(source, no_deadline()) for one in listings for source in one.files]
    return sum(len(document.sections) for document in loaded if document)


def _memory(folder: Path) -> None:
    """What 20,000 sections add to a fresh process."""
    _repeated(folder, lambda _, sections: sections >= SECTIONS)
    program = "from benchmarks.loading import print_memory; print_memory()"
    subprocess.run([sys.executable, "-c", program, str(folder)], cwd=ROOT, check=True)


def print_memory() -> None:
    """In a process of its own: load a base and print what it added."""
    root = Path(sys.argv[1])
    settings = load_settings({"root": root}, {}, root)
    megabytes = sum(path.stat().st_size for path in _markdown(root)) / 2**20
    knowledge = KnowledgeBase(settings, LATER)
    before = _resident_megabytes()
    documents = knowledge.documents()
    added = _resident_megabytes() - before
    sections = sum(len(document.sections) for document in documents)
    print(
        f"memory of {sections:,} sections in {len(documents):,} documents "
        f"({megabytes:.1f} MB of text): {added:.0f} MB, {added * 2**20 / sections:,.0f} bytes each"
    )


def _resident_megabytes() -> float:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _repeated(folder: Path, enough: Callable[[int, int], bool]) -> Path:
    """A base made of copies of our own documents until there are enough files or sections."""
    settings = load_settings({"root": ROOT}, {}, ROOT)
    own = [(ROOT / one.path, len(one.sections)) for one in open_knowledge(settings).documents()]
    files = sections = 0
    for path, headings in itertools.cycle(own):
        if enough(files, sections):
            return folder
        relative = path.relative_to(ROOT)
        copy = folder / relative.parent / str(files // len(own)) / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        files, sections = files + 1, sections + headings
    raise AssertionError("a cycle does not end")


def _least(
    plain: Callable[[], object], ours: Callable[[], object], rounds: int, calls: int
) -> tuple[float, float]:
    """The least CPU seconds of one call of each, measured in turns."""
    times = [(_cpu_seconds(plain, calls), _cpu_seconds(ours, calls)) for _ in range(rounds)]
    return min(pair[0] for pair in times), min(pair[1] for pair in times)


def _cpu_seconds(work: Callable[[], object], calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - started) / calls


def _report(name: str, ours: float, plain: float, yardstick: str) -> float:
    ratio = ours / plain
    print(f"{name}: {ours * 1000:.3f} ms, {ratio:.2f} x {yardstick} ({plain * 1000:.3f} ms)")
    return ratio


def _verdict(ratio: float, bar: float) -> bool:
    print(f"  {ratio:.2f} against a bar of {bar}: {'met' if ratio <= bar else 'MISSED'}")
    return ratio <= bar


if __name__ == "__main__":
    sys.exit(main())
