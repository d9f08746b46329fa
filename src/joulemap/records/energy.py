"""The answer: energy per inference, per layer, per group, and what no layer holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from joulemap.estimate import Quantity
from joulemap.records.finding import Finding

__all__ = ["BudgetLine", "EnergyAccount", "EnergyGroup", "GapEnergy", "LayerEnergy", "Resolution"]


class Resolution(StrEnum):
    """How an energy was resolved."""

    OVERLAP = "overlap"
    LEAST_SQUARES = "least_squares"
    IN_PLACE = "in_place"
    TIME_SHARE = "time_share"  # a share of the time at mean power: modelled, never measured
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """One contribution to the uncertainty of the headline.

    Args:
        name: ``gain``, ``offset``, ``noise``, ``edges``, ``clock``, ``lost``, ``repeats``.
        kind: ``A`` or ``B``.
        std_j: standard uncertainty that it contributes to J/inference, J.
        dof: its degrees of freedom; ``math.inf`` for type B.
    """

    name: str
    kind: str
    std_j: float
    dof: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEnergy:
    """Energy of one layer per inference.

    Args:
        index: layer index.
        duration_s: mean duration per inference inside the gate, s.
        energy_j: J; unavailable when the layer is part of a group or refused.
        share: of the gate energy per inference; None when energy_j is unavailable.
        group: id of the group that holds it; None when it stands alone.
        resolution: how.
    """

    index: int
    duration_s: float
    energy_j: Quantity
    share: float | None
    group: str | None
    resolution: Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyGroup:
    """Neighbouring layers whose sum is known and whose parts are not.

    Args:
        id: for example ``g1``.
        layers: layer indices.
        contains_gap: the gap is part of the sum.
        duration_s: s per inference.
        energy_j: J per inference.
    """

    id: str
    layers: tuple[int, ...]
    contains_gap: bool
    duration_s: float
    energy_j: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class GapEnergy:
    """What no layer holds: input load, loop, marks. Unavailable when a group contains it."""

    duration_s: float
    energy_j: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAccount:
    """Everything that the analysis says of a power run, per inference. Layers, groups and gap add up to the gate.

    Args:
        energy_per_inference_j: total inside GATE over N, J.
        energy_above_idle_per_inference_j: the same less idle power times time, J.
        inferences_per_j: 1/J.
        ops_per_j: operations per joule, a MAC counted as two.
        average_power_w: inside GATE, W.
        peak_power_w: highest sample inside GATE, W, at the instrument's bandwidth.
        peak_bandwidth_hz: that bandwidth, Hz.
        latency_s: GATE over N, s.
        idle_power_w: before GATE, W.
        layers: one per layer of the model.
        groups: unidentifiable neighbours.
        gap: what no layer holds.
        budget: contributions to the headline's uncertainty.
        findings: doubts of the analysis.
    """

    energy_per_inference_j: Quantity
    energy_above_idle_per_inference_j: Quantity
    inferences_per_j: Quantity
    ops_per_j: Quantity
    average_power_w: Quantity
    peak_power_w: Quantity
    peak_bandwidth_hz: float
    latency_s: Quantity
    idle_power_w: Quantity
    layers: tuple[LayerEnergy, ...]
    groups: tuple[EnergyGroup, ...]
    gap: GapEnergy
    budget: tuple[BudgetLine, ...]
    findings: tuple[Finding, ...] = ()
