"""Arithmetic that several here share, and the one thread it is done in."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Matrix: TypeAlias = NDArray[np.float32]


def use_one_thread() -> None:
    """Let the matrix library use one core for as long as the process lives: the rest is for calls.

    Nothing else here multiplies matrices.
    """
    threadpool_limits(limits=1, user_api="blas")


def normalized(rows: Matrix) -> Matrix:
    """Rows of length 1, so that their products are cosines."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit: Matrix = rows / np.maximum(lengths, np.float32(1e-9))[:, None]
    return unit


def layer_norm(rows: Matrix, gain: Matrix, bias: Matrix, least: float) -> Matrix:
    """Rows of mean 0 and variance 1, scaled and moved."""
    rows = rows - rows.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / np.float32(rows.shape[-1])
    rows *= (1 / np.sqrt(variance + np.float32(least)))[:, None]
    rows *= gain
    rows += bias
    return rows
