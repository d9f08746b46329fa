"""Where GATE really begins when the logic inputs are too slow to say: the start that explains the samples best.

The period comes from the clean latency of the profile run, not from the coarse gate; start and period are then
refined together by minimising the residual of the layer fit (profile likelihood).

References:
    METHODS 1.4 in docs/methods.md. Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973) (variable projection).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.schedule import LayerSchedule
from joulemap.records.profile import PmuResult
from joulemap.trace import EnergyTrace

__all__ = ["align_gate", "edges_are_coarse", "edges_are_hopeless"]

_EDGE_SHARE = 20.0
_MATTERS = 0.01
"""Shortest share of an inference whose layer must be placed well."""
_GRID = 61
_REACH = 0.75
"""How far from the seen edge the true one is looked for, in ticks; half a tick is what sampling can hide."""
_STEPS = 8
_PERIOD_UNIT = 1e-5
_PERIOD_LIMIT = 1e-3

Array = NDArray[np.float64]


def edges_are_coarse(profile: PmuResult, tick_s: float) -> bool:
    """Returns whether a tick of the logic inputs is longer than 1/20 of the shortest layer that matters."""
    return tick_s > _shortest_s(profile) / _EDGE_SHARE


def edges_are_hopeless(profile: PmuResult, tick_s: float) -> bool:
    """Returns whether a tick is so long that the start could be off by a good part of an inference."""
    return tick_s > profile.clean_latency_s / 4.0


def align_gate(capture: GatedCapture, profile: PmuResult, count: int) -> GatedCapture | None:
    """Returns the capture with GATE moved to where the samples say it is, or None when they do not say.

    Args:
        capture: with edges known to a tick.
        profile: counter results of the profile image.
        count: inferences inside GATE.
    """
    tick_s = 1.0 / capture.spec.edge_rate_hz
    schedule = LayerSchedule.build(profile, profile.clean_latency_s)
    view = _coarser(capture, max(1, math.floor(_shortest_s(profile) / (4.0 * capture.period_s))))
    samples = view.inside(capture.rise_s + tick_s, capture.fall_s - tick_s)
    if samples.size < schedule.layers + 10:
        return None
    start_s = np.asarray(samples * view.period_s - capture.rise_s, np.float64)
    end_s = np.asarray(start_s + view.period_s, np.float64)
    energy_j = view.power_w(samples) * view.period_s
    prior = (capture.spec.noise_std_w / max(abs(float(energy_j.mean())) / view.period_s, 1e-300)) ** 2
    ridge = np.eye(schedule.layers + 1) * (max(prior, 1e-12) * view.period_s**2)

    def residual(at: Array) -> Array:
        # at: start after the seen edge in ticks, period in 1e-5 beyond the clean latency
        moved = schedule.scaled(schedule.period_s * (1.0 + at[1] * _PERIOD_UNIT))
        offset_s = at[0] * tick_s
        time_s = moved.region_time(end_s - offset_s) - moved.region_time(start_s - offset_s)
        mean_w = float(energy_j.sum()) / float(time_s.sum())
        rest_j = energy_j - time_s.sum(axis=1) * mean_w
        powers = np.linalg.solve(time_s.T @ time_s + ridge, time_s.T @ rest_j)
        return np.asarray(rest_j - time_s @ powers, np.float64)

    at = min(
        (np.array([offset, 0.0]) for offset in np.linspace(-_REACH, _REACH, _GRID)),
        key=lambda point: float(residual(point) @ residual(point)),
    )
    at, start_std = _refine(residual, at)
    if abs(at[0]) > _REACH + 3 * start_std or abs(at[1]) * _PERIOD_UNIT > _PERIOD_LIMIT or not start_std < 0.5:
        return None
    rise_s = capture.rise_s + float(at[0]) * tick_s
    period_s = schedule.period_s * (1.0 + float(at[1]) * _PERIOD_UNIT)
    return capture.moved(rise_s, rise_s + count * period_s, start_std * tick_s)


def _refine(residual: object, at: Array) -> tuple[Array, float]:
    """Returns the minimum near a point by Gauss-Newton with halved steps, and the start's standard uncertainty."""
    assert callable(residual)
    step = np.array([1e-3, 0.1])
    best = residual(at)
    covariance = np.full((2, 2), np.inf)
    for _ in range(_STEPS):
        jacobian = np.stack([(residual(at + d) - residual(at - d)) / (2 * d.sum()) for d in np.diag(step)], axis=1)
        normal = jacobian.T @ jacobian
        if not np.isfinite(normal).all() or np.linalg.cond(normal) > 1e14:
            return at, math.inf
        covariance = np.linalg.inv(normal) * float(best @ best) / max(best.size - 2, 1)
        move = -np.linalg.solve(normal, jacobian.T @ best)
        for _ in range(6):
            trial = residual(at + move)
            if trial @ trial < best @ best:
                break
            move = move / 2
        else:
            break
        at, best = at + move, trial
        if np.all(np.abs(move) < 0.01 * np.sqrt(np.diag(covariance))):
            break
    return at, math.sqrt(float(covariance[0, 0]))


def _shortest_s(profile: PmuResult) -> float:
    duration_s = profile.layer_duration_s
    matters = duration_s >= _MATTERS * profile.clean_latency_s
    return float(duration_s[matters].min()) if matters.any() else float(duration_s.max())


def _coarser(capture: GatedCapture, factor: int) -> GatedCapture:
    """Returns the capture with ``factor`` samples averaged into one, which is all that the alignment needs."""
    if factor == 1:
        return capture
    trace = capture.trace
    n = trace.n // factor
    power_w = trace.power_w[: n * factor].reshape(n, factor).mean(axis=1, dtype=np.float64)
    lost = capture.lost(np.arange(n * factor, dtype=np.int64)).reshape(n, factor).any(axis=1)
    edges = np.flatnonzero(np.diff(lost.astype(np.int8), prepend=0, append=0))
    coarse = EnergyTrace(
        clock=trace.clock,
        channel=trace.channel,
        power_w=power_w,
        start_ns=trace.start_ns,
        period_s=capture.period_s * factor,
        gaps=edges.reshape(-1, 2),
    )
    return replace(capture, trace=coarse)
