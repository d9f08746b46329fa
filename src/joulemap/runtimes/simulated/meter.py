"""A meter that samples a known energy with declared errors; implements ``meters.live.base.RecordingSession``.

The energy is that of a virtual host, or of this machine as if it took one power while a runtime runs and another while
it does not. Everything it records is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import PowerError
from joulemap.estimate import Boundary, Provenance
from joulemap.records.live.domain import DomainReading, LiveDomain
from joulemap.records.recording import Recording
from joulemap.runtimes.simulated.virtual_host import VirtualHost
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel

__all__ = ["EnergySource", "SimulatedMeterSpec", "SimulatedSession", "counter_spec", "power_spec"]


class EnergySource(Protocol):
    """What a simulated meter samples."""

    def now_ns(self) -> int:
        """Returns the present instant, ns."""
        ...

    def energy_j(self, at_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the energy until each instant, (k,) J."""
        ...


_RAPL_UNIT_J = 2.0**-14


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMeterSpec:
    """What the meter declares, and the errors that it is drawn with.

    Args:
        domain: its only domain; ``gain_std`` and ``update_period_s`` must be declared.
        offset_std_w: standard uncertainty of its offset, W; of power readings only.
        noise_std_w: noise of one power reading, W.
        quantum: smallest step of a raw reading.
    """

    domain: LiveDomain
    offset_std_w: float = 0.0
    noise_std_w: float = 0.0
    quantum: float = 1.0


def counter_spec(*, gain_std: float = 0.002, update_period_s: float = 1e-3) -> SimulatedMeterSpec:
    """Returns a counter of energy like RAPL's: steps of 61 uJ, a modulus of 2^32 of them."""
    domain = LiveDomain(
        name="package-0",
        reading=DomainReading.ENERGY_COUNTER,
        unit="J",
        scale=_RAPL_UNIT_J,
        provenance=Provenance.SIMULATED,
        boundary=Boundary.PACKAGE,
        modulus=2.0**32,
        update_period_s=update_period_s,
        gain_std=gain_std,
        source="declared by the simulated meter",
    )
    return SimulatedMeterSpec(domain=domain)


def power_spec(
    *, gain_std: float = 0.002, update_period_s: float = 0.02, noise_std_w: float = 0.05
) -> SimulatedMeterSpec:
    """Returns a power sensor that averages over its update period and rounds to a milliwatt."""
    domain = LiveDomain(
        name="board",
        reading=DomainReading.POWER,
        unit="W",
        scale=1e-3,
        provenance=Provenance.SIMULATED,
        boundary=Boundary.BOARD,
        update_period_s=update_period_s,
        window_s=update_period_s,
        gain_std=gain_std,
        source="declared by the simulated meter",
    )
    return SimulatedMeterSpec(domain=domain, offset_std_w=0.01, noise_std_w=noise_std_w)


class SimulatedSession:
    """Records the known energy from ``start`` to ``stop``.

    Args:
        spec: declaration and errors.
        seed: of gain, offset and noise; equal seeds give equal errors.
        host: whose energy and clock.
    """

    def __init__(self, spec: SimulatedMeterSpec, host: EnergySource, *, seed: int | np.random.SeedSequence) -> None:
        self._spec, self._host = spec, host
        self._rng = np.random.default_rng(seed)
        declared = spec.domain.gain_std or 0.0
        self.gain = 1.0 + declared * float(self._rng.standard_normal())
        self._offset_w = spec.offset_std_w * float(self._rng.standard_normal())
        self._start_ns: int | None = None

    @property
    def clock(self) -> Clock:
        """The host's clock: virtual, or this machine's monotonic one."""
        kind = ClockKind.VIRTUAL if isinstance(self._host, VirtualHost) else ClockKind.MONOTONIC
        return Clock(name="host", kind=kind)

    def now_ns(self) -> int:
        """Returns the present instant, ns."""
        return self._host.now_ns()

    def start(self) -> None:
        """Begins to record."""
        self._start_ns = self.now_ns()

    def stop(self) -> Recording:
        """Returns what was recorded.

        Raises:
            PowerError: it was not started, or stopped before the meter renewed its value twice (``capture-empty``).
        """
        start_ns, end_ns = self._start_ns, self.now_ns()
        period_ns = round((self._spec.domain.update_period_s or 1e-3) * 1e9)
        if start_ns is None or end_ns - start_ns < 2 * period_ns:
            raise PowerError(
                "the simulated meter recorded nothing",
                hint="record for longer than two of its updates",
                slug="capture-empty",
                phase="power",
            )
        self._start_ns = None
        edges_ns = np.arange(start_ns, end_ns + 1, period_ns, dtype=np.int64)
        return Recording(format="simulated", sources=(), traces=(self._trace(edges_ns),))

    def _trace(self, edges_ns: NDArray[np.int64]) -> EnergyTrace:
        domain, scale = self._spec.domain, self._spec.domain.scale
        energy_j = self._host.energy_j(edges_ns)
        step_s = np.diff(edges_ns) * 1e-9
        if domain.reading is DomainReading.ENERGY_COUNTER:
            counts = np.floor(energy_j * self.gain / scale / self._spec.quantum + self._rng.uniform())
            power_w = np.diff(counts) * self._spec.quantum * scale / step_s
            kind, quantum_w = KernelKind.COUNTER, 0.0
        else:
            read_w = np.diff(energy_j) / step_s * self.gain + self._offset_w
            read_w += self._rng.normal(0.0, self._spec.noise_std_w, read_w.size)
            quantum_w = scale * self._spec.quantum
            power_w = np.rint(read_w / quantum_w) * quantum_w
            kind = KernelKind.INTERVAL_MEAN
        kernel = SensorKernel(kind=kind, window_s=float(domain.update_period_s or 0.0), quantum_w=quantum_w)
        assert domain.boundary is not None  # a domain with power has one
        channel = Channel(name=domain.name, boundary=domain.boundary, provenance=Provenance.SIMULATED, kernel=kernel)
        return EnergyTrace(
            clock=self.clock, channel=channel, power_w=power_w, start_ns=int(edges_ns[0]), edges_ns=edges_ns
        )
