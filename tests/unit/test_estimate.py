"""Estimates: what they refuse, how they scale, what they say as JSON."""

from __future__ import annotations

import json
import math

import pytest

from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable, weakest


def build(value: float = 2.0, std: float = 0.1, k: float = 2.0) -> Estimate:
    return Estimate(value=value, std=std, k=k, provenance=Provenance.SIMULATED, boundary=Boundary.RAIL)


def test_the_expanded_uncertainty_is_k_times_the_standard_one() -> None:
    assert build().expanded == pytest.approx(0.2)


@pytest.mark.parametrize(
    "change",
    [
        {"value": math.nan},
        {"value": math.inf},
        {"std": -1e-9},
        {"std": math.nan},
        {"k": 0.0},
        {"dof": 0.0},
        {"coverage_probability": 1.0},
        {"coverage_probability": 0.0},
        {"provenance": Provenance.UNAVAILABLE},
    ],
)
def test_an_impossible_estimate_is_refused(change: dict[str, object]) -> None:
    good: dict[str, object] = {"value": 1.0, "std": 0.1, "provenance": Provenance.SIMULATED}
    with pytest.raises(ValueError, match=r"(?i)estimate"):
        Estimate(**(good | change))  # type: ignore[arg-type]


def test_an_exact_factor_scales_value_and_doubt_alike() -> None:
    scaled = build().scaled(-3.0)
    assert (scaled.value, scaled.std) == pytest.approx((-6.0, 0.3))
    assert (scaled.k, scaled.boundary, scaled.provenance) == (2.0, Boundary.RAIL, Provenance.SIMULATED)


def test_a_reciprocal_keeps_the_relative_uncertainty() -> None:
    inverse = build().reciprocal()
    assert inverse.value == 0.5
    assert inverse.std / inverse.value == pytest.approx(0.1 / 2.0)
    assert build(value=-2.0).reciprocal().std > 0
    with pytest.raises(ZeroDivisionError):
        build(value=0.0).reciprocal()


def test_a_sum_claims_no_more_than_its_weakest_part() -> None:
    assert weakest([Provenance.MEASURED_COUNTER, Provenance.MODELLED, Provenance.SIMULATED]) is Provenance.MODELLED
    assert weakest(Provenance) is Provenance.UNAVAILABLE
    with pytest.raises(ValueError, match="empty"):
        weakest([])


def test_json_has_the_contract_s_keys_and_no_infinity() -> None:
    document = build().to_json()
    assert document == {
        "value": 2.0,
        "std": 0.1,
        "expanded": 0.2,
        "coverage_probability": 0.95,
        "k": 2.0,
        "dof": None,
        "provenance": "simulated",
        "boundary": "rail",
    }
    json.dumps(document, allow_nan=False)
    assert "boundary" not in Estimate(value=1, std=0, provenance=Provenance.MODELLED).to_json()


def test_what_is_not_known_is_null_with_a_reason_and_never_zero() -> None:
    assert Unavailable(reason="layer_refused").to_json() == {
        "value": None,
        "provenance": "unavailable",
        "reason": "layer_refused",
    }
