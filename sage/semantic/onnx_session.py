"""The ONNX runtime: a model, opened to be run in one thread."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from sage.semantic.encoder import Matrix

Given: TypeAlias = NDArray[np.int64] | Matrix


class OnnxSession:
    """One model. A run lets go of the interpreter's lock, so that calls are answered meanwhile."""

    def __init__(self, model: Path | bytes) -> None:
        """Raises:
        Exception: what the runtime raises for a model that it cannot read.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Texts have all lengths: memory that is kept for each of them would only grow.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        # What a file asks of the runtime beyond arithmetic is not told to the operator's log.
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model),
            options,
            providers=["CPUExecutionProvider"],
        )
        self.inputs = frozenset(one.name for one in self._session.get_inputs())

    def run(self, given: Mapping[str, Given]) -> Matrix:
        """The first thing that the model gives."""
        said: Matrix = np.asarray(self._session.run(None, dict(given))[0], dtype=np.float32)
        return said
