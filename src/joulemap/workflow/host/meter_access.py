"""The meter of a run on this machine: found or refused before anything starts, and what it declares of itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from joulemap.analysis.host.parts import MeterLimits
from joulemap.analysis.recorded.gain import live_errors
from joulemap.estimate import Provenance
from joulemap.meters.live.base import RecordingSession
from joulemap.records.finding import Finding
from joulemap.records.live.domain import DomainReading, LiveDomain
from joulemap.runtimes.simulated.meter import EnergySource, SimulatedMeterSpec, SimulatedSession, counter_spec

__all__ = ["MeterAccess", "declared_limits", "simulated_access"]


def _nothing() -> None:
    """Releases nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeterAccess:
    """A meter that can be recorded.

    Args:
        name: as the user names it.
        session: that records it.
        domains: with power, by the name of their traces.
        rest: lets time pass, s.
        simulated: nothing is measured.
        offset_std_w: declared, W.
        noise_std_w: of one sample, W.
        sample_period_s: how often it is read, s; 0.0 for as often as it renews its value.
        close: releases what it holds, started or not; idempotent.
    """

    name: str
    session: RecordingSession
    domains: dict[str, LiveDomain]
    rest: Callable[[float], None]
    simulated: bool
    offset_std_w: float = 0.0
    noise_std_w: float = 0.0
    sample_period_s: float = 0.0
    close: Callable[[], None] = _nothing

    @property
    def update_period_s(self) -> float | None:
        """How often a new value is seen at the least, s; None when a domain does not declare its updates."""
        periods = [domain.update_period_s for domain in self.domains.values()]
        known = [period for period in periods if period is not None]
        return max([*known, self.sample_period_s]) if known and len(known) == len(periods) else None

    @property
    def smear_s(self) -> float:
        """The longest averaging window of a power reading, s."""
        powers = [d for d in self.domains.values() if d.reading is DomainReading.POWER]
        return max((d.window_s or 0.0 for d in powers), default=0.0)


def simulated_access(
    host: EnergySource,
    *,
    seed: int,
    rest: Callable[[float], None] = time.sleep,
    spec: SimulatedMeterSpec | None = None,
) -> MeterAccess:
    """Returns a simulated meter.

    Args:
        host: whose energy it samples.
        seed: of its errors.
        rest: lets time pass on the host's clock, s.
        spec: what it declares; a counter like RAPL's when None.
    """
    spec = spec or counter_spec()
    return MeterAccess(
        name="simulated",
        session=SimulatedSession(spec, host, seed=seed),
        domains={spec.domain.name: spec.domain},
        rest=rest,
        simulated=True,
        offset_std_w=spec.offset_std_w,
        noise_std_w=spec.noise_std_w,
    )


def declared_limits(access: MeterAccess, names: tuple[str, ...]) -> tuple[MeterLimits, tuple[Finding, ...]]:
    """Returns the systematic errors of the domains that are summed; gains of one meter go together.

    Args:
        access: the meter.
        names: of the domains.
    """
    domains = [access.domains.get(name) for name in names]
    errors = [
        live_errors(name, None, Provenance.MEASURED_COUNTER)
        if domain is None
        else live_errors(name, domain.gain_std, domain.provenance)
        for name, domain in zip(names, domains, strict=True)
    ]
    findings = tuple(finding for error in errors for finding in error.findings)
    limits = MeterLimits(
        gain_std=max(error.gain_std for error in errors),
        offset_std_w=access.offset_std_w * len(names),
        noise_std_w=access.noise_std_w,
        rectangular=bool(findings),
    )
    return limits, findings
