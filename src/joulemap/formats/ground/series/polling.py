"""When a polled sensor renewed what it shows, and so which time its values are of.

A sensor that renews its value every T shows at u the mean of (u - T, u], until the next renewal. A poll finds the new
value some time after u: u lies between the last poll that shows the old value and the first that shows the new one, in
the middle on average. A poll at s therefore tells of the time up to s - T + half a poll, held until the next poll's.
Renewals that come as evenly as a clock are known better than that: each pair of polls bounds the one line they lie on.
It must not know any format.

References:
    METHODS 1.1 (an interval mean holds over the preceding window; a polled repeat is no new sample);
    JCGM 100:2008, 4.3.7 (limits without further knowledge: half-width over the root of 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog, gap_ranges
from joulemap.records.finding import Severity
from joulemap.trace import EnergyTrace

__all__ = ["DatedPolls", "date_polls", "merge_polled"]

_CHANGES: Final = 20
"""Values from which on their stays say how often a sensor renews."""
_SHORT_STAY: Final = 0.1
_REPEATED: Final = 1.5
"""Polls that the shorter stays last: power that happens to read alike does not do that."""
_SOME_REPEATED: Final = 1.1
_WAITED: Final = 1.75
"""Polls after which a late one says nothing of when a value came."""
_PLAIN_S: Final = 0.2
"""Renewals slower than this are told from stays only where values do not come back: power itself may have stayed."""
_NEW: Final = 0.5
_EVEN: Final = 0.75
"""How far a renewal may lie from the line of all, in distances of the polls around it: half, and some jitter."""
_JITTER: Final = 0.1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DatedPolls:
    """What polls tell of the instants of their values.

    Args:
        late_s: by which the time that a poll tells of ends before it, s.
        std_s: standard uncertainty of a common shift, rectangular, s.
        renewal_s: between two renewals, s; None where that is not known.
        seen_ns: (m,) last polls with an old value, less what they are late, ns; those that are dated better than so.
        even_ns: (m,) where the times that they tell of end, ns.
    """

    late_s: float = 0.0
    std_s: float = 0.0
    renewal_s: float | None = None
    seen_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    even_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def late_ns(self) -> int:
        """How late a poll is, ns."""
        return round(self.late_s * 1e9)


def date_polls(time_ns: Ints, value: Floats, *, renewal_s: float | None, slowest_s: float = math.inf) -> DatedPolls:
    """Returns when a sensor renewed what polls show.

    Args:
        time_ns: (n,) ns; polls that do not move time forward are of no account.
        value: (n,) what they show; NaN for nothing.
        renewal_s: between two renewals, s; None to tell it from how long values stay.
        slowest_s: the slowest renewal that is told so, s.
    """
    forward = np.ones(time_ns.size, np.bool_)
    forward[1:] = time_ns[1:] > np.maximum.accumulate(time_ns)[:-1]
    stamp_ns, shown = time_ns[forward], value[forward]
    if stamp_ns.size < 2:
        return DatedPolls()
    poll_s = float(np.median(np.diff(stamp_ns))) * 1e-9
    both = np.isfinite(shown[1:]) & np.isfinite(shown[:-1])
    new = np.flatnonzero(both & (shown[1:] != shown[:-1])) + 1
    renewal_s = renewal_s or _find_renewal_s(stamp_ns, (shown, new), poll_s, slowest_s)
    if renewal_s is None:  # a look at the instant of the poll, or a mean since the one before: half a poll around it
        return DatedPolls(std_s=poll_s / math.sqrt(12.0))
    new = new[np.diff(stamp_ns)[new - 1] <= _WAITED * poll_s * 1e9]
    bounds_ns = (np.stack([stamp_ns[new - 1], stamp_ns[new]], axis=1) - stamp_ns[0]).astype(np.float64)
    line = _even_renewals(bounds_ns, renewal_s, poll_s) if poll_s * _SOME_REPEATED <= renewal_s else None
    at_ns, std_s, renewal_s = line or (np.empty(0), min(poll_s, renewal_s) / math.sqrt(12.0), renewal_s)
    dated = DatedPolls(late_s=max(renewal_s - 0.5 * poll_s, 0.0), std_s=std_s, renewal_s=renewal_s)
    if line is None:
        return dated
    even_ns = stamp_ns[0] + np.rint(at_ns - renewal_s * 1e9).astype(np.int64)
    return replace(dated, seen_ns=stamp_ns[new - 1] - dated.late_ns, even_ns=even_ns)


def _find_renewal_s(stamp_ns: Ints, seen: tuple[Floats, Ints], poll_s: float, slowest_s: float) -> float | None:
    """Returns how often a sensor renews, from how long its values stay; None where that may be power that stayed.

    Args:
        stamp_ns: (n,) ns, of the polls.
        seen: (n,) what they show, and which of them show something new.
        poll_s: between two polls, s.
        slowest_s: the slowest renewal that is told, s.
    """
    shown, new = seen
    if new.size < _CHANGES:
        return None
    stay_s = np.diff(stamp_ns[new]) * 1e-9
    short_s = float(np.quantile(stay_s, _SHORT_STAY))
    if short_s < _REPEATED * poll_s:  # values may be alike by chance, unless they come as evenly as a clock
        renewal_s = float(stay_s.mean())
        bounds_ns = np.stack([stamp_ns[new - 1], stamp_ns[new]], axis=1) - stamp_ns[0]
        even = renewal_s >= _SOME_REPEATED * poll_s and _even_renewals(bounds_ns.astype(np.float64), renewal_s, poll_s)
        return renewal_s if even and renewal_s <= slowest_s else None
    renewal_s = float(stay_s[stay_s <= short_s + _REPEATED * poll_s].mean())
    if renewal_s > slowest_s:
        return None
    return renewal_s if renewal_s <= _PLAIN_S or np.unique(shown[new]).size >= _NEW * new.size else None


def _even_renewals(bounds_ns: Floats, renewal_s: float, poll_s: float) -> tuple[Floats, float, float] | None:
    """Returns the renewals on their line, (m,) ns, its standard uncertainty, s, and their distance, s.

    Args:
        bounds_ns: (m, 2) last poll with the old value and first with the new one, of each renewal that was seen, ns.
        renewal_s: about how far apart renewals are, s.
        poll_s: between two polls, s.

    Returns:
        None where they are few, or do not lie on one line.
    """
    if bounds_ns.shape[0] < _CHANGES:
        return None
    middle_ns, width_ns = bounds_ns.mean(axis=1), bounds_ns[:, 1] - bounds_ns[:, 0]
    passed = np.ceil((np.diff(middle_ns) * 1e-9 - poll_s) / renewal_s - _JITTER)  # some renewals show nothing new
    number = np.concatenate(([0.0], np.cumsum(np.maximum(passed, 1.0))))
    step_ns, origin_ns = (float(part) for part in np.polyfit(number, middle_ns, 1))
    rest_ns = middle_ns - step_ns * number
    scatter_ns = rest_ns - origin_ns
    if step_ns <= 0 or bool(np.any(np.abs(scatter_ns) > _EVEN * width_ns)):
        return None
    low_ns, high_ns = float((rest_ns - 0.5 * width_ns).max()), float((rest_ns + 0.5 * width_ns).min())
    if high_ns > low_ns:
        origin_ns = 0.5 * (low_ns + high_ns)
    chance_ns = float(scatter_ns.std()) / math.sqrt(number.size)
    std_ns = max((high_ns - low_ns) / math.sqrt(12.0), chance_ns)
    return origin_ns + step_ns * number, std_ns * 1e-9, step_ns * 1e-9


def merge_polled(trace: EnergyTrace, dated: DatedPolls, log: FindingLog) -> EnergyTrace:
    """Returns the trace with each run of equal neighbours as one interval: what a poller read twice is one sample.

    Args:
        trace: of polls, less what they are late.
        dated: what they tell of their instants.
        log: takes ``repeats_merged``.
    """
    if dated.std_s:
        kernel = replace(trace.channel.kernel, latency_std_s=dated.std_s)
        trace = replace(trace, channel=replace(trace.channel, kernel=kernel))
    if trace.edges_ns is None or trace.n < 2:
        return trace
    lost = np.zeros(trace.n, np.bool_)
    for first, last in trace.gaps:
        lost[first:last] = True
    power_w = trace.power_w
    keep = np.ones(trace.n, np.bool_)
    keep[:-1] = (power_w[1:] != power_w[:-1]) | lost[1:] | lost[:-1]
    repeats = int((~keep).sum())
    if not repeats:
        return trace
    how = ""
    if dated.renewal_s is not None:
        how = f", renewed every {dated.renewal_s:.3g} s and dated by that to {dated.std_s:.2g} s (1 sd)"
    log.add(
        "repeats_merged",
        f"{trace.channel.name}: {repeats} of {trace.n} readings repeat the one before; each run is one sample{how}",
        severity=Severity.INFO,
    )
    edges_ns = np.concatenate((trace.edges_ns[:1], trace.edges_ns[1:][keep]))
    edges_ns = _on_line(edges_ns, dated)
    return replace(
        trace, power_w=power_w[keep], start_ns=int(edges_ns[0]), edges_ns=edges_ns, gaps=gap_ranges(lost[keep])
    )


def _on_line(edges_ns: Ints, dated: DatedPolls) -> Ints:
    """Returns the edges of samples, those that are known from an even renewal where that puts them."""
    at = np.searchsorted(edges_ns, dated.seen_ns)
    here = (at > 0) & (at < edges_ns.size - 1) & (edges_ns[np.minimum(at, edges_ns.size - 1)] == dated.seen_ns)
    moved = edges_ns.copy()
    moved[at[here]] = dated.even_ns[here]
    return moved if bool((np.diff(moved) > 0).all()) else edges_ns
