"""Means of values that follow each other: worth, intervals, and how often those cover."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.analysis.intervals.autocorrelation import batch_mean_term, correlated_mean_term, effective_count
from joulemap.analysis.intervals.distributions import student_t_quantile


def draw(rng: np.random.Generator, count: int, rho: float) -> np.ndarray:
    values = np.empty(count)
    values[0] = rng.normal(0, 1 / np.sqrt(1 - rho**2))
    for k in range(1, count):
        values[k] = rho * values[k - 1] + rng.normal()
    return values


def test_six_hundred_values_at_nine_tenths_are_worth_about_thirty() -> None:
    counts = [effective_count(draw(np.random.default_rng(seed), 600, 0.9)) for seed in range(40)]
    assert np.median(counts) == pytest.approx(31.6, rel=0.35)  # METHODS 2: n (1 - rho) / (1 + rho)


def test_independent_values_are_worth_themselves() -> None:
    assert effective_count(np.random.default_rng(0).normal(size=1000)) > 700
    assert effective_count(np.ones(50)) == 50.0
    assert effective_count(np.array([1.0, 2.0])) == 2.0


def test_intervals_cover_where_naive_ones_do_not() -> None:
    held = {"geyer": 0, "batches": 0, "naive": 0}
    draws = 200
    for seed in range(draws):
        values = draw(np.random.default_rng(seed), 600, 0.9)
        for name, (mean, term) in {
            "geyer": correlated_mean_term(values),
            "batches": batch_mean_term(values),
        }.items():
            held[name] += abs(mean) <= student_t_quantile(0.975, term.dof) * term.std
        held["naive"] += abs(values.mean()) <= 1.96 * values.std(ddof=1) / np.sqrt(values.size)
    assert held["naive"] / draws < 0.5  # METHODS 2: 0.36
    assert held["geyer"] / draws > 0.87  # 0.943 with z
    assert held["batches"] / draws > 0.84  # 0.918


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="two values"):
        correlated_mean_term(np.array([1.0]))
    with pytest.raises(ValueError, match="batches"):
        batch_mean_term(np.ones(5), batches=20)
