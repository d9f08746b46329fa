"""What is known after each stage of a run on this machine: typed variants, each with all that came before."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from joulemap.analysis.host.plan import WeightRoom, WindowPlan
from joulemap.analysis.host.steadiness import Steadiness
from joulemap.analysis.host.window_energy import WindowEnergy
from joulemap.estimate import Boundary, Provenance
from joulemap.records.finding import Finding, Validity
from joulemap.records.host.account import HostAccount
from joulemap.records.host.campaign import Load, LoadWindow, OperatorTimes
from joulemap.records.host.model import ExecutionAudit
from joulemap.records.host.request import HostRequest
from joulemap.records.progress import ProgressSink
from joulemap.records.recording import Recording
from joulemap.runtimes.base import Runtime, RuntimeSession
from joulemap.trace import EnergyTrace
from joulemap.workflow.host.meter_access import MeterAccess

__all__ = ["Accounted", "Loaded", "Planned", "Ready", "Recorded", "Started", "Timed", "grow", "operator_shares"]

_Next = TypeVar("_Next", bound="Started")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Started:
    """What was asked, and the services of the run.

    Args:
        request: what was asked.
        progress: takes updates.
        findings: so far.
    """

    request: HostRequest
    progress: ProgressSink
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready(Started):
    """Runtime and meter are there; nothing was started."""

    runtime: Runtime
    access: MeterAccess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded(Ready):
    """The model runs on its inputs and has warmed up.

    Args:
        session: of the model as it is.
        warm_up: what the series of latencies says.
        latency_s: mean of the warm ones, s.
    """

    session: RuntimeSession
    warm_up: Steadiness
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timed(Loaded):
    """The time of each operator is known from a session of its own."""

    times: OperatorTimes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned(Timed):
    """It is known what will run: one window of every load and one idle window in each block."""

    plan: WindowPlan
    room: WeightRoom
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded(Planned):
    """The windows were recorded.

    Args:
        windows: in order of time.
        recording: what the meter gave.
        trace: that the account is made of: the sum of disjoint domains.
        domains: names of what was summed.
    """

    windows: tuple[LoadWindow, ...]
    recording: Recording
    trace: EnergyTrace
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accounted(Recorded):
    """The account was made.

    Args:
        energies: of the windows of whole blocks.
        account: None when no headline may be made.
        reason: slug of why there is none; empty when there is one.
        validity: of the run.
        audit: where and in what the operators ran.
    """

    energies: tuple[WindowEnergy, ...]
    account: HostAccount | None
    reason: str
    validity: Validity
    audit: ExecutionAudit

    @property
    def boundary(self) -> Boundary:
        """What was measured."""
        return self.trace.channel.boundary

    @property
    def time_provenance(self) -> Provenance:
        """What kind of number the times are."""
        return Provenance.SIMULATED if self.runtime.traits.simulated else Provenance.MEASURED_COUNTER

    @property
    def shares(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(operators,) share of the time."""
        return operator_shares(self.times)


def operator_shares(times: OperatorTimes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns (operators,) shares of the sum of all operators' usual times; NaN where not known."""
    usual_s = times.usual_s
    total_s = float(np.nansum(usual_s))
    return np.asarray(usual_s / total_s if total_s > 0 else np.full(usual_s.size, np.nan), np.float64)


def grow(context: Started, kind: type[_Next], **known: object) -> _Next:
    """Returns the next variant: all that the context holds, and what is known now."""
    held = {field.name: getattr(context, field.name) for field in fields(context)}
    findings = known.pop("findings", ())
    assert isinstance(findings, tuple)  # of findings
    held["findings"] = (*context.findings, *findings)
    return kind(**(held | known))
