"""What the analysis says of a measurement on this machine, beyond the account that every profile has."""

from __future__ import annotations

from dataclasses import dataclass

from joulemap.estimate import Estimate, Provenance, Quantity
from joulemap.records.energy import EnergyAccount

__all__ = ["EnergyClosure", "HostAccount", "LatencyQuantile", "Reconciliation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyQuantile:
    """A quantile of the latency with an interval from order statistics.

    Args:
        probability: 0..1.
        value_s: s; None when there are too few executions for an interval.
        low_s: lower end, s.
        high_s: upper end, s.
        coverage_probability: of the interval.
        executions: that were timed.
        independent: how many independent ones they are worth.
        provenance: of the times.
        reason: slug of why there is no value; empty when there is one.
    """

    probability: float
    value_s: float | None
    low_s: float | None
    high_s: float | None
    coverage_probability: float
    executions: int
    independent: float
    provenance: Provenance
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyClosure:
    """Whether operators, gap and idle add up to what the windows of the whole model hold, per inference.

    Args:
        operators_above_idle_j: sum over operators and groups, each measured by itself, less idle power, J.
        gap_above_idle_j: measured without operators, less idle power, J.
        idle_j: idle power times the inference's latency, J.
        window_j: of the windows of the whole model, J.
        difference_j: sum less window, J, with its own uncertainty.
        closed: the difference is within its uncertainty.
        independent: the gap was measured by itself; False when it is what is left, so that the sum says nothing.
    """

    operators_above_idle_j: float
    gap_above_idle_j: float
    idle_j: float
    window_j: float
    difference_j: Estimate
    closed: bool
    independent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The session that told operator times against the one that was measured.

    Args:
        source: how the times came about.
        unprofiled_s: mean latency of the measured windows, s.
        profiled_s: mean latency of the other session, s; None when the times are no session of their own.
        overhead: relative excess of the profiled latency; None without one.
        repeated_sum_s: sum of the operators' times by repetition and of the gap, s; None without repetition.
        time_closure: the same over the unprofiled latency, less one; None without repetition.
    """

    source: str
    unprofiled_s: float
    profiled_s: float | None
    overhead: float | None
    repeated_sum_s: float | None
    time_closure: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccount:
    """The account of a run on this machine.

    Args:
        account: headline, operators as layers, groups, gap, budget, findings.
        modelled_j: one per operator: its part of the energy by time alone.
        quantiles: of the latency.
        closure: None when no operator was measured by itself.
        reconciliation: of the sessions.
    """

    account: EnergyAccount
    modelled_j: tuple[Quantity, ...]
    quantiles: tuple[LatencyQuantile, ...]
    closure: EnergyClosure | None
    reconciliation: Reconciliation
