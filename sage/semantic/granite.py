"""IBM's granite-embedding-30m-english: a small RoBERTa encoder, read from an int8 pack.

The pack begins with its name, the length of a JSON header, and the header; a tokenizer and the
tensors follow. Weights are in groups of 64 along the input with one scale each.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from sage.semantic.encoder import Matrix, gelu, layer_norm, normalized, softmax, use_one_thread
from sage.semantic.weights import GRANITE, ModelUnavailable

MAX_TOKENS = 256
_MAGIC = b"HMSEMB01"
_FIRST_POSITION = 2
"""RoBERTa counts positions from here."""


class Granite:
    """The encoder; its vector of a text is that of the first token."""

    dimensions = 384

    def __init__(self) -> None:
        """Raises:
        ModelUnavailable: the weights are missing or not those that were checked.
        """
        use_one_thread()
        header, tokenizer, tensors = _unpacked(GRANITE.read())
        shape = header["arch"]
        self._heads: int = shape["heads"]
        self._layers: int = shape["layers"]
        self._least: float = shape["layer_norm_eps"]
        self._tokenizer = tokenizer
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._words = _quantized(tensors.pop("word_emb"))
        # Read by columns: a product with the transposed weights is what every layer needs.
        self._weights = {
            name: np.ascontiguousarray(_dequantized(*_quantized(tensor)).T)
            if tensor[0]["dtype"] == "i8"
            else np.frombuffer(tensor[1], "<f4").reshape(tensor[0]["shape"])
            for name, tensor in tensors.items()
        }

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 for each text."""
        return normalized(np.stack([self._first(one.ids) for one in self._encoded(texts)]))

    def _encoded(self, texts: Sequence[str]) -> Any:
        return self._tokenizer.encode_batch(list(texts))

    def _first(self, tokens: Sequence[int]) -> Matrix:
        """The last layer's vector of the first token."""
        at = np.array(tokens)
        weights = self._weights
        groups, scales = self._words
        count = len(tokens)
        rows = _dequantized(groups[at], scales[at])
        rows += weights["pos_emb"][_FIRST_POSITION : _FIRST_POSITION + count]
        rows += weights["type_emb"][0]
        rows = layer_norm(rows, weights["emb_ln.w"], weights["emb_ln.b"], self._least)
        for number in range(self._layers):
            # Of the last layer only the first row is used.
            rows = self._layer(number, rows, 1 if number == self._layers - 1 else count)
        first: Matrix = rows[0]
        return first

    def _layer(self, number: int, rows: Matrix, wanted: int) -> Matrix:
        """The first `wanted` rows of what a layer makes of all."""
        own = {
            name: self._weights[f"l{number}.{name}"]
            for part in ("qkv", "ao", "aln", "f1", "f2", "fln")
            for name in (f"{part}.w", f"{part}.b")
        }
        mixed = self._attention(rows @ own["qkv.w"] + own["qkv.b"], wanted)
        mixed = mixed @ own["ao.w"] + own["ao.b"] + rows[:wanted]
        mixed = layer_norm(mixed, own["aln.w"], own["aln.b"], self._least)
        inner = gelu(mixed @ own["f1.w"] + own["f1.b"])
        inner = inner @ own["f2.w"] + own["f2.b"] + mixed
        return layer_norm(inner, own["fln.w"], own["fln.b"], self._least)

    def _attention(self, joined: Matrix, wanted: int) -> Matrix:
        count, width = joined.shape[0], joined.shape[1] // 3
        parts = joined.reshape(count, 3, self._heads, width // self._heads)
        asking, asked, told = parts.transpose(1, 2, 0, 3)
        scores = asking[:, :wanted] @ asked.transpose(0, 2, 1)
        scores *= np.float32((width // self._heads) ** -0.5)
        said = softmax(scores) @ told
        return said.transpose(1, 0, 2).reshape(wanted, width)


Tensor = tuple[dict[str, Any], bytes]


def _unpacked(data: bytes) -> tuple[dict[str, Any], Tokenizer, dict[str, Tensor]]:
    if not data.startswith(_MAGIC):
        raise ModelUnavailable("the pack of granite has another format")
    (size,) = struct.unpack_from("<Q", data, len(_MAGIC))
    at = len(_MAGIC) + 8
    header = json.loads(data[at : at + size])
    at += size
    tokenizer = Tokenizer.from_str(data[at : at + header["tokenizer_len"]].decode())
    at += header["tokenizer_len"]
    tensors: dict[str, Tensor] = {}
    for tensor in header["tensors"]:
        tensors[tensor["name"]] = (tensor, data[at : at + tensor["len"]])
        at += tensor["len"]
    return header, tokenizer, tensors


def _quantized(tensor: Tensor) -> tuple[NDArray[np.int8], Matrix]:
    """The groups of a tensor and their scales."""
    about, data = tensor
    rows, columns = about["shape"]
    groups = columns // about["group"]
    size = rows * columns
    numbers = np.frombuffer(data[:size], "i1").reshape(rows, groups, about["group"])
    return numbers, np.frombuffer(data[size:], "<f4").reshape(rows, groups, 1)


def _dequantized(numbers: NDArray[np.int8], scales: Matrix) -> Matrix:
    rows = numbers.shape[0]
    return (numbers * scales).reshape(rows, -1)
