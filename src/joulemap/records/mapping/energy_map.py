"""The answer of ``map``: which slices hold the energy, what is idle, and how each figure was had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from joulemap.estimate import Quantity
from joulemap.records.energy import BudgetLine, Resolution
from joulemap.records.finding import Finding
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.row_fit_facts import RowFitFacts, RowGroup

__all__ = ["EnergyMap", "MapRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """One row: all slices of a key.

    Args:
        key: name, operator, layer, kernel or path.
        count: slices inside the recorded time.
        outside: slices that reach beyond it; they are in no figure.
        energy_j: held by slices that are not inside another one of the key, J.
        self_j: less what slices inside them hold, J.
        share: self energy over the total; None when there is none.
        cumulative_share: sum of the shares down to this row; None when there is none.
        duration_s: of slices that are not inside another one of the key, s.
        self_s: time in which a slice of the key is innermost, s.
        mean_power_w: energy over duration, W.
        resolution: how the energies were had.
        reason: slug of why they were refused; empty otherwise.
        runs_needed: how often the same work would have to be recorded for 5 %; None when the energy is there or nothing
            helps.
        noise_j: the part of the standard uncertainty of self_j that more of the same work averages down, J; None when
            there is no figure.
    """

    key: str
    count: int
    outside: int
    energy_j: Quantity
    self_j: Quantity
    share: float | None
    cumulative_share: float | None
    duration_s: float
    self_s: float
    mean_power_w: Quantity
    resolution: Resolution
    reason: str = ""
    runs_needed: float | None = None
    noise_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyMap:
    """Where the energy of a trace went.

    Args:
        total_j: of the whole trace, J.
        idle_j: while no track was busy, J.
        power_w: mean over the seen time, W.
        duration_s: of the trace, s.
        busy_s: while a track was busy, s.
        rows: the largest self energy first.
        split: between tracks that are busy at once.
        concurrent: most tracks busy at once.
        rule: by which the figures were made.
        metrics: further figures by key, in the unit of the key's suffix.
        clocks: how the timeline was put on the trace's clock; further relations that the recording gives.
        budget: contributions to the total's uncertainty.
        findings: doubts.
        groups: rows without an energy of their own whose sum is known.
        fit: what least squares over the rows rests on; None when no row came from it.
        per: what the figures are of: empty for the recording, else one unit of it.
    """

    total_j: Quantity
    idle_j: Quantity
    power_w: Quantity
    duration_s: float
    busy_s: float
    rows: Sequence[MapRow]
    split: str
    concurrent: int
    rule: str = "joulemap"
    metrics: Mapping[str, object] = field(default_factory=dict)
    clocks: tuple[ClockMap, ...] = ()
    budget: tuple[BudgetLine, ...] = ()
    findings: tuple[Finding, ...] = ()
    groups: tuple[RowGroup, ...] = ()
    fit: RowFitFacts | None = None
    per: str = ""
