"""Points of a power that is not looked at between them: the interval follows what the samples show of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.autocorrelation import highest_variance
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.estimate import Estimate
from joulemap.trace import KernelKind, SensorKernel
from mapped_traces import build_trace

Floats = NDArray[np.float64]
FINE = 50
"""Instants of the truth in one step of the samples."""


def wandering(memory_steps: float) -> Callable[[int, np.random.Generator], Floats]:
    """A power that forgets itself over so many steps."""

    def draw(steps: int, rng: np.random.Generator) -> Floats:
        keep = math.exp(-1.0 / (memory_steps * FINE))
        noise = rng.standard_normal(steps * FINE + 1) * math.sqrt(1.0 - keep**2)
        value = np.empty(noise.size)
        value[0] = rng.standard_normal()
        for k in range(1, noise.size):
            value[k] = keep * value[k - 1] + noise[k]
        return np.asarray(5.0 + value)

    return draw


def slow(steps: int, rng: np.random.Generator) -> Floats:
    """A power that rises and falls twice in all the time that it is looked at."""
    at = np.arange(steps * FINE + 1) / (steps * FINE)
    return np.asarray(5.0 + 2.0 * np.sin(2.0 * np.pi * (2.0 * at + rng.uniform())))


def uneven(steps: int, rng: np.random.Generator) -> Floats:
    """Work of about a step a turn, each of its own length: looks wander over it without a period."""
    turns = rng.uniform(0.9, 1.14, 2 * steps) * FINE
    edges = np.cumsum(np.stack([0.4 * turns, 0.6 * turns], axis=1).ravel())
    inside = np.searchsorted(edges, np.arange(steps * FINE + 1) + rng.uniform() * FINE)
    return np.asarray(2.0 + 1.0 * (inside % 2 == 0))


def locked(steps: int, rng: np.random.Generator) -> Floats:
    """Work of 1.1 steps a turn, which samples see as one of 11 steps, always at the same eleven places."""
    at = np.arange(steps * FINE + 1) / FINE + rng.uniform() * 1.1
    return np.asarray(2.0 + 1.0 * (at % 1.1 < 0.44))


def study(
    draw: Callable[[int, np.random.Generator], Floats], noise_w: float, *, draws: int = 60
) -> tuple[float, float]:
    """Returns the share of intervals that hold the truth, and their mean standard uncertainty over the true error."""
    held, stds, errors = 0, [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        truth = draw(300, rng)
        energy_j = float(((truth[1:] + truth[:-1]) / 2).sum()) / FINE
        points = truth[::FINE] + noise_w * rng.standard_normal(301)
        trace = build_trace(points[:-1], period_s=1.0)  # a point stands at the start of its interval
        channel = replace(trace.channel, kernel=SensorKernel(kind=KernelKind.POINT, window_s=0.0))
        total = map_energy([replace(trace, channel=channel)], None, None, MeterErrors(), request=MapRequest()).total_j
        assert isinstance(total, Estimate)
        held += abs(total.value - energy_j) <= total.expanded
        stds.append(total.std)
        errors.append(total.value - energy_j)
    return held / draws, float(np.mean(stds) / np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("noise_w", [0.1, 0.3])
def test_a_power_that_moves_slowly_under_noise_costs_the_noise_and_no_more(noise_w: float) -> None:
    covered, width = study(slow, noise_w)
    assert covered >= 0.88  # of 60 draws; 0.95 less 2.5 sd
    assert width <= 1.25


@pytest.mark.parametrize(
    "draw", [wandering(0.3), wandering(3.0), locked, uneven], ids=["fast", "slow", "beat", "uneven"]
)
def test_work_that_looks_between_may_miss_is_covered(draw: Callable[[int, np.random.Generator], Floats]) -> None:
    assert study(draw, 0.0)[0] >= 0.88


def test_what_is_seen_at_the_highest_frequency() -> None:
    rng = np.random.default_rng(3)
    white = rng.standard_normal(4000)
    assert highest_variance(white) == pytest.approx(1.0, rel=0.15)
    wave = 10.0 * np.sin(np.arange(4000) / 30.0)
    assert highest_variance(wave) < 1e-6
    assert highest_variance(wave + white) == pytest.approx(1.0, rel=0.15)
    assert highest_variance(np.array([1.0])) == 0.0
