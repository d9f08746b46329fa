"""Energies of the model, of its parts and of the gap from blocks of windows, each with its terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.host.repetition import BlockedLoads, Combination, slope_weights
from joulemap.analysis.host.window_energy import WindowEnergy
from joulemap.analysis.intervals.uncertainty import Term, combine, limit_std, mean_term
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.campaign import BASE, EXACT, InPlaceError, Load, LoadKind, OperatorTimes, TimeSource

__all__ = ["HostFit", "MeterLimits", "PartEnergy", "fit_parts"]

LIMIT = 0.25
"""Largest relative half-width of an operator that stands alone."""
_SCATTER = 0.05
_REAL = 2.0
"""Standard deviations beyond which two times of one operator differ by more than their noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterLimits:
    """What the meter declares of its systematic errors.

    Args:
        gain_std: relative standard uncertainty.
        offset_std_w: standard uncertainty, W.
        noise_std_w: of one sample, W.
        rectangular: gain and offset are rectangular.
    """

    gain_std: float
    offset_std_w: float = 0.0
    noise_std_w: float = 0.0
    rectangular: bool = False

    def terms(self, energy_j: float, duration_s: float) -> tuple[Term, ...]:
        """Returns gain and offset of an energy, J."""
        return (
            Term(name="gain", std=abs(energy_j) * self.gain_std, rectangular=self.rectangular),
            Term(name="offset", std=abs(duration_s) * self.offset_std_w, rectangular=self.rectangular),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEnergy:
    """Operators that were repeated together.

    Args:
        operators: indices.
        energy_j: per inference, J.
        duration_s: per inference, s, by repetition.
        terms: contributions to the uncertainty of the energy, J.
    """

    operators: tuple[int, ...]
    energy_j: float
    duration_s: float
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFit:
    """What the windows say.

    Args:
        base_j: of one inference, J.
        base_s: of one inference, s.
        base_terms: of base_j, J.
        parts: operators and the group, in order; empty when nothing was repeated.
        gap_j: outside operators, per inference, J.
        gap_s: the same, s.
        gap_terms: of gap_j, J.
        gap_measured: by windows without operators; else it is what is left.
        complete: every operator is in a part, so that parts and gap must add up to the model.
        closure_j: parts and gap less base_j, J.
        closure_terms: of closure_j, J.
        overhead: relative excess of the profiled latency; None without a profiled session.
        findings: doubts.
    """

    base_j: float
    base_s: float
    base_terms: tuple[Term, ...]
    parts: tuple[PartEnergy, ...]
    gap_j: float
    gap_s: float
    gap_terms: tuple[Term, ...]
    gap_measured: bool
    closure_j: float
    closure_terms: tuple[Term, ...]
    overhead: float | None
    complete: bool = False
    findings: tuple[Finding, ...] = field(default=())


def fit_parts(
    windows: Sequence[WindowEnergy],
    times: OperatorTimes,
    limits: MeterLimits,
    *,
    idle_w: float | None,
    in_place_error: InPlaceError = EXACT,
) -> HostFit:
    """Returns the energies of model, parts and gap.

    Args:
        windows: of whole blocks: each block holds one window of every load.
        times: of operators in another session.
        limits: declared by the meter.
        idle_w: idle power, W; None when it is not known.
        in_place_error: of operators that were repeated.

    Raises:
        ValueError: fewer than two blocks.
    """
    loads = tuple(dict.fromkeys(w.window.load for w in windows if w.window.load.kind is LoadKind.REPEATED))
    energy = BlockedLoads.build((BASE, *loads), _table(windows, (BASE, *loads), "energy_j"))
    time = BlockedLoads.build((BASE, *loads), _table(windows, (BASE, *loads), "time_s"))
    whole, base_s = energy.combine({0: 1.0}), float(time.means[0])
    bare = [w for w in windows if w.window.load.kind is LoadKind.BARE]
    overhead = None if times.usual_latency_s is None else times.usual_latency_s / base_s - 1.0
    findings = _scatter(energy)
    if not loads:
        gap_j, gap_s, gap_terms = _gap(bare, limits) if bare else _gap_by_time(times, whole, base_s, idle_w)
        return HostFit(
            base_j=whole.value,
            base_s=base_s,
            base_terms=(*whole.terms(), *limits.terms(whole.value, base_s)),
            parts=(),
            gap_j=gap_j,
            gap_s=gap_s,
            gap_terms=gap_terms,
            gap_measured=bool(bare),
            closure_j=0.0,
            closure_terms=(),
            overhead=overhead,
            findings=findings,
        )
    parts, merged = _parts(energy, time, times, limits)
    columns = range(1, len(energy.loads))
    left = slope_weights(energy.loads, list(columns))
    left[0] -= 1.0  # parts less the whole
    open_j, open_s = energy.combine(left), time.combine(left)
    told = {k for part in parts for k in part.operators}
    complete = len(told) == times.duration_s.shape[1]
    if bare:
        gap_j, gap_s, gap_terms = _gap(bare, limits)
    elif not complete:  # what is left is not the gap alone
        gap_j, gap_s, gap_terms = _gap_by_time(times, whole, base_s, idle_w)
    else:
        gap_j, gap_s = -open_j.value, max(-open_s.value, 0.0)
        gap_terms = (*open_j.terms(), *limits.terms(gap_j, gap_s))
    told_s = limit_std(in_place_error.half_width(base_s, executions=len(told)))
    perturbed = _perturbation(open_s, gap_s, base_s, told_s) if complete else 0.0

    def in_place(value_j: float, executions: int) -> Term:
        half_j = in_place_error.half_width(value_j, executions=executions, per_s=whole.value / base_s)
        return Term(name="in place", std=limit_std(half_j))

    def widened(part: PartEnergy) -> PartEnergy:
        missed = Term(name="perturbation", std=abs(part.energy_j) * perturbed)
        added = (in_place(part.energy_j, len(part.operators)), missed)
        return replace(part, terms=(*part.terms, *(term for term in added if term.std)))

    closure_j = open_j.value + gap_j
    closure_terms = (
        *open_j.terms(),
        *(t for t in gap_terms if t.name in {"noise", "repeats"} and bare),
        *(t for t in limits.terms(closure_j, 0.0) if t.name == "gain"),
        in_place(open_j.value + whole.value, len(told)),
    )
    if bare and complete:
        findings = (*findings, *_doubt(closure_j, closure_terms, whole.value))
    return HostFit(
        base_j=whole.value,
        base_s=base_s,
        base_terms=(*whole.terms(), *limits.terms(whole.value, base_s)),
        parts=tuple(map(widened, parts)),
        gap_j=gap_j,
        gap_s=gap_s,
        gap_terms=gap_terms,
        gap_measured=bool(bare),
        complete=complete,
        closure_j=closure_j,
        closure_terms=closure_terms,
        overhead=overhead,
        findings=(*findings, *merged),
    )


def _table(windows: Sequence[WindowEnergy], loads: Sequence[Load], quantity: str) -> NDArray[np.float64]:
    blocks = sorted({w.window.block for w in windows if w.window.load == BASE})
    at = {(w.window.block, w.window.load): getattr(w, quantity) for w in windows}
    return np.array([[at[block, load] for load in loads] for block in blocks], np.float64)


def _gap(bare: Sequence[WindowEnergy], limits: MeterLimits) -> tuple[float, float, tuple[Term, ...]]:
    gap_j, term = mean_term(np.array([w.energy_j for w in bare]), name="noise")
    gap_s = float(np.mean([w.time_s for w in bare]))
    return gap_j, gap_s, (term, *limits.terms(gap_j, gap_s))


def _gap_by_time(
    times: OperatorTimes, whole: Combination, base_s: float, idle_w: float | None
) -> tuple[float, float, tuple[Term, ...]]:
    """Returns what is left of the latency by operator times, at the mean power, give or take all that is above idle."""
    usual_s = float(np.nansum(times.usual_s)) if times.duration_s.size else base_s
    other_s = times.usual_latency_s or base_s
    gap_s = min(max(other_s - usual_s, 0.0) * min(1.0, base_s / other_s), base_s)
    mean_w = whole.value / base_s
    reach_w = mean_w - idle_w if idle_w is not None and idle_w < mean_w else mean_w
    return mean_w * gap_s, gap_s, (Term(name="power", std=limit_std(reach_w * gap_s), rectangular=True),)


def _parts(
    energy: BlockedLoads, time: BlockedLoads, times: OperatorTimes, limits: MeterLimits
) -> tuple[tuple[PartEnergy, ...], tuple[Finding, ...]]:
    """Returns the parts; what its windows do not tell well enough goes to the group, which is told as a sum."""
    columns = list(range(1, len(energy.loads)))
    together = [c for c in columns if len(energy.loads[c].operators) > 1]
    alone = [c for c in columns if c not in together]

    def part(chosen: Sequence[int]) -> PartEnergy:
        weights = slope_weights(energy.loads, chosen)
        held, lasted = energy.combine(weights), time.combine(weights)
        operators = tuple(sorted(k for c in chosen for k in energy.loads[c].operators))
        own = _own_perturbation(lasted, operators, times, float(time.means[0]))
        terms = (
            *held.terms(),
            *limits.terms(held.value, lasted.value),
            Term(name="warmth", std=abs(held.value) * own),
        )
        return PartEnergy(operators=operators, energy_j=held.value, duration_s=lasted.value, terms=terms)

    moved = []
    for column in list(alone):
        if _half_width(part([column])) > LIMIT:
            alone.remove(column)
            moved.append(column)
    together += moved
    while alone and together and _half_width(part(together)) > LIMIT:
        worst = max(alone, key=lambda c: _half_width(part([c])))
        alone.remove(worst)
        together.append(worst)
        moved.append(worst)
    found = [part([column]) for column in alone] + ([part(together)] if together else [])
    if not moved:
        return tuple(found), ()
    operators = "1 operator" if len(moved) == 1 else f"{len(moved)} operators"
    message = f"{operators} cannot be told within {LIMIT:.0%} by their windows: told as a sum with others"
    return tuple(found), (Finding(slug="layers_grouped", severity=Severity.INFO, message=message),)


def _half_width(part: PartEnergy) -> float:
    return combine(part.terms).expanded / part.energy_j if part.energy_j > 0 else math.inf


def _perturbation(open_s: Combination, gap_s: float, base_s: float, in_place_s: float) -> float:
    """Returns the relative standard uncertainty for repeated operators that take other times than single ones.

    Their times and the gap should add up to the latency. What they miss beyond noise and the declared error of
    repetition is a limit for each of them; that the parts close is judged without it.
    """
    missed_s = open_s.value + gap_s
    expected_s = _REAL * math.hypot(open_s.std, in_place_s)
    return limit_std(math.sqrt(max(missed_s**2 - expected_s**2, 0.0)) / base_s)


def _own_perturbation(lasted: Combination, operators: Sequence[int], times: OperatorTimes, base_s: float) -> float:
    """Returns the same for one part, by its time in the profiled session; 0 where that is no second opinion."""
    if times.source is not TimeSource.PROFILER or lasted.value <= 0:
        return 0.0
    passes_s = times.duration_s[:, list(operators)].sum(axis=1)
    if passes_s.size < 2 or times.latency_s.size < 2 or not np.isfinite(passes_s).all():
        return 0.0
    profiled_s = float(times.latency_s.mean())
    whole_std_s = float(times.latency_s.std(ddof=1)) / math.sqrt(times.latency_s.size)
    watched_s = (abs(profiled_s - base_s) + _REAL * whole_std_s) / times.duration_s.shape[1] * len(operators)
    noise_s = math.hypot(lasted.std, float(passes_s.std(ddof=1)) / math.sqrt(passes_s.size))
    off_s = float(passes_s.mean()) * min(1.0, base_s / profiled_s) - lasted.value
    real_s2 = max(off_s**2 - (_REAL * noise_s) ** 2 - watched_s**2, 0.0)
    return limit_std(math.sqrt(real_s2) / lasted.value)


def _scatter(energy: BlockedLoads) -> tuple[Finding, ...]:
    if energy.noise_rel <= _SCATTER:
        return ()
    message = f"windows of one load differ by {energy.noise_rel:.1%} (1 sd): something else ran on this machine"
    return (Finding(slug="windows_scatter", severity=Severity.WARNING, message=message),)


def _doubt(closure_j: float, terms: Sequence[Term], base_j: float) -> tuple[Finding, ...]:
    if abs(closure_j) <= combine(terms).expanded:
        return ()
    message = f"operators, gap and idle differ from the windows of the whole model by {closure_j / base_j:+.2%}"
    return (Finding(slug="closure_failed", severity=Severity.WARNING, message=message),)
