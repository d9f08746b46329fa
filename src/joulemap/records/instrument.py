"""What an instrument declares of itself, and what it recorded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from joulemap.estimate import Provenance
from joulemap.records.finding import Finding
from joulemap.trace import EnergyTrace, Marker

__all__ = ["ErrorDistribution", "InstrumentSpec", "MeterRecording"]


class ErrorDistribution(StrEnum):
    """How the declared systematic errors are distributed."""

    NORMAL = "normal"
    RECTANGULAR = "rectangular"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentSpec:
    """Declared limits of a power meter with logic inputs. All ``_std`` are standard uncertainties (1 sd).

    Args:
        name: for example ``virtual-shunt``.
        rate_hz: output sample rate, Hz; each sample is the mean of its period.
        gain_std: relative gain.
        offset_std_w: offset, W.
        noise_std_w: noise of one output sample, W.
        quantum_w: resolution of a sample, W; 0 for none.
        clock_std_ppm: rate of its clock, ppm.
        edge_rate_hz: sampling rate of its logic inputs, Hz.
        edge_skew_std_s: constant skew between logic inputs and power samples, s.
        distribution: of gain, offset, clock and skew.
        provenance: of what it records: ``simulated`` or ``measured_sampled``.
        source: where the figures come from.
    """

    name: str
    rate_hz: float
    gain_std: float
    offset_std_w: float
    noise_std_w: float
    quantum_w: float
    clock_std_ppm: float
    edge_rate_hz: float
    edge_skew_std_s: float
    distribution: ErrorDistribution
    provenance: Provenance
    source: str

    def __post_init__(self) -> None:
        if not (self.rate_hz > 0 and self.edge_rate_hz > 0):
            raise ValueError(f"instrument {self.name}: rate_hz and edge_rate_hz must be > 0")
        limits = (
            self.gain_std,
            self.offset_std_w,
            self.noise_std_w,
            self.quantum_w,
            self.clock_std_ppm,
            self.edge_skew_std_s,
        )
        if not all(limit >= 0 for limit in limits):
            raise ValueError(f"instrument {self.name}: no declared limit may be negative")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeterRecording:
    """What the instrument gave back for one capture, on the instrument's own clock.

    Args:
        instrument: its declaration.
        trace: power samples; lost ones are gaps.
        edges: edges of READY and GATE as its logic inputs saw them, in order; names are ``Line`` values.
        findings: doubts of the recording (lost packets, an instrument that went away).
    """

    instrument: InstrumentSpec
    trace: EnergyTrace
    edges: tuple[Marker, ...]
    findings: tuple[Finding, ...] = ()
