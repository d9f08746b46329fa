"""Quantiles and distribution functions against SciPy."""

from __future__ import annotations

import pytest
from scipy import stats

from joulemap.analysis.intervals.distributions import chi_square_sf, normal_quantile, student_t_cdf, student_t_quantile

DOF = (0.7, 1.0, 1.3, 2.0, 3.0, 4.0, 4.7, 9.61, 30.0, 99.9, 100.1, 1e3, 99_999.0, 1e5, 1e7, 1e12, float("inf"))
PROBABILITY = (1e-6, 0.025, 0.3, 0.5, 0.51, 0.6, 0.9, 0.975, 0.995, 0.9999, 1 - 1e-7)


@pytest.mark.parametrize("dof", DOF)
def test_student_quantile(dof: float) -> None:
    for p in PROBABILITY:
        expected = stats.t.ppf(p, dof) if dof < 1e15 else stats.norm.ppf(p)
        assert student_t_quantile(p, dof) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("dof", DOF)
def test_student_cdf(dof: float) -> None:
    for t in (-80.0, -3.0, -0.1, 0.0, 0.01, 0.5, 2.0, 2.776, 10.0, 500.0):
        expected = stats.t.cdf(t, dof) if dof < 1e15 else stats.norm.cdf(t)
        assert student_t_cdf(t, dof) == pytest.approx(expected, abs=1e-10)


def test_cdf_and_quantile_are_inverse() -> None:
    for dof in (1.0, 4.0, 31.4, 1e6):
        for p in (0.001, 0.2, 0.8, 0.975):
            assert student_t_cdf(student_t_quantile(p, dof), dof) == pytest.approx(p, abs=1e-12)


def test_normal_quantile() -> None:
    for p in PROBABILITY:
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("x", "dof"), [(18.3, 10), (50.0, 50), (80.0, 50), (5.0, 10), (0.0, 3)])
def test_chi_square_tail_is_good_enough_for_a_check(x: float, dof: float) -> None:
    assert chi_square_sf(x, dof) == pytest.approx(stats.chi2.sf(x, dof), abs=2e-3)


def test_impossible_arguments_are_refused() -> None:
    for p in (0.0, 1.0, -0.1):
        with pytest.raises(ValueError, match="probability"):
            student_t_quantile(p, 3.0)
        with pytest.raises(ValueError, match="probability"):
            normal_quantile(p)
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_t_quantile(0.9, 0.0)
