"""Google's Universal Sentence Encoder, multilingual, version 3: sixteen languages in one space.

Words are averaged with what a few convolutions say of their neighbours; three dense layers
follow. The tokenizer is a SentencePiece file, of which the pieces and the table of characters are
read; the weights are arrays of numpy.
"""

import io
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from sage.semantic.encoder import Matrix, layer_norm, normalized
from sage.semantic.weights import MULTILINGUAL, PIECES

MAX_TOKENS = 384
_BEGIN, _END = 1, 2
_CHUNKS = 17
"""The words' vectors lie in so many tables in turn, each with its own scale."""
_WINDOWS = {2: (0, 1), 3: (1, 1), 5: (2, 2)}
"""How many neighbours before and after a word each convolution sees."""


class Multilingual:
    """The encoder."""

    dimensions = 512

    def __init__(self) -> None:
        """Raises:
        ModelUnavailable: the weights are missing or not those that were checked.
        """
        self._tokenizer = _read_tokenizer(PIECES.read())
        self._tokenizer.enable_truncation(MAX_TOKENS)
        with np.load(io.BytesIO(MULTILINGUAL.read()), allow_pickle=False) as arrays:
            tables = [arrays[f"q{number}"] for number in range(1, _CHUNKS + 1)]
            self._arrays: dict[str, Matrix] = {
                name: arrays[name] for name in arrays.files if not name.startswith("q")
            }
        self._words = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])
        self._least = float(self._arrays["eps"])

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 for each text."""
        encoded = self._tokenizer.encode_batch(list(texts))
        return normalized(np.stack([self._one([_BEGIN, *one.ids, _END]) for one in encoded]))

    def _one(self, tokens: Sequence[int]) -> Matrix:
        arrays = self._arrays
        at = np.array(tokens)
        words = self._words[at].astype(np.float32)
        words *= arrays["scale"][at % _CHUNKS, None]
        words += arrays["lo"][at % _CHUNKS, None]
        features = np.concatenate([words, *self._neighbours(words)], axis=1)
        features = layer_norm(features, arrays["ln_g"], arrays["ln_b"], self._least)
        count = np.float32(len(tokens))
        mean = (features.sum(0) @ arrays["cnn_W"] + count * arrays["cnn_b"]) / np.sqrt(count)
        first = mean @ arrays["p1"] + np.maximum(mean @ arrays["d0"], 0) @ arrays["d1"]
        first = np.maximum(first, 0)
        second = np.maximum(first @ arrays["d2"], 0)
        said: Matrix = np.tanh(first @ arrays["p3"] + second @ arrays["d3"])
        return said

    def _neighbours(self, words: Matrix) -> list[Matrix]:
        """What three pairs of convolutions make of each word and those around it."""
        arrays = self._arrays
        rows = words @ self._joined("proj", axis=1) + self._joined("proj_b")
        rows = layer_norm(rows, self._joined("ln_g"), self._joined("ln_b"), self._least)
        said: list[Matrix] = []
        for part, (size, around) in zip(np.split(rows, 3, axis=1), _WINDOWS.items(), strict=True):
            for step in (1, 2):
                seen = _windows(part, *around) @ arrays[f"w{step}_{size}"]
                part = part + np.maximum(seen + arrays[f"b{step}_{size}"], 0)
            said.append(part)
        return said

    def _joined(self, name: str, axis: int = 0) -> Matrix:
        """The arrays of that name of all windows as one."""
        return np.concatenate([self._arrays[f"{name}{size}"] for size in _WINDOWS], axis=axis)


def _windows(rows: Matrix, before: int, after: int) -> Matrix:
    """Each row side by side with its neighbours; nothing stands beyond the ends."""
    count = len(rows)
    padded = np.pad(rows, ((before, after), (0, 0)))
    return np.concatenate([padded[at : at + count] for at in range(before + after + 1)], axis=1)


def _read_tokenizer(data: bytes) -> Tokenizer:
    """The tokenizer of a SentencePiece file: its pieces with their scores, and its characters."""
    pieces: list[tuple[str, float]] = []
    characters = b""
    for field, value in _fields(data):
        if field == 1:
            piece = dict(_fields(value))
            (score,) = struct.unpack("<f", piece.get(2, bytes(4)))
            pieces.append((piece[1].decode(), score))
        elif field == 3:
            characters = dict(_fields(value)).get(2, b"")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(characters),
            normalizers.Strip(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    return tokenizer


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message that are bytes, texts or floats, with their numbers."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _number(data, at)
            continue
        size = 8 if kind == 1 else 4
        if kind == 2:
            size, at = _number(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
