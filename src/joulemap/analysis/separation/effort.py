"""How many samples a fit of rows gets: a few of the middle first, all that fit where those say that more would tell.

A map of ten million slices has containers whose own time is a few nanoseconds between two slices. No number of samples
tells their power, and eight million numbers in memory to find that out cost more than the sweep of all the slices.

References:
    METHODS 1.5 in docs/methods.md (planning formula).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.grouping import LIMIT
from joulemap.analysis.sampling import TraceFacts
from joulemap.analysis.separation.row_clock import ClockDoubt
from joulemap.analysis.separation.separate import Separated, separate_rows
from joulemap.analysis.separation.stretches import PathTable
from joulemap.trace import EnergyTrace
from joulemap.trace.streamed import Trace
from joulemap.trace.sweep import GroupedSlices, Swept

__all__ = ["RESOLVED", "SHARP", "separate_as_needed"]

SHARP = 20.0
"""Slices that last so many samples are read off: their edges hardly matter."""
RESOLVED = 4.0
"""Slices that last so many samples are resolved whatever their neighbours take."""
_HOPELESS = 8.0
"""Recordings like this one beyond which all its samples are not asked for a row: the limit on what is told is twice as
wide as that of the plan, which a quarter of the runs reaches, and the plan of a few samples may be off by two."""
_STRONG = 10.0
"""Mean powers that a row may have which a few samples did not see."""
_CELLS, _SLICES = 8_000_000, 100_000  # design entries (64 MB) and slices at most
_FEW_CELLS, _FEW_SLICES = 400_000, 20_000

Floats = NDArray[np.float64]


def separate_as_needed(
    trace: Trace,
    slices: GroupedSlices,
    swept: Swept,
    facts: TraceFacts,
    *,
    doubt: ClockDoubt,
    paths: PathTable | None = None,
) -> Separated | None:
    """Returns what least squares says of the rows, or None when it cannot be tried.

    Args:
        trace: in memory or streamed.
        slices: of at most one busy track at a time, in order.
        swept: what the rows hold.
        facts: of the trace.
        doubt: of the clock of the slices against the trace's.
        paths: rows of paths when rows are paths.
    """
    groups = swept.count.size

    def separate(cells: int, most: int) -> Separated | None:
        samples, some = max(cells // (groups + 1), 1), _middle(slices, most)
        held = _cut_to_slices(trace, some, samples)
        return separate_rows(held, some, groups, facts, samples=samples, doubt=doubt, paths=paths)

    few = separate(_FEW_CELLS, _FEW_SLICES)
    if few is None:
        return separate(_CELLS, _SLICES)
    part = few.facts.samples / max(_CELLS // (groups + 1), 1)
    if slices.start_ns.size <= _FEW_SLICES and few.facts.samples < _FEW_CELLS // (groups + 1):
        return few  # there are no more
    planned = replace(few, runs_needed=few.runs_needed * part)
    return separate(_CELLS, _SLICES) if _more_tells(planned, swept, facts) else planned


def _more_tells(few: Separated, swept: Swept, facts: TraceFacts) -> bool:
    """Returns whether more samples may tell a row what a few do not."""
    own_s, held_s = _means_s(swept.self_s, swept.pieces), _means_s(swept.duration_s, swept.count)
    resolved, sharp = RESOLVED * facts.sample_s, SHARP * facts.sample_s
    if bool(np.any(held_s < resolved)):
        return True
    settled = few.shift_std_s is not None
    if (few.white or not settled) and bool(np.any(np.minimum(own_s, held_s)[own_s >= resolved] < sharp)):
        return True  # where residuals are white least squares is chosen, and more samples narrow it
    short = own_s < resolved
    runs = np.where(np.isfinite(few.runs_needed), few.runs_needed, _least_runs(few, swept, facts))
    return bool(np.any(runs[short] <= _HOPELESS))


def _least_runs(few: Separated, swept: Swept, facts: TraceFacts) -> Floats:
    """Returns a lower bound on the runs that tell each row if nothing but noise hid it, (g,).

    A sample spends a piece at most in the row, so n of them leave a variance of (noise x sample)^2 / (n piece^2).
    """
    groups = swept.count.size
    samples = min(_CELLS // (groups + 1), facts.seen_s / facts.step_s)
    pieces = swept.pieces * (samples * facts.step_s / facts.seen_s)
    piece_s = np.minimum(_means_s(swept.self_s, swept.pieces), facts.sample_s)
    noise_w = few.facts.residual_std_w
    if few.shift_std_s is None:  # it holds what the slices' place does
        noise_w = min(facts.noise_w, noise_w)
    most_w = _STRONG * abs(facts.energy_j / facts.seen_s)
    share = (1.96 / LIMIT) * noise_w * facts.sample_s
    square = share**2 / np.maximum(pieces * (piece_s * max(most_w, 1e-300)) ** 2, 1e-300)
    return np.asarray(square, np.float64)


def _means_s(time_s: Floats, count: NDArray[np.int64]) -> Floats:
    return np.asarray(np.divide(time_s, count, out=np.full(count.size, math.inf), where=count > 0), np.float64)


def _middle(slices: GroupedSlices, most: int) -> GroupedSlices:
    excess = slices.start_ns.size - most
    if excess <= 0:
        return slices
    part = slice(excess // 2, excess // 2 + most)  # the middle of many says as much as all of them
    columns = {name: getattr(slices, name)[part] for name in ("start_ns", "end_ns", "group", "track")}
    return replace(slices, **columns)


def _cut_to_slices(trace: Trace, slices: GroupedSlices, samples: int) -> EnergyTrace:
    """Returns the samples that :func:`separate_rows` looks at, in memory.

    A trace that is in memory stays whole. Of a streamed one the middle of the slices' time is read.
    """
    if isinstance(trace, EnergyTrace):
        return trace
    counted = slices.group >= 0
    if not counted.any():
        return trace.load(0, 1)
    bounds = int(slices.start_ns[counted].min()), int(slices.end_ns[counted].max())
    first = max(math.ceil((bounds[0] - trace.start_ns) / trace.step_ns), 0)
    last = max(min(math.floor((bounds[1] - trace.start_ns) / trace.step_ns), trace.n), first)
    first = max(first, (first + last - samples) // 2)
    return trace.load(first, max(min(last, first + samples), first))
