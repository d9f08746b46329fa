"""What a published scoring rule needs, as the source wrote it: samples in file order, window, counts. Nothing computed.

MLPerf's rules are about the numbers in the files, not about physics: which samples, in which order, over which edges.
A trace cannot hold that (it knows intervals), so the readers of those sources keep it beside the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["EnergyrunnerRun", "EnergyrunnerTrial", "EnergyrunnerTrials", "MlperfRun", "PublishedRun"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MlperfRun:
    """An MLPerf Inference power run.

    Args:
        time_ns: (n,) ns UTC, the stamp of every line of ``spl.txt`` in file order.
        power_w: (n,) W, the first ``Watts`` of each line; negative and zero ones included.
        begin_ns: ``power_begin`` of the detail log, ns UTC.
        end_ns: ``power_end``, ns UTC.
        scenario: ``effective_scenario`` as written; empty when the log does not say.
        queries: ``result_query_count``; None when the log does not say (v1.1).
        samples_per_query: ``effective_samples_per_query``; None when the log does not say.
    """

    time_ns: NDArray[np.int64]
    power_w: NDArray[np.float64]
    begin_ns: int
    end_ns: int
    scenario: str = ""
    queries: int | None = None
    samples_per_query: int | None = None

    def __post_init__(self) -> None:
        if self.time_ns.shape != self.power_w.shape or self.time_ns.ndim != 1:
            raise ValueError("time_ns and power_w must be one-dimensional and of one length")
        for column in (self.time_ns, self.power_w):
            column.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyrunnerRun:
    """An EEMBC EnergyRunner capture (MLPerf Tiny v0.5 to v1.2).

    Args:
        energy_uj: (n,) uJ of each sample, float32 as written.
        rate_hz: sample rate, Hz, as written.
        stamps_s: time stamps as written, s; start and stop of a window alternate after the first.
        iterations: inferences per window (``iterInfer`` of the log); None when no log says it.
    """

    energy_uj: NDArray[np.float32]
    rate_hz: float
    stamps_s: tuple[float, ...]
    iterations: int | None = None

    def __post_init__(self) -> None:
        self.energy_uj.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyrunnerTrial:
    """One trial of the v1.3 runner.

    Args:
        energy_j: (n,) J of each sample.
        begin: index of the first sample of the window.
        end: index of the first sample after it.
        iterations: inferences in the window.
    """

    energy_j: NDArray[np.float64]
    begin: int
    end: int
    iterations: int

    def __post_init__(self) -> None:
        self.energy_j.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyrunnerTrials:
    """A results file of the v1.3 runner.

    Args:
        trials: in file order.
        rate_hz: sample rate, Hz.
    """

    trials: tuple[EnergyrunnerTrial, ...]
    rate_hz: float = 1000.0


PublishedRun = MlperfRun | EnergyrunnerRun | EnergyrunnerTrials
