"""Make the filter of known words that nothing is corrected from.

    python -m docs.known_words LIST...

Each list is a file with a word a line. What is written is `sage/data/known_words.bin`; where the
lists of the present one come from is in `sage/data/known_words.md`.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from sage.terms.spelling import KNOWN_WORDS, LEAST_KNOWN, filter_places

_BITS_A_WORD = 12
_WORD = re.compile(r"[a-z]+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the filter and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lists", nargs="+", type=Path)
    words = sorted(set().union(*map(read_words, parser.parse_args(arguments).lists)))
    data = make_filter(words)
    (Path(__file__).parent.parent / "sage" / "data" / KNOWN_WORDS).write_bytes(data)
    print(f"{len(words):,} words, {len(data):,} bytes")
    return 0


def read_words(path: Path) -> set[str]:
    """The words of a list, in small letters and without a possessive ending."""
    lines = path.read_text("utf-8").lower().splitlines()
    words = (line.strip().removesuffix("'s") for line in lines)
    return {word for word in words if len(word) >= LEAST_KNOWN and _WORD.fullmatch(word)}


def make_filter(words: Iterable[str]) -> bytes:
    """A Bloom filter of words: what is in it is found, and 3 of 1,000 others are, too."""
    words = list(words)
    data = bytearray(len(words) * _BITS_A_WORD // 8 + 1)
    for word in words:
        for place in filter_places(word, 8 * len(data)):
            data[place >> 3] |= 1 << (place & 7)
    return bytes(data)


if __name__ == "__main__":
    raise SystemExit(main())
