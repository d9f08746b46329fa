"""Budgets against published and computed answers (GUM H.2, METHODS 2)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulemap.analysis.intervals.monte_carlo import MonteCarlo, Shape
from joulemap.analysis.intervals.uncertainty import (
    Kind,
    Term,
    combine,
    combine_correlated,
    effective_dof,
    estimate,
    limit_std,
    mean_term,
)
from joulemap.estimate import Boundary, Provenance


def test_gum_h2_resistance_reactance_impedance() -> None:
    """JCGM 100:2008 H.2: five simultaneous readings of V, I and phase, all correlated."""
    volt = np.array([5.007, 4.994, 5.005, 4.990, 4.999])
    ampere = np.array([19.663, 19.639, 19.640, 19.685, 19.678]) * 1e-3
    phase = np.array([1.0456, 1.0438, 1.0468, 1.0428, 1.0433])
    v, i, phi = volt.mean(), ampere.mean(), phase.mean()
    std = np.array([x.std(ddof=1) / math.sqrt(5) for x in (volt, ampere, phase)])
    correlation = np.corrcoef([volt, ampere, phase])
    z = v / i
    derivatives = {
        "R": (z * math.cos(phi), [math.cos(phi) / i, -z * math.cos(phi) / i, -z * math.sin(phi)]),
        "X": (z * math.sin(phi), [math.sin(phi) / i, -z * math.sin(phi) / i, z * math.cos(phi)]),
        "Z": (z, [1 / i, -z / i, 0.0]),
    }
    published = {"R": (127.732, 0.071), "X": (219.847, 0.295), "Z": (254.260, 0.236)}
    for name, (value, slope) in derivatives.items():
        u = combine_correlated(np.array(slope), std, correlation)
        assert value == pytest.approx(published[name][0], abs=5e-4)
        assert u == pytest.approx(published[name][1], abs=1e-3)
    alone = combine_correlated(np.array(derivatives["Z"][1]), std, np.eye(3))
    assert abs(alone - published["Z"][1]) > 0.02  # without the correlation the answer is another


def test_ten_repeats_and_a_gain_limit() -> None:
    """METHODS 2: n 10, cv 1 %, gain +-0.1 %: u_c .3215 %, nu 9.61, k 2.240, U .720 %."""
    repeats = Term(name="repeats", std=0.01 / math.sqrt(10), kind=Kind.A, dof=9.0)
    combined = combine([repeats, Term(name="gain", std=limit_std(0.001))])
    assert combined.std == pytest.approx(0.0032145502536643183, rel=1e-12)
    assert combined.dof == pytest.approx(9.61, abs=0.005)
    assert combined.k == pytest.approx(2.240456721284918, rel=1e-4)
    assert combined.expanded == pytest.approx(0.00720206, rel=1e-4)


def test_a_shared_gain_cancels_in_a_ratio() -> None:
    """METHODS 2: 5 % gain limit and 1 % each: 4.32 % if independent, 1.414 % with the gain shared."""
    gain = limit_std(0.05)
    parts = np.array([gain, 0.01, gain, 0.01])
    slope = np.array([1.0, 1.0, -1.0, -1.0])
    shared = np.eye(4)
    shared[0, 2] = shared[2, 0] = 1.0
    assert combine_correlated(slope, parts, np.eye(4)) == pytest.approx(0.0432, abs=5e-5)
    assert combine_correlated(slope, parts, shared) == pytest.approx(0.01414213562373095, rel=1e-12)


def test_idle_subtraction_does_not_cancel() -> None:
    """METHODS 2: 12 +- .1 less 10 +- .1 W is 7.1 %."""
    u = combine_correlated(np.array([1.0, -1.0]), np.array([0.1, 0.1]), np.eye(2))
    assert u / 2.0 == pytest.approx(0.0707, abs=5e-5)


def test_an_otii_arc_at_a_microampere() -> None:
    """METHODS 2: 0.1 % + 50 nA at 1 uA: 29.4 nA as one limit, 28.9 nA as two."""
    assert limit_std(51e-9) == pytest.approx(29.44e-9, rel=1e-3)
    both = combine([Term(name="gain", std=limit_std(1e-9)), Term(name="offset", std=limit_std(50e-9))])
    assert both.std == pytest.approx(28.87e-9, rel=1e-3)


def test_mean_term_needs_two() -> None:
    mean, term = mean_term([1.0, 2.0, 3.0])
    assert (mean, term.dof) == (2.0, 2.0)
    assert term.std == pytest.approx(1 / math.sqrt(3))
    with pytest.raises(ValueError, match="two repeats"):
        mean_term([1.0])


def test_only_type_b_is_normal() -> None:
    combined = combine([Term(name="gain", std=3.0), Term(name="offset", std=4.0)])
    assert combined.std == pytest.approx(5.0)
    assert math.isinf(combined.dof)
    assert combined.k == pytest.approx(1.959963984540054)


def test_nothing_uncertain_is_allowed() -> None:
    combined = combine([Term(name="gain", std=0.0)])
    assert combined.expanded == 0.0


@given(st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=6), st.floats(1.0, 1e6))
def test_dof_lies_between_the_least_and_the_sum(stds: list[float], dof: float) -> None:
    terms = [Term(name=str(k), std=s, kind=Kind.A, dof=dof) for k, s in enumerate(stds)]
    nu = effective_dof(terms)
    assert dof * (1 - 1e-9) <= nu <= dof * len(terms) * (1 + 1e-9)


def test_a_single_rectangle_covers_with_its_own_quantile() -> None:
    """95 % of a rectangle of half-width a is .95 a: k 1.645 on its std, not 1.96."""
    combined = combine([Term(name="gain", std=limit_std(1.0), rectangular=True)])
    assert combined.expanded == pytest.approx(0.95, abs=0.005)


def test_two_equal_rectangles_make_a_triangle() -> None:
    """The sum of two rectangles of half-width 1 is a triangle of half-width 2: 95 % lies within 2 - 2 sqrt(.05)."""
    terms = [Term(name=name, std=limit_std(1.0), rectangular=True) for name in ("gain", "offset")]
    expected = 2.0 - 2.0 * math.sqrt(0.05)
    assert combine(terms, monte_carlo=MonteCarlo(draws=400_000)).expanded == pytest.approx(expected, rel=0.004)


def test_jcgm_101_of_five_repeats_and_a_rectangle_has_the_width_of_the_trial() -> None:
    """TRIAL 3: R 5, run-to-run .2 %, gain +-.1 %: coverage about .963, mean width about 1.19 times the ideal."""
    rng = np.random.default_rng(1)
    sampler = MonteCarlo(draws=20_000)
    hit, width = [], []
    for _ in range(1500):
        factors = rng.normal(0, 0.002, 5)
        error = factors.mean() + rng.uniform(-0.001, 0.001)
        terms = [
            Term(name="repeats", std=factors.std(ddof=1) / math.sqrt(5), kind=Kind.A, dof=4.0),
            Term(name="gain", std=limit_std(0.001), rectangular=True),
        ]
        half = combine(terms, monte_carlo=sampler).expanded
        hit.append(abs(error) <= half)
        width.append(half)
    ideal = 1.959964 * math.hypot(0.002 / math.sqrt(5), limit_std(0.001))
    assert 0.94 <= np.mean(hit) <= 0.98
    assert np.mean(width) / ideal == pytest.approx(1.19, abs=0.05)


def test_welch_satterthwaite_of_five_repeats_covers_as_the_trial_found() -> None:
    """TRIAL 3, 2e5 draws: R 5 covers .942 at 1.16 times the ideal width."""
    rng = np.random.default_rng(0)
    factors = rng.normal(0, 0.002, (4000, 5))
    error = factors.mean(axis=1) + rng.normal(0, 0.0005, 4000)
    hit, width = [], []
    for row, e in zip(factors, error, strict=True):
        _, repeats = mean_term(row)
        half = combine([repeats, Term(name="gain", std=0.0005)]).expanded
        hit.append(abs(e) <= half)
        width.append(half)
    ideal = 1.959964 * math.hypot(0.002 / math.sqrt(5), 0.0005)
    assert 0.925 <= np.mean(hit) <= 0.96
    assert np.mean(width) / ideal == pytest.approx(1.16, abs=0.03)


def test_shared_draws_are_seeded_and_reused() -> None:
    shapes = [("gain", Shape(family="rectangular")), ("repeats", Shape(family="student_t", dof=4.0))]
    first = MonteCarlo(seed=3).symmetric_half_width(shapes, [1.0, 2.0], coverage=0.95)
    sampler = MonteCarlo(seed=3)
    sampler.symmetric_half_width(shapes[::-1], [1.0, 1.0], coverage=0.5)
    assert sampler.symmetric_half_width(shapes, [1.0, 2.0], coverage=0.95) == first
    assert MonteCarlo(seed=4).symmetric_half_width(shapes, [1.0, 2.0], coverage=0.95) != first
    with pytest.raises(ValueError, match="fewer than 1000"):
        MonteCarlo(draws=10)


def test_an_estimate_carries_the_budget() -> None:
    figure = estimate(2.0, [Term(name="gain", std=0.1)], provenance=Provenance.SIMULATED, boundary=Boundary.RAIL)
    assert (figure.value, figure.std, figure.coverage_probability) == (2.0, 0.1, 0.95)
    assert figure.boundary is Boundary.RAIL


@pytest.mark.parametrize(("std", "dof"), [(-1.0, 3.0), (math.nan, 3.0), (1.0, 0.0)])
def test_a_term_must_make_sense(std: float, dof: float) -> None:
    with pytest.raises(ValueError, match="needs a finite std"):
        Term(name="gain", std=std, dof=dof)
