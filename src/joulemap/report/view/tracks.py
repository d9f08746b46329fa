"""Traces and counters as tracks of a scene: bins of one length, exact extremes and means; pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.report.view.scene import Excerpt, PowerUncertainty, Track
from joulemap.trace import EnergyTrace
from joulemap.trace.pages import release_samples
from joulemap.trace.resample import Envelope, build_envelope

__all__ = ["BINS", "bin_trace", "build_excerpt", "build_power_track", "build_value_track", "plan_edges"]

BINS = 4000
"""Bins of a track over the whole scene."""


def plan_edges(start_ns: int, end_ns: int, *, bins: int = BINS) -> NDArray[np.int64]:
    """Returns (b + 1,) ns: at most ``bins`` bins of one whole length; the last may reach past the end.

    Args:
        start_ns: of the scene.
        end_ns: of the scene, > start_ns.
        bins: at most so many.

    Raises:
        ValueError: the scene has no length.
    """
    span_ns = end_ns - start_ns
    if span_ns <= 0:
        raise ValueError(f"a scene needs a length, got {start_ns}..{end_ns} ns")
    step_ns = -(-span_ns // bins)
    count = -(-span_ns // step_ns)
    return start_ns + step_ns * np.arange(count + 1, dtype=np.int64)


_PASS = 1 << 24
"""Samples at a time: 64 MB of those that lie in a file."""


def bin_trace(trace: EnergyTrace, edges_ns: NDArray[np.int64], *, at_once: int = _PASS) -> Envelope:
    """Returns lowest, highest and mean power of each bin, a bounded number of samples at a time.

    Args:
        trace: power over time; its samples may lie in a mapped file of any size.
        edges_ns: (b + 1,) ns on its clock, strictly increasing.
        at_once: samples that are read at a time, about.
    """
    bins = edges_ns.size - 1
    span_ns = max(trace.end_ns - trace.start_ns, 1)
    within = min(max(int(edges_ns[-1]) - int(edges_ns[0]), 1), span_ns)
    passes = max(1, round(trace.n * (within / span_ns)) // at_once)
    step = -(-bins // passes)
    parts = []
    for at in range(0, bins, step):
        parts.append(build_envelope(trace, edges_ns[at : at + step + 1]))
        release_samples(trace)
    if len(parts) == 1:
        return parts[0]
    return Envelope(
        edges_ns=edges_ns,
        low_w=np.concatenate([part.low_w for part in parts]),
        high_w=np.concatenate([part.high_w for part in parts]),
        mean_w=np.concatenate([part.mean_w for part in parts]),
    )


def build_power_track(
    trace: EnergyTrace, edges_ns: NDArray[np.int64], *, name: str, uncertainty: PowerUncertainty | None
) -> Track:
    """Returns a power trace as a track.

    Args:
        trace: power over time.
        edges_ns: (b + 1,) ns on its clock.
        name: to show.
        uncertainty: what its instrument declares.
    """
    envelope = bin_trace(trace, edges_ns)
    return Track(
        name=name, unit="W", low=envelope.low_w, high=envelope.high_w, mean=envelope.mean_w, uncertainty=uncertainty
    )


def build_value_track(
    time_ns: NDArray[np.int64], value: NDArray[np.float64], edges_ns: NDArray[np.int64], *, name: str, unit: str
) -> Track:
    """Returns a counter over time (utilisation, clock, temperature) as a track; each value holds until the next.

    Args:
        time_ns: (n,) ns, non-decreasing.
        value: (n,); NaN for a sample that is missing.
        edges_ns: (b + 1,) ns on the same clock.
        name: to show.
        unit: SI unit, ``1`` for a share.
    """
    bins = edges_ns.size - 1
    low, high, mean = (np.full(bins, np.nan) for _ in range(3))
    begin = np.searchsorted(time_ns, edges_ns[:-1], side="right") - 1  # the value that holds when the bin opens
    end = np.searchsorted(time_ns, edges_ns[1:], side="left")
    for k in range(bins):
        first, last = max(int(begin[k]), 0), int(end[k])
        seen = value[first:last]
        if not np.isfinite(seen).any():
            continue
        bounds = np.append(np.clip(time_ns[first:last], edges_ns[k], None), edges_ns[k + 1]).astype(np.float64)
        weight = np.where(np.isfinite(seen), np.diff(bounds), 0.0)
        low[k], high[k] = np.nanmin(seen), np.nanmax(seen)
        mean[k] = np.nansum(seen * weight) / weight.sum() if weight.sum() > 0 else np.nanmean(seen)
    return Track(name=name, unit=unit, low=low, high=high, mean=mean)


def build_excerpt(
    trace: EnergyTrace, start_ns: int, end_ns: int, *, origin_ns: int, bins: int, label: str, track: int = 0
) -> Excerpt:
    """Returns a window of a trace: its raw samples when they are uniform and few enough, else finer bins.

    Args:
        trace: power over time.
        start_ns: ns on its clock.
        end_ns: ns, > start_ns.
        origin_ns: start of the scene, ns.
        bins: at most so many.
        label: why it is here.
        track: index of its track.
    """
    if trace.period_s is not None:
        first = max(0, int((start_ns - trace.start_ns) // trace.step_ns))
        last = min(trace.n, int(-(-(end_ns - trace.start_ns) // trace.step_ns)))
        if 0 < last - first <= bins:
            power_w = trace.power_w[first:last].astype(np.float64)
            for left, right in np.clip(_gaps_within(trace, first, last) - first, 0, power_w.size):
                power_w[left:right] = np.nan
            begin_s = (trace.start_ns - origin_ns) * 1e-9 + first * trace.period_s
            return Excerpt(
                label=label,
                track=track,
                start_s=begin_s,
                step_s=trace.period_s,
                low=power_w,
                high=power_w,
                mean=power_w,
            )
    edges_ns = plan_edges(start_ns, end_ns, bins=bins)
    envelope = bin_trace(trace, edges_ns)
    return Excerpt(
        label=label,
        track=track,
        start_s=float(start_ns - origin_ns) * 1e-9,
        step_s=float(edges_ns[1] - edges_ns[0]) * 1e-9,
        low=envelope.low_w,
        high=envelope.high_w,
        mean=envelope.mean_w,
    )


def _gaps_within(trace: EnergyTrace, first: int, last: int) -> NDArray[np.int64]:
    """Returns the gaps that touch the samples first..last (exclusive)."""
    gaps = trace.gaps
    return gaps[np.searchsorted(gaps[:, 1], first, side="right") : np.searchsorted(gaps[:, 0], last, side="left")]
