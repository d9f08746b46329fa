"""Draws of a case as a file of a tool that polled the sensor more often than it renews, read by the reader of files."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from host_reading import read
from joulemap.trace import EnergyTrace
from recording_study import Study, map_drawn, run_study
from recording_truth import METER_CLOCK, Case, Drawn, layer_schedule

__all__ = ["POLLED_CASES", "PolledCase", "late_j", "poll_sensor", "polled_study"]

_EPOCH_S = 1_700_000_000
LONG = layer_schedule(layers=8, shortest_s=3.0, longest_s=12.0)
LONGER = layer_schedule(layers=6, shortest_s=12.0, longest_s=40.0)
SHORT = layer_schedule(layers=6, shortest_s=0.06, longest_s=0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledCase:
    """A sensor that is polled.

    Args:
        case: what happened, at the rate at which the sensor renews.
        poll_s: between two polls, s.
        uneven: scatter of the renewals' distance, 1 sd, relative.
    """

    case: Case = field(default_factory=lambda: Case(name=""))
    poll_s: float
    uneven: float = 0.0


def _case(name: str, **fields: object) -> Case:
    return replace(Case(name=name, rate_hz=10.0, runs=6, schedule=LONG, gap_s=4.0, noise=0.005), **fields)  # type: ignore[arg-type]


POLLED_CASES = (
    PolledCase(case=_case("polled: 5 times a renewal, in step"), poll_s=0.02),
    PolledCase(case=_case("polled: 2.7 times a renewal"), poll_s=0.037),
    PolledCase(case=_case("polled: 1.6 times a renewal"), poll_s=0.0625),
    PolledCase(case=_case("polled: 5 times, uneven renewals"), poll_s=0.02, uneven=0.05),
    PolledCase(case=_case("polled: 3.3 times a renewal of half a second", rate_hz=2.0, schedule=LONGER), poll_s=0.15),
    PolledCase(case=_case("polled: least squares", schedule=SHORT, runs=300, gap_s=0.2), poll_s=0.02),
)  # fmt: skip


def poll_sensor(drawn: Drawn, what: PolledCase, folder: Path) -> EnergyTrace:
    """Returns what a reader makes of the polls of a draw, on the meter's clock."""
    rng = np.random.default_rng(round(drawn.truth_j["total"] * 1e9) % 2**31)
    renewal_s = 1.0 / what.case.rate_hz
    steps = renewal_s * (1.0 + what.uneven * rng.standard_normal(int(drawn.edges_s[-1] / renewal_s)))
    renewed_s = np.cumsum(np.maximum(steps, 0.5 * renewal_s))
    renewed_s = renewed_s[renewed_s < drawn.edges_s[-1]]
    until = np.concatenate([[0.0], np.cumsum(np.diff(drawn.edges_s) * drawn.power_w)])
    mean_w = np.diff(np.interp(renewed_s, drawn.edges_s, until)) / np.diff(renewed_s)
    mean_w += drawn.noise_w * rng.standard_normal(mean_w.size)
    poll_s = np.arange(renewed_s[1] + rng.uniform() * what.poll_s, drawn.edges_s[-1], what.poll_s)
    shown_w = mean_w[np.searchsorted(renewed_s, poll_s, side="right") - 2]
    rows = "".join(f"{_EPOCH_S + at:.6f},{watts:.4f}\n" for at, watts in zip(poll_s, shown_w, strict=True))
    (trace,) = read("zeus-power", rows, folder).traces
    assert trace.edges_ns is not None
    edges_ns = trace.edges_ns - _EPOCH_S * 1_000_000_000
    return replace(trace, clock=METER_CLOCK, edges_ns=edges_ns, start_ns=int(edges_ns[0]))


def polled_study(what: PolledCase, draws: int, folder: Path) -> Study:
    """Returns the counts of a case: its layers, each beside what a sample of the sensor itself would leave."""

    def counted(drawn: Drawn) -> Iterable[tuple[str, float, object, float]]:
        polled = replace(drawn, trace=poll_sensor(drawn, what, folder))
        for row in map_drawn(polled).rows:
            yield row.key, drawn.truth_j[row.key], row.energy_j, math.nan

    return run_study(what.case, draws, counted, ideal=False)


def late_j(trace: EnergyTrace, drawn: Drawn, late_s: float = 0.0) -> NDArray[np.float64]:
    """Returns by how much the runs of a draw, one slice each, differ from their truth by the samples alone, J.

    Args:
        trace: as read.
        drawn: the draw.
        late_s: by which the samples are dated later, s.
    """
    layers = drawn.case.schedule[0].size
    bounds_s = drawn.edges_s[1:-1][: drawn.case.runs * (layers + 1)].reshape(drawn.case.runs, layers + 1)
    span_s = np.stack([bounds_s[:, 0], bounds_s[:, -1]], axis=1)

    def held(edges_s: NDArray[np.float64], power_w: NDArray[np.float64]) -> NDArray[np.float64]:
        until = np.concatenate([[0.0], np.cumsum(np.diff(edges_s) * power_w)])
        return np.asarray(np.diff(np.interp(span_s, edges_s, until), axis=1)[:, 0], np.float64)

    edges_ns = np.arange(trace.n + 1) * trace.step_ns + trace.start_ns if trace.edges_ns is None else trace.edges_ns
    return held(np.asarray(edges_ns * 1e-9 + late_s, np.float64), trace.power_w.astype(np.float64)) - held(
        drawn.edges_s, drawn.power_w
    )
