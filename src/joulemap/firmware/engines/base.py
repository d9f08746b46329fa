"""The seam of every inference engine: a model file in, C sources of the model out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.records.model import ModelSummary

__all__ = ["Engine", "PreparedModel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedModel:
    """A model ready to be rendered into both images.

    Args:
        summary: tensors, layers and sizes.
        files: C sources of the model (file name -> text); they implement ``hpx_model.h`` and nothing else.
        inputs: the input that both images run on, by tensor name.
        reference_output: output bytes of the oracle, all outputs one after another; None without an oracle.
        reference_crc32: checksum of them; None without an oracle.
        oracle: name and version of the oracle; None without one.
    """

    summary: ModelSummary
    files: Mapping[str, str]
    inputs: Mapping[str, NDArray[np.generic[Any]] | NDArray[np.number[Any]]]
    reference_output: bytes | None
    reference_crc32: int | None
    oracle: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))
        object.__setattr__(self, "inputs", MappingProxyType(dict(self.inputs)))


class Engine(Protocol):
    """Turns a model file into C."""

    @property
    def name(self) -> str:
        """Registry name, for example ``aot``."""
        ...

    def prepare(self, path: Path, *, inputs: Mapping[str, NDArray[np.number[Any]]] | None, seed: int) -> PreparedModel:
        """Returns the model as C sources with its input and the oracle's output.

        Args:
            path: model file.
            inputs: by tensor name (or one entry for a model with one input); None for seeded random values in range.
            seed: of the random input.

        Raises:
            InputError: the file is missing, a folder, unreadable or empty.
            EngineError: corrupt, or an op, dtype or quantisation that is not taken; names op, index and tensor.
            SetupError: an extra that the engine needs is missing.
        """
        ...
