"""A model of one's own: a folder with ONNX weights and a tokenizer."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from sage.semantic.models import model_named
from sage.semantic.weights import ModelUnavailable

WORDS = ("[UNK]", "cache", "retry", "deploy")
TABLE = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], np.float32)


def field(number: int, value: bytes | str | int) -> bytes:
    """One field of a protobuf message; numbers here are small."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    size = bytearray()
    left = len(data)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([number << 3 | 2, *size, left]) + data


def tensor_type(kind: int, *names: str) -> bytes:
    shape = b"".join(field(1, field(2, name)) for name in names)
    return field(1, field(1, kind) + field(2, shape))


def lookup_model() -> bytes:
    """A graph that gives each token the row of a table."""
    dims = b"".join(field(1, size) for size in TABLE.shape)
    table = dims + field(2, 1) + field(8, "table") + field(9, TABLE.tobytes())
    node = field(1, "table") + field(1, "input_ids") + field(2, "said") + field(4, "Gather")
    asked = field(1, "input_ids") + field(2, tensor_type(7, "one", "tokens"))
    said = field(1, "said") + field(2, tensor_type(1, "one", "tokens", "numbers"))
    graph = field(1, node) + field(2, "g") + field(5, table) + field(11, asked) + field(12, said)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(models.WordLevel({w: at for at, w in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").write_bytes(lookup_model())
    return tmp_path


def test_a_folder_is_a_model_whose_vector_is_the_mean_of_its_tokens(folder: Path) -> None:
    encoder = model_named(str(folder)).load()
    assert encoder.dimensions == 3
    (vector,) = encoder.embed(["cache retry"])
    assert vector == pytest.approx([0.5**0.5, 0.5**0.5, 0.0])


def test_the_folder_may_say_that_the_first_token_counts(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    said = {"pooling_mode_cls_token": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    (vector,) = model_named(str(folder)).load().embed(["cache retry"])
    assert vector == pytest.approx([1.0, 0.0, 0.0])


def test_other_weights_are_another_model(folder: Path) -> None:
    before = model_named(str(folder)).id
    data = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(data.replace(struct.pack("<f", 0.6), struct.pack("<f", 1)))
    assert model_named(str(folder)).id != before


def test_its_nearest_are_never_called_an_answer(folder: Path) -> None:
    bounds = model_named(str(folder)).bounds
    assert bounds.near > 1


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx"])
def test_what_a_folder_lacks_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(ModelUnavailable, match=f"has no {missing}"):
        model_named(str(folder))


def test_a_file_that_is_no_model_is_refused(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        model_named(str(folder)).load()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="there is no folder"):
        model_named(str(tmp_path / "gone"))
