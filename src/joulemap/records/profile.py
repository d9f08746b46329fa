"""The profile run: what the instrumented image printed, per pass, in cycles of the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.records.finding import Finding
from joulemap.records.firmware import DeploymentRecord, FirmwareArtifact

__all__ = ["PmuResult", "ProfileRun"]


def _frozen(values: NDArray[np.int64]) -> NDArray[np.int64]:
    array = np.array(values, np.int64)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PmuResult:
    """Counter results of the profile image.

    Args:
        core_hz: core clock that the cycles count, Hz.
        counter_source: ``dwt``, ``virtual_pmu``, ...
        clean_cycles: (passes,) cycles of one whole inference without instrumentation.
        instrumented_cycles: (passes,) cycles of one whole inference with a mark after each layer.
        head_cycles: (passes,) cycles before the first layer (input load), mark cost taken out.
        layer_cycles: (passes, layers) cycles of each layer, mark cost taken out.
        mark_cycles: cycles of one mark, as the firmware measured it on an empty layer.
        layer_instructions: (layers,) issued instructions per inference, counted by the board; None when it cannot.
        output_crc32: of the output after the last pass; None when the stream had none.
        findings: doubts, for example a counter that overflowed.
    """

    core_hz: float
    counter_source: str
    clean_cycles: NDArray[np.int64]
    instrumented_cycles: NDArray[np.int64]
    head_cycles: NDArray[np.int64]
    layer_cycles: NDArray[np.int64]
    mark_cycles: int
    layer_instructions: NDArray[np.int64] | None
    output_crc32: int | None
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        for name in ("clean_cycles", "instrumented_cycles", "head_cycles", "layer_cycles"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        if self.layer_instructions is not None:
            object.__setattr__(self, "layer_instructions", _frozen(self.layer_instructions))
        if self.layer_cycles.ndim != 2 or self.layer_cycles.shape[0] != self.head_cycles.size:
            raise ValueError(f"layer_cycles must be (passes, layers), got {self.layer_cycles.shape}")
        if not self.clean_cycles.size or not self.layer_cycles.size:
            raise ValueError("a profile needs at least one clean pass and one instrumented pass")

    @property
    def clean_latency_s(self) -> float:
        """Median latency of one inference without instrumentation, s."""
        return float(np.median(self.clean_cycles)) / self.core_hz

    @property
    def layer_duration_s(self) -> NDArray[np.float64]:
        """(layers,) median duration of each layer, s."""
        return np.asarray(np.median(self.layer_cycles, axis=0) / self.core_hz, np.float64)

    @property
    def head_duration_s(self) -> float:
        """Median duration of the input load before the first layer, s."""
        return float(np.median(self.head_cycles)) / self.core_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRun:
    """The profile phase as one record: what was built, what was flashed, what it said."""

    firmware: FirmwareArtifact
    deployment: DeploymentRecord
    result: PmuResult
