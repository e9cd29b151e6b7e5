"""The extra `semantic`: these tests need it installed, and `make semantic` installs it."""

import pytest

NOT_INSTALLED = "the extra semantic is not installed; `make semantic` installs it and runs these"

for _library in ("numpy", "onnxruntime", "threadpoolctl", "tokenizers"):
    pytest.importorskip(_library, reason=NOT_INSTALLED)
