"""What is related and what is said twice: `python -m benchmarks.likeness [--sections N]`.

Duplicates: processor time of finding them beside that of indexing the same sections, and how many
of 200 planted ones are found. Related: how many pairs of pages of which one links to the other are
among the first five of either when links do not count; in our own base, in the Kubernetes pages and
in a corpus, where they are present.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.retrieval_sets import ROOT, load_set, set_names
from sage.documents.document import Document, parse_document
from sage.knowledge import KnowledgeBase
from sage.notes.duplicates import duplicates
from sage.notes.related import Relations
from sage.settings import load_settings

PLANTED = 200
SECTIONS_OF_A_PAGE = 10
FIRST = 5
MOST_PAIRS = 500
_CORPUS = ROOT.parent / "shared" / "corpus"
_WORDS = [f"{a}{b}{c}{d}" for a in "bdgklmnprst" for b in "aeiou" for c in "nrl" for d in "aeiou"]


def main() -> int:
    """Measure and print; 1 when a floor is not reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_good = measure_duplicates(Path(folder), given.sections)
    for name, documents in bases():
        is_good &= measure_related(name, documents)
    return 0 if is_good else 1


def measure_duplicates(folder: Path, sections: int) -> bool:
    """Print the time and the quality of finding duplicates; whether both are good enough."""
    planted = write_base(folder / "repo", sections)
    settings = load_settings(
        {"root": folder / "repo"},
        {"SAGE_CACHE_DIR": str(folder / "cache"), "SAGE_SEARCH_SEMANTIC": "off"},
    )
    knowledge = KnowledgeBase(settings)
    started = time.process_time()
    knowledge.warm()
    indexing = time.process_time() - started
    documents = knowledge.documents()
    started = time.process_time()
    found = {frozenset((one.first, one.second)) for one in duplicates(documents)}
    finding = time.process_time() - started
    recall = len(found & planted) / len(planted)
    precision = len(found & planted) / max(1, len(found))
    print(f"{sections} sections: indexed in {indexing:.1f} s, duplicates in {finding:.1f} s of CPU")
    print(f"  {finding / indexing:.2f} x indexing; recall {recall:.3f}, precision {precision:.3f}")
    return finding <= 3 * indexing and recall >= 0.9 and precision >= 0.9


def write_base(root: Path, sections: int) -> set[frozenset[str]]:
    """Write pages of that many sections; the pairs among them that say the same."""
    chance = random.Random(16)
    texts = [sentence(chance) for _ in range(sections - PLANTED)]
    copied = chance.sample(range(len(texts)), PLANTED)
    origin = {len(texts) + number: place for number, place in enumerate(copied)}
    texts += [changed(chance, texts[place]) for place in copied]
    order = list(range(len(texts)))
    chance.shuffle(order)
    topics: dict[int, str] = {}
    for start in range(0, len(order), SECTIONS_OF_A_PAGE):
        name = f"page-{start // SECTIONS_OF_A_PAGE}"
        lines = []
        for place in order[start : start + SECTIONS_OF_A_PAGE]:
            topics[place] = f"practices/{name}#section-{place}"
            lines.append(f"## Section {place}\n\n{' '.join(texts[place])}.\n")
        path = root / ".knowledge" / "practices" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), "utf-8")
    return {frozenset((topics[copy], topics[place])) for copy, place in origin.items()}


def sentence(chance: random.Random) -> list[str]:
    """The words of a section, some of them much more often than others."""
    words = chance.randrange(30, 120)
    return [_WORDS[min(int(chance.expovariate(0.008)), len(_WORDS) - 1)] for _ in range(words)]


def changed(chance: random.Random, words: Sequence[str]) -> list[str]:
    """The same text after an edit: some words replaced, some dropped, one added."""
    kept = [word if chance.random() > 0.06 else chance.choice(_WORDS) for word in words]
    kept = [word for word in kept if chance.random() > 0.03]
    return [*kept[:5], chance.choice(_WORDS), *kept[5:]]


def bases() -> list[tuple[str, list[Document]]]:
    """The bases that are present, with their pages."""
    found = [("own", served(ROOT))]
    found += [(path.name, served(path)) for path in sorted(_CORPUS.glob("*/")) if path.is_dir()]
    if "k8s" in set_names():
        pages = load_set("k8s").pages
        found.append(
            (
                "k8s",
                [
                    parse_document(text, f".knowledge/{path}", path.split("/")[0])
                    for path, text in sorted(pages.items())
                ],
            )
        )
    return found


def served(root: Path) -> list[Document]:
    """The pages of a repository."""
    with tempfile.TemporaryDirectory() as cache:
        settings = load_settings({"root": root}, {"SAGE_CACHE_DIR": cache})
        return list(KnowledgeBase(settings).documents())


def measure_related(name: str, documents: Sequence[Document]) -> bool:
    """Print how many linked pairs are near without their links; whether at least half are."""
    linked = Relations(documents)
    hidden = linked.without_links()
    by_topic = {document.topic: document for document in documents}
    pairs = sorted(
        {tuple(sorted((one.topic, other))) for one in documents for other in linked.linked(one)}
    )
    asked = random.Random(5).sample(pairs, min(MOST_PAIRS, len(pairs)))
    first = {
        topic: {one.topic for one in hidden.related(by_topic[topic], FIRST)}
        for topic in {topic for pair in asked for topic in pair}
    }
    near = sum(one in first[other] or other in first[one] for one, other in asked)
    share = near / max(1, len(asked))
    print(
        f"{name}: {len(documents)} pages, {len(asked)} of {len(pairs)} linked pairs, "
        f"{share:.0%} among the first {FIRST}",
        flush=True,
    )
    return not asked or share >= 0.5


if __name__ == "__main__":
    raise SystemExit(main())
