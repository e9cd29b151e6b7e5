"""IBM's granite-embedding-30m-english: a small RoBERTa encoder, read from an int8 pack.

The pack begins with its name, the length of a JSON header, and the header; a tokenizer and the
tensors follow. Weights are in groups of 64 along the input with one scale each. The layers become
one ONNX model: numpy takes twice the time, and its many short calls would wait for the interpreter.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from sage.semantic.encoder import Matrix, normalized
from sage.semantic.onnx_graph import Graph
from sage.semantic.onnx_session import OnnxSession
from sage.semantic.weights import GRANITE, ModelUnavailable

MAX_TOKENS = 256
_MAGIC = b"HMSEMB01"
_FIRST_POSITION = 2
"""RoBERTa counts positions from here."""
_GIVEN = "rows"


class Granite:
    """The encoder; its vector of a text is that of the first token."""

    dimensions = 384

    def __init__(self) -> None:
        """Raises:
        ModelUnavailable: the weights are missing or not those that were checked.
        """
        header, self._tokenizer, tensors = _unpacked(GRANITE.read())
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._words = _quantized(tensors.pop("word_emb"))
        weights = {name: _weights(tensor) for name, tensor in tensors.items()}
        self._places = weights["pos_emb"] + weights["type_emb"][0]
        self._session = OnnxSession(_Layers(header["arch"], weights).model())

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 for each text."""
        encoded = self._tokenizer.encode_batch(list(texts))
        return normalized(np.stack([self._first(one.ids) for one in encoded]))

    def _first(self, tokens: Sequence[int]) -> Matrix:
        """The last layer's vector of the first token."""
        at = np.array(tokens)
        groups, scales = self._words
        rows = _dequantized(groups[at], scales[at])
        rows += self._places[_FIRST_POSITION : _FIRST_POSITION + len(tokens)]
        first: Matrix = self._session.run({_GIVEN: rows})[0]
        return first


class _Layers:
    """The layers as an ONNX model, from the tokens' vectors to that of the first token."""

    def __init__(self, shape: dict[str, Any], weights: dict[str, Matrix]) -> None:
        self._graph = Graph()
        self._weights = weights
        self._heads: int = shape["heads"]
        self._layers: int = shape["layers"]
        self._least: float = shape["layer_norm_eps"]
        self._width = weights["emb_ln.w"].shape[0]

    def model(self) -> bytes:
        """The file."""
        rows = self._norm(_GIVEN, "emb_ln")
        for number in range(self._layers):
            rows = self._layer(rows, f"l{number}", is_last=number == self._layers - 1)
        return self._graph.model(_GIVEN, rows, self._width)

    def _layer(self, rows: str, name: str, is_last: bool) -> str:
        """What a layer makes of the rows; of the last one only the first row is used."""
        apply, numbers = self._graph.apply, self._graph.numbers
        size = self._width // self._heads
        joined = apply(
            "Reshape", self._dense(rows, f"{name}.qkv"), numbers(0, 3, self._heads, size)
        )
        parts = apply("Transpose", joined, perm=(1, 2, 0, 3))
        asking, asked, told = (
            apply("Squeeze", apply("Gather", parts, numbers(part), axis=0), numbers(0))
            for part in range(3)
        )
        if is_last:
            asking = apply("Slice", asking, numbers(0), numbers(1), numbers(1))
            rows = apply("Slice", rows, numbers(0), numbers(1), numbers(0))
        scale = self._graph.constant(np.array([size**-0.5], np.float32))
        scores = apply(
            "MatMul", apply("Mul", asking, scale), apply("Transpose", asked, perm=(0, 2, 1))
        )
        said = apply("MatMul", apply("Softmax", scores, axis=-1), told)
        mixed = apply("Reshape", apply("Transpose", said, perm=(1, 0, 2)), numbers(0, self._width))
        mixed = apply("Add", self._dense(mixed, f"{name}.ao"), rows)
        mixed = self._norm(mixed, f"{name}.aln")
        inner = apply("Gelu", self._dense(mixed, f"{name}.f1"))
        return self._norm(apply("Add", self._dense(inner, f"{name}.f2"), mixed), f"{name}.fln")

    def _dense(self, rows: str, name: str) -> str:
        weights, bias = self._own(name)
        return self._graph.apply("Add", self._graph.apply("MatMul", rows, weights), bias)

    def _norm(self, rows: str, name: str) -> str:
        gain, bias = self._own(name)
        return self._graph.apply(
            "LayerNormalization", rows, gain, bias, axis=-1, epsilon=self._least
        )

    def _own(self, name: str) -> tuple[str, str]:
        constant, weights = self._graph.constant, self._weights
        return constant(weights[f"{name}.w"]), constant(weights[f"{name}.b"])


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


def _weights(tensor: Tensor) -> Matrix:
    """A tensor as numbers; one of a product by columns, as rows are multiplied with it."""
    about, data = tensor
    if about["dtype"] == "i8":
        return np.ascontiguousarray(_dequantized(*_quantized(tensor)).T)
    return np.frombuffer(data, "<f4").reshape(about["shape"])


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
