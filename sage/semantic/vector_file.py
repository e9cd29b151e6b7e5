"""Vectors kept in the user's cache folder, one sealed file for each base and model.

What is kept can be made again, so every doubt is a reason not to use it. It is data only.
"""

import json
from typing import Any

import numpy as np

from sage.documents.files import Stamp
from sage.semantic.passages import FORMAT, KEY_BYTES
from sage.semantic.vectors import DocumentVectors, Vectors
from sage.terms.index_file import IndexFile, MemoryPart, Part, UntrustedIndex


class VectorFile:
    """The kept vectors of one base and one model."""

    def __init__(self, file: IndexFile, model_id: str) -> None:
        self._file = file
        self._made = {"vectors": FORMAT, "model": model_id}

    def load(self, dimensions: int) -> Vectors | None:
        """What was kept; None when nothing was, or when it is not to be trusted."""
        try:
            found = self._file.read()
            if found is None or found[0].get("made") != self._made:
                return None
            return _unpacked(found[1], dimensions)
        except (UntrustedIndex, LookupError, TypeError, ValueError):
            return None

    def save(self, vectors: Vectors) -> None:
        """Replace what is kept, in one step.

        Raises:
            UntrustedIndex: it cannot be written safely.
        """
        documents = dict(vectors.documents)
        keys = (key for known in documents.values() for key in known.keys)
        kept, numbers, scales = vectors.packed(keys)
        rows = {key: row for row, key in enumerate(kept)}
        listed = [
            [path, list(known.stamp), [rows[key] for key in known.keys]]
            for path, known in documents.items()
            if all(key in rows for key in known.keys)
        ]
        text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
        parts: dict[str, Part] = {
            "documents": MemoryPart(text.encode("utf-8", "surrogatepass")),
            "keys": MemoryPart(b"".join(kept)),
            "scales": MemoryPart(scales.astype("<f4").tobytes()),
            "numbers": MemoryPart(numbers.tobytes()),
        }
        self._file.write({"made": self._made}, parts)


def _unpacked(parts: dict[str, Part], dimensions: int) -> Vectors:
    """What was packed.

    Raises:
        ValueError, TypeError, LookupError: it has another shape.
    """
    data = {name: part.read(0, part.size) for name, part in parts.items()}
    count = len(data["keys"]) // KEY_BYTES
    keys = [data["keys"][at * KEY_BYTES : (at + 1) * KEY_BYTES] for at in range(count)]
    scales = np.frombuffer(data["scales"], "<f4").astype(np.float32)
    numbers = np.frombuffer(data["numbers"], np.int8).reshape(count, dimensions)
    if len(scales) != count or not np.isfinite(scales).all() or len(set(keys)) != count:
        raise ValueError("the vectors and their keys differ")
    vectors = Vectors(dimensions)
    vectors.add_packed(keys, numbers, scales)
    listed: list[Any] = json.loads(data["documents"].decode("utf-8", "surrogatepass"))
    for path, stamp, rows in listed:
        if not all(type(row) is int and 0 <= row < count for row in rows):
            raise ValueError("a document names vectors that are not there")
        known = DocumentVectors(Stamp(*map(int, stamp)), tuple(keys[row] for row in rows))
        vectors.documents[str(path)] = known
    return vectors
