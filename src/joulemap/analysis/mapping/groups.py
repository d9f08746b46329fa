"""Rows that are known as a sum alone: by least squares, or as what the rows that are told leave of the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from joulemap.analysis.intervals.uncertainty import Kind, Term, estimate
from joulemap.analysis.mapping.row_figures import edge_columns, energy_terms, shared_terms
from joulemap.analysis.mapping.rows import OVERLAP, REFUSED, RowInputs
from joulemap.estimate import Estimate
from joulemap.records.mapping.row_fit_facts import RowGroup

__all__ = ["build_groups", "rest_terms"]

_MOST = 1000
"""Rows of one sum at most: a longer list tells nobody anything."""


def build_groups(keys: Sequence[str], inputs: RowInputs) -> tuple[RowGroup, ...]:
    """Returns the rows that only their sum is known of, with that sum; rows that have a figure are left out."""
    separated, swept = inputs.separated, inputs.swept
    if separated is None:
        return _rest(keys, inputs) if swept.concurrent > 1 else ()
    refused = inputs.ways(own=True) == REFUSED
    groups = []
    for told in separated.sums:
        rows = [row for row in told.rows if row < len(keys)]
        if not refused[rows].all():
            continue
        idle_s = max(inputs.facts.seen_s - swept.busy_s, 0.0)
        own_s = [float(swept.self_s[row]) if row < len(keys) else idle_s for row in told.rows]
        energy_j = math.fsum(watts * time_s for watts, time_s in zip(told.power_w, own_s, strict=True))
        shared = shared_terms(energy_j, math.fsum(own_s), inputs.known)
        noise = Term(name="noise", std=told.share_std * abs(energy_j), kind=Kind.A, dof=told.dof)
        groups.append(
            RowGroup(
                keys=tuple(keys[row] for row in rows),
                contains_idle=len(rows) < len(told.rows),
                energy_j=_figure(energy_j, (*shared, noise), inputs),
                self_s=math.fsum(float(swept.self_s[row]) for row in rows),
            )
        )
    return tuple(groups)


def _rest(keys: Sequence[str], inputs: RowInputs) -> tuple[RowGroup, ...]:
    """Returns all refused rows and the idle time as one sum, where tracks are busy at once.

    Least squares cannot tell such rows, since a split of power between tracks is a rule and no measurement; what the
    other rows leave of the whole is known all the same.
    """
    swept = inputs.swept
    refused = np.flatnonzero((inputs.ways(own=True) == REFUSED) & (swept.pieces > 0) & (swept.self_s > 0))
    if not 0 < refused.size <= _MOST or not inputs.facts.seen_s > 0:
        return ()
    own_s = float(swept.self_s[refused].sum())
    energy_j = swept.idle_j + float(swept.self_j[refused].sum()) - inputs.given_back_j
    time_s = max(inputs.facts.seen_s - swept.busy_s, 0.0) + own_s
    return (
        RowGroup(
            keys=tuple(keys[row] for row in refused.tolist()),
            contains_idle=True,
            energy_j=_figure(energy_j, rest_terms(energy_j, time_s, inputs), inputs),
            self_s=own_s,
        ),
    )


def rest_terms(energy_j: float, time_s: float, inputs: RowInputs) -> tuple[Term, ...]:
    """Returns the terms of what the rows by overlap leave of the whole.

    Args:
        energy_j: of the rest, J.
        time_s: of it, s.
        inputs: of the rows.
    """
    told = inputs.ways(own=True) == OVERLAP
    slope_w = np.abs(inputs.probe.slope_w[told, 1].sum(keepdims=True))
    return (
        *energy_terms(energy_j, time_s, inputs.known),
        Term(name="rows", std=math.hypot(0.0, *inputs.probe.blur_j[told, 1].tolist())),
        *(term.at(0) for term in edge_columns(slope_w, inputs.shift_s, inputs.late_s)),
    )


def _figure(energy_j: float, terms: Sequence[Term], inputs: RowInputs) -> Estimate:
    return estimate(
        energy_j, terms, provenance=inputs.provenance, boundary=inputs.boundary, monte_carlo=inputs.monte_carlo
    )
