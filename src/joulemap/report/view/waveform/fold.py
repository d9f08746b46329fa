"""All periods of a periodic run on top of each other: the mean period, with the spread of the periods as a band.

Pure. A period is whatever repeats as a slice: the inferences of a profile, the iterations of a recording.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.report.view.scene import Level, PowerUncertainty, Scene, SliceTable, Track
from joulemap.report.view.waveform.streaming import mean_power_of
from joulemap.trace.streamed import Trace

__all__ = ["BINS", "build_fold"]

BINS = 1000
"""Bins of one period."""

_BAND = (5.0, 95.0)  # per cent of the periods


def build_fold(
    trace: Trace,
    slices: SliceTable,
    periods_ns: NDArray[np.int64],
    *,
    origin_ns: int,
    name: str,
    uncertainty: PowerUncertainty | None,
    level: Level | None,
    label: str,
) -> Scene | None:
    """Returns a scene of one period, or None when there are fewer than four periods to lay on top of each other.

    Args:
        trace: power over time.
        slices: of the unfolded scene; those inside a period are placed where they begin on average.
        periods_ns: (p, 2) ns, start and end of each period on the trace's clock.
        origin_ns: start of the unfolded scene, ns.
        name: of the track.
        uncertainty: what its instrument declares.
        level: dashed line.
        label: of the fold.
    """
    count = periods_ns.shape[0]
    if count < 4:
        return None
    span_s = float(np.mean(periods_ns[:, 1] - periods_ns[:, 0])) * 1e-9
    samples = trace.n * span_s / trace.duration_s
    bins = int(min(BINS, max(1, samples // 2)))
    phase = np.arange(bins + 1) / bins
    edges = periods_ns[:, :1] + np.rint((periods_ns[:, 1:] - periods_ns[:, :1]) * phase).astype(np.int64)
    power_w = mean_power_of(trace, edges[:, :-1].ravel(), edges[:, 1:].ravel()).reshape(count, bins)
    seen = np.isfinite(power_w).sum(axis=0) >= max(2, count // 2)
    power_w = power_w[:, seen]
    low, high, mean = (np.full(bins, np.nan) for _ in range(3))
    if power_w.size:
        low[seen], high[seen] = np.nanpercentile(power_w, _BAND, axis=0)
        mean[seen] = np.nanmean(power_w, axis=0)
    track = Track(
        name=name, unit="W", low=low, high=high, mean=mean, uncertainty=uncertainty, spread="5 % and 95 % of periods"
    )
    return Scene(
        label=label,
        span_s=span_s,
        tracks=(track,),
        slices=_fold_slices(slices, np.asarray((periods_ns - origin_ns) * 1e-9, np.float64), span_s),
        bands=(),
        level=level,
        excerpts=(),
        open_s=(0.0, span_s),
        period_s=None,
    )


def _fold_slices(slices: SliceTable, periods_s: NDArray[np.float64], span_s: float) -> SliceTable:
    """Returns one slice per name and turn within a period: mean start, mean length, mean energy over the periods.

    Only names that have the same number of turns in every period in which they occur are folded.
    """
    middle_s = slices.start_s + 0.5 * slices.duration_s
    home = np.searchsorted(periods_s[:, 0], middle_s, side="right") - 1
    inside = (home >= 0) & (slices.duration_s <= span_s * 1.001)
    inside &= middle_s < periods_s[np.clip(home, 0, None), 1]
    rows = np.flatnonzero(inside)
    turn = np.zeros(len(slices), np.int64)
    seen: dict[tuple[int, int, int], int] = {}
    for row in rows.tolist():
        key = (int(home[row]), int(slices.name_index[row]), int(slices.lane_index[row]))
        turn[row] = seen[key] = seen.get(key, -1) + 1
    keys: dict[tuple[int, int, int], list[int]] = {}
    for row in rows.tolist():
        keys.setdefault((int(slices.name_index[row]), int(slices.lane_index[row]), int(turn[row])), []).append(row)
    kept = [(key, np.array(members)) for key, members in keys.items() if 2 * len(members) >= periods_s.shape[0]]
    start_s = np.array([float(np.mean(slices.start_s[m] - periods_s[home[m], 0])) for _, m in kept])
    order = np.argsort(start_s, kind="stable")
    lanes = sorted({key[1] for key, _ in kept})
    renumbered = {lane: k for k, lane in enumerate(lanes)}
    return SliceTable(
        start_s=start_s[order],
        duration_s=np.array([float(np.mean(slices.duration_s[m])) for _, m in kept])[order],
        energy_j=np.array([float(np.mean(slices.energy_j[m])) for _, m in kept])[order],
        name_index=np.array([key[0] for key, _ in kept], np.int32)[order],
        lane_index=np.array([renumbered[key[1]] for key, _ in kept], np.int32)[order],
        names=slices.names,
        lanes=tuple(slices.lanes[lane] for lane in lanes),
    )
