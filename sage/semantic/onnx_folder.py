"""A model of one's own: a folder with ONNX weights and a tokenizer.

The operator names the folder; what is in it is read as numbers and rules, and no code of it runs.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from sage.semantic.encoder import Matrix, normalized
from sage.semantic.onnx_session import OnnxSession
from sage.semantic.weights import ModelUnavailable

TOKENIZER = "tokenizer.json"
WEIGHTS = ("model.onnx", "model_quantized.onnx", "model_int8.onnx", "onnx/model.onnx")
"""Where weights are looked for; otherwise the folder's only .onnx file."""
POOLING = "1_Pooling/config.json"
MAX_TOKENS = 256
MAX_BYTES = 2 << 30


class OnnxFolder:
    """An encoder from a folder; its vector is the mean of the tokens', or that of the first."""

    def __init__(self, folder: Path) -> None:
        """Raises:
        ModelUnavailable: the folder holds no such model.
        """
        weights = weights_of(folder)
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._session = OnnxSession(weights)
        except Exception as error:  # both libraries raise exceptions of their own
            raise ModelUnavailable(f"the model in {folder} cannot be read: {error}") from error
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._first_token = _uses_first_token(folder)
        self.dimensions = int(self.embed(["a"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 for each text."""
        encoded = self._tokenizer.encode_batch(list(texts))
        return normalized(np.stack([self._one(one.ids) for one in encoded]))

    def _one(self, tokens: Sequence[int]) -> Matrix:
        ids = np.array([tokens or [0]], dtype=np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = self._session.inputs & given.keys()
        rows: Matrix = self._session.run({name: given[name] for name in wanted})[0]
        if rows.ndim == 1:
            return rows
        pooled: Matrix = rows[0] if self._first_token else rows.mean(axis=0)
        return pooled


def weights_of(folder: Path) -> Path:
    """The weights in a folder.

    Raises:
        ModelUnavailable: there are none, or no tokenizer beside them.
    """
    if not (folder / TOKENIZER).is_file():
        raise ModelUnavailable(f"search.model: {folder} has no {TOKENIZER}")
    named = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    found = named or sorted(folder.glob("*.onnx"))
    if not found or (not named and len(found) > 1):
        raise ModelUnavailable(f"search.model: {folder} has no {WEIGHTS[0]}")
    if found[0].stat().st_size > MAX_BYTES:
        raise ModelUnavailable(f"search.model: {found[0]} is larger than {MAX_BYTES:,} bytes")
    return found[0]


def digest_of(folder: Path) -> str:
    """A name for what a folder's model is: another one whenever its files are others."""
    digest = hashlib.blake2b(digest_size=8)
    for path in (weights_of(folder), folder / TOKENIZER, folder / POOLING):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _uses_first_token(folder: Path) -> bool:
    """Whether the folder's pooling, in the form of sentence-transformers, takes the first token."""
    try:
        said = json.loads((folder / POOLING).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(said, dict) and said.get("pooling_mode_cls_token") is True
