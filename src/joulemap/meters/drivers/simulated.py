"""A power meter that does not exist: it samples a virtual rail with the errors that its specification declares.

It reads the rail's activity, never the truth beside it. What it draws once (gain, offset, clock, skew) is shared by
every capture of the run, as on a bench; noise and sampling phase are new in each. Its clock is 0 at arming.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import PowerError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.rail_integral import RailIntegral
from joulemap.records.fault import FaultPlan, FaultSlug
from joulemap.records.finding import Finding, Severity
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec, MeterRecording
from joulemap.records.rail import RailActivity
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, Marker, SensorKernel

__all__ = ["SimulatedMeter", "SystematicErrors"]

_PACKET_S = 512e-6
"""What one lost USB packet takes with it at the default rate."""
_BLOCK = 1 << 17
"""Samples that are computed at a time: a long gate costs little more memory than its float32 samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystematicErrors:
    """Errors that one instrument keeps for a whole run.

    Args:
        gain: factor on every sample, near 1.
        offset_w: added to every sample, W.
        clock: instrument seconds per second, near 1.
        skew_s: delay of its logic inputs against its samples, s.
    """

    gain: float
    offset_w: float
    clock: float
    skew_s: float

    @classmethod
    def draw(cls, spec: InstrumentSpec, rng: np.random.Generator) -> SystematicErrors:
        """Returns errors drawn from the declared distributions: normal, or rectangular of half-width sqrt(3) std.

        References:
            JCGM 100:2008, 4.3.7: a limit +-a without further knowledge has the standard uncertainty a / sqrt(3).
        """
        if spec.distribution is ErrorDistribution.NORMAL:
            unit = rng.standard_normal(4)
        else:
            unit = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), 4)
        return cls(
            gain=1.0 + spec.gain_std * float(unit[0]),
            offset_w=spec.offset_std_w * float(unit[1]),
            clock=1.0 + spec.clock_std_ppm * 1e-6 * float(unit[2]),
            skew_s=spec.edge_skew_std_s * float(unit[3]),
        )


class SimulatedMeter:
    """Instrument on a virtual rail; implements ``meters.base.PowerMeter``.

    Args:
        spec: its declaration; whatever it says of provenance, what it records is simulated.
        rail: returns the rail's activity of the capture that just ended.
        seed: of every error and noise; equal seeds give equal recordings.
        faults: planted faults: ``capture_empty``, ``capture_lossy``, ``instrument_lost``.
        boundary: what the rail feeds.
        lost_share: share of the samples that a lossy capture loses.
    """

    def __init__(
        self,
        spec: InstrumentSpec,
        rail: Callable[[], RailActivity],
        seed: np.random.SeedSequence | int,
        faults: FaultPlan | None = None,
        *,
        boundary: Boundary = Boundary.RAIL,
        lost_share: float = 0.002,
    ) -> None:
        self._spec = replace(spec, provenance=Provenance.SIMULATED)
        self._rail = rail
        self._seed = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._faults = faults or FaultPlan()
        self._boundary = boundary
        self._lost_share = lost_share
        self._repeat: int | None = None
        self._errors = SystematicErrors.draw(self._spec, self._rng(0))

    @property
    def spec(self) -> InstrumentSpec:
        """What the instrument declares of itself."""
        return self._spec

    @property
    def errors(self) -> SystematicErrors:
        """The errors it keeps; for tests that score it, never for an analysis."""
        return self._errors

    def arm(self, *, repeat: int) -> None:
        """Starts recording the repeat, counted from 1.

        Raises:
            ValueError: repeats are counted from 1.
        """
        if repeat < 1:
            raise ValueError(f"repeats are counted from 1, got {repeat}")
        self._repeat = repeat

    def collect(self) -> MeterRecording:
        """Stops and returns what was recorded since arming.

        Raises:
            PowerError: planted: the instrument went away or delivered nothing.
            RuntimeError: it was not armed.
        """
        repeat = self._armed()
        if self._faults.active(FaultSlug.INSTRUMENT_LOST, repeat):
            raise self._failure("instrument-lost", "went away during the capture", "Check its cable and power.")
        if self._faults.active(FaultSlug.CAPTURE_EMPTY, repeat):
            raise self._failure("capture-empty", "delivered no sample", "Check that it was armed before the reset.")
        return self.record(RailIntegral.build(self._rail()))

    def record(self, integral: RailIntegral, *, scale: float = 1.0) -> MeterRecording:
        """Returns what the armed instrument sees of a rail whose power is ``scale`` times the integral's.

        Raises:
            RuntimeError: it was not armed.
        """
        repeat = self._armed()
        self._repeat = None
        spec, errors, rng = self._spec, self._errors, self._rng(repeat)
        period_s = 1.0 / (spec.rate_hz * errors.clock)
        lead_s = float(rng.uniform()) * period_s
        count = math.ceil((integral.duration_s + lead_s) / period_s)
        power_w = np.empty(count, np.float32)
        for begin in range(0, count, _BLOCK):
            block = power_w[begin : begin + _BLOCK]
            true_w = integral.interval_power_w(-lead_s, period_s, block.size, begin=begin)
            block[:] = self._distort(true_w, scale, rng)
        gaps, findings = self._lose_packets(count, repeat, rng)
        for first, last in gaps:
            power_w[first:last] = 0.0
        trace = EnergyTrace(
            clock=Clock(
                name="instrument",
                kind=ClockKind.SAMPLE_INDEX,
                resolution_ns=1e9 / max(spec.rate_hz, spec.edge_rate_hz),
                rate_std_ppm=spec.clock_std_ppm,
            ),
            channel=Channel(
                name="rail",
                boundary=self._boundary,
                provenance=spec.provenance,
                kernel=SensorKernel(
                    kind=KernelKind.INTERVAL_MEAN, window_s=1.0 / spec.rate_hz, quantum_w=spec.quantum_w
                ),
            ),
            power_w=power_w,
            start_ns=0,
            period_s=1.0 / spec.rate_hz,
            gaps=gaps,
        )
        return MeterRecording(
            instrument=spec, trace=trace, edges=self._see_edges(integral.edges, lead_s), findings=findings
        )

    def _distort(self, power_w: NDArray[np.float64], scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Returns what the instrument makes of ``scale`` times true powers, (k,) W, in place."""
        spec = self._spec
        power_w *= scale * self._errors.gain
        power_w += self._errors.offset_w
        if spec.noise_std_w:
            noise_w = rng.standard_normal(power_w.size, np.float32)
            noise_w *= np.float32(spec.noise_std_w)
            power_w += noise_w
        if spec.quantum_w:
            power_w *= 1.0 / spec.quantum_w
            np.rint(power_w, out=power_w)
            power_w *= spec.quantum_w
        return power_w

    def close(self) -> None:
        """Forgets the arming; idempotent."""
        self._repeat = None

    def _see_edges(self, edges: tuple[Marker, ...], lead_s: float) -> tuple[Marker, ...]:
        """Returns the edges at the first tick of the logic sampling at or after them, on the instrument's clock."""
        seen = []
        for edge in edges:
            instant_s = (edge.time_ns * 1e-9 + self._errors.skew_s + lead_s) * self._errors.clock
            tick = math.ceil(instant_s * self._spec.edge_rate_hz)
            seen.append(replace(edge, time_ns=round(tick / self._spec.edge_rate_hz * 1e9)))
        return tuple(seen)

    def _lose_packets(
        self, count: int, repeat: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], tuple[Finding, ...]]:
        if not self._faults.active(FaultSlug.CAPTURE_LOSSY, repeat):
            return np.empty((0, 2), np.int64), ()
        packet = max(1, round(_PACKET_S * self._spec.rate_hz))
        packets = math.ceil(count / packet)
        lost = np.sort(rng.choice(packets, max(1, round(self._lost_share * packets)), replace=False))
        gaps = np.stack([lost * packet, np.minimum((lost + 1) * packet, count)], axis=1).astype(np.int64)
        samples = int((gaps[:, 1] - gaps[:, 0]).sum())
        message = f"{lost.size} of {packets} packets were lost: {samples} of {count} samples ({samples / count:.3%})"
        finding = Finding(slug="samples_lost", severity=Severity.WARNING, message=message, span=f"repeat {repeat}")
        return gaps, (finding,)

    def _rng(self, stream: int) -> np.random.Generator:
        """Returns the generator of a stream: 0 for what is drawn once, k for the k-th repeat."""
        key = (*self._seed.spawn_key, stream)
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self._seed.entropy, spawn_key=key)))

    def _armed(self) -> int:
        if self._repeat is None:
            raise RuntimeError(f"instrument {self._spec.name} was not armed")
        return self._repeat

    def _failure(self, slug: str, what: str, hint: str) -> PowerError:
        message = f"instrument {self._spec.name} {what} (repeat {self._repeat})"
        return PowerError(message, hint=hint, slug=slug, phase="power", artifact_role="hpx_profiler_power")
