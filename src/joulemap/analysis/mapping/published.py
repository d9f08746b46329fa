"""The scoring rules under which MLPerf's published numbers were made, to the last printed digit.

These are the sources' rules, not ours: ``mlperf`` drops samples at or below 0 W and takes a plain mean over unequal
intervals, ``energyrunner`` lets time drift by accumulated rounding. They are kept apart from every other figure, and
every sum here runs from left to right: pairwise or exact summation differs in the last printed digit. The figures
carry no uncertainty of their own; they reproduce a record.

References:
    MLPerf Inference power rules: mean of the samples between ``power_begin`` and ``power_end``, both ends in
    (mlcommons/inference tools/submission, ``get_power_metric``; recomputed from eight published runs, FORMATS 2).
    EEMBC EnergyRunner: windows [t[2k-1], t[2k]), time accumulated as t += 1/rate (FORMATS 2, 30 windows of 6 runs).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from joulemap.errors import InputError
from joulemap.records.published import EnergyrunnerRun, EnergyrunnerTrials, MlperfRun, PublishedRun

__all__ = ["PublishedFigures", "PublishedRule", "PublishedWindow", "published_figures", "sum_in_order"]


class PublishedRule(StrEnum):
    """The rule that produced a published number."""

    MLPERF = "mlperf"
    ENERGYRUNNER = "energyrunner"
    ENERGYRUNNER_JSON = "energyrunner-json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedWindow:
    """One scored window.

    Args:
        samples: samples that count.
        dropped: samples inside the window that the rule drops.
        duration_s: as the rule takes it, s.
        energy_j: J.
        average_power_w: W.
        energy_per_query_j: J; None when the source does not say how many.
        throughput_hz: inferences per second; None when the rule has none.
    """

    samples: int
    dropped: int
    duration_s: float
    energy_j: float
    average_power_w: float
    energy_per_query_j: float | None
    throughput_hz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigures:
    """What a rule gives for a run.

    Args:
        rule: which.
        value: the figure in the form in which it is published.
        unit: of ``value``: ``W``, ``mJ`` or ``uJ``.
        average_power_w: W; the median window's for the runner's rules.
        energy_per_query_j: J per query (an Offline run is one query) or per inference; None when not known.
        energy_per_sample_j: J per sample of the data set; None when not known.
        throughput_hz: median inferences per second; None when the rule has none.
        windows: one for ``mlperf``.
    """

    rule: PublishedRule
    value: float
    unit: str
    average_power_w: float
    energy_per_query_j: float | None
    energy_per_sample_j: float | None
    throughput_hz: float | None
    windows: tuple[PublishedWindow, ...]


def sum_in_order(values: Iterable[float]) -> float:
    """Returns the float64 sum from left to right, each addition rounded (``sum`` compensates from Python 3.12 on)."""
    total = 0.0
    for value in values:
        total += value
    return total


def published_figures(run: PublishedRun) -> PublishedFigures:
    """Returns the figures of a run under the rule of its source.

    Raises:
        InputError: the window holds no sample that the rule counts.
    """
    if isinstance(run, MlperfRun):
        return _mlperf(run)
    if isinstance(run, EnergyrunnerRun):
        return _energyrunner(run)
    return _energyrunner_json(run)


def _empty(what: str) -> InputError:
    return InputError(
        f"{what} holds no sample that the published rule counts",
        hint="The power log and the run log belong to different runs, or their clocks differ.",
        slug="published-window-empty",
    )


def _mlperf(run: MlperfRun) -> PublishedFigures:
    inside = run.power_w[(run.time_ns >= run.begin_ns) & (run.time_ns <= run.end_ns)].tolist()
    counted = [power_w for power_w in inside if power_w > 0]
    if not counted:
        raise _empty("power_begin..power_end")
    mean_w = sum_in_order(counted) / len(counted)
    duration_s = (run.end_ns - run.begin_ns) / 1e9
    energy_j = mean_w * duration_s
    per_query_mj = energy_j * 1000 / run.queries if run.queries else None
    samples = None if not (run.queries and run.samples_per_query) else run.queries * run.samples_per_query
    by_stream = run.scenario in {"SingleStream", "MultiStream"} and per_query_mj is not None
    per_query_j = None if not run.queries else energy_j / run.queries
    window = PublishedWindow(
        samples=len(counted),
        dropped=len(inside) - len(counted),
        duration_s=duration_s,
        energy_j=energy_j,
        average_power_w=mean_w,
        energy_per_query_j=per_query_j,
    )
    return PublishedFigures(
        rule=PublishedRule.MLPERF,
        value=per_query_mj if by_stream and per_query_mj is not None else mean_w,
        unit="mJ" if by_stream else "W",
        average_power_w=mean_w,
        energy_per_query_j=per_query_j,
        energy_per_sample_j=None if samples is None else energy_j / samples,
        throughput_hz=None,
        windows=(window,),
    )


def _energyrunner(run: EnergyrunnerRun) -> PublishedFigures:
    step_s = 1 / run.rate_hz
    steps = np.full(run.energy_uj.size, step_s)
    steps[:1] = 0.0
    time_s = np.add.accumulate(steps)  # sequential, as the runner's own t += 1/rate; never i/rate
    windows: list[PublishedWindow] = []
    per_inference_uj: list[float] = []
    for start_s, stop_s in zip(run.stamps_s[1::2], run.stamps_s[2::2], strict=False):
        inside = run.energy_uj[(time_s >= start_s) & (time_s < stop_s)].tolist()
        if not inside or stop_s <= start_s:
            raise _empty(f"window {start_s}..{stop_s} s")
        energy_uj = sum_in_order(inside)
        if run.iterations:
            per_inference_uj.append(energy_uj / run.iterations)
        windows.append(
            PublishedWindow(
                samples=len(inside),
                dropped=0,
                duration_s=len(inside) * step_s,
                energy_j=energy_uj * 1e-6,
                average_power_w=energy_uj / (len(inside) * step_s) * 1e-6,
                energy_per_query_j=per_inference_uj[-1] * 1e-6 if run.iterations else None,
                throughput_hz=run.iterations / (stop_s - start_s) if run.iterations else None,
            )
        )
    if not windows:
        raise _empty("the list of time stamps")
    return _median_figures(PublishedRule.ENERGYRUNNER, windows, per_inference_uj)


def _energyrunner_json(run: EnergyrunnerTrials) -> PublishedFigures:
    windows: list[PublishedWindow] = []
    per_inference_uj: list[float] = []
    for number, trial in enumerate(run.trials):
        inside = trial.energy_j[trial.begin : trial.end].tolist()
        if not inside:
            raise _empty(f"trial {number}")
        energy_uj = 1e6 * sum_in_order(inside)
        duration_s = len(inside) / run.rate_hz
        per_inference_uj.append(energy_uj / trial.iterations)
        windows.append(
            PublishedWindow(
                samples=len(inside),
                dropped=0,
                duration_s=duration_s,
                energy_j=energy_uj * 1e-6,
                average_power_w=energy_uj * 1e-6 / duration_s,
                energy_per_query_j=per_inference_uj[-1] * 1e-6,
                throughput_hz=trial.iterations / duration_s,
            )
        )
    if not windows:
        raise _empty("the results file")
    return _median_figures(PublishedRule.ENERGYRUNNER_JSON, windows, per_inference_uj)


def _median_figures(
    rule: PublishedRule, windows: list[PublishedWindow], per_inference_uj: list[float]
) -> PublishedFigures:
    """Returns the medians over windows; energy and throughput each by itself, as the runner prints them."""
    known = bool(per_inference_uj)
    median_uj = statistics.median(per_inference_uj if known else [window.energy_j * 1e6 for window in windows])
    return PublishedFigures(
        rule=rule,
        value=median_uj,
        unit="uJ",
        average_power_w=statistics.median(window.average_power_w for window in windows),
        energy_per_query_j=median_uj * 1e-6 if known else None,
        energy_per_sample_j=median_uj * 1e-6 if known else None,
        throughput_hz=statistics.median(window.throughput_hz for window in windows if window.throughput_hz is not None)
        if known
        else None,
        windows=tuple(windows),
    )
