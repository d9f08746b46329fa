"""Efficiency figures against METHODS 3."""

from __future__ import annotations

import pytest

from joulemap.analysis.metrics import energy_delay_product, frames_per_joule, ops_per_joule
from joulemap.estimate import Estimate, Provenance, Unavailable


def joules(value: float, std: float = 0.0) -> Estimate:
    return Estimate(value=value, std=std, provenance=Provenance.SIMULATED)


def test_thirty_frames_at_two_watts() -> None:
    """30 fps at 2 W: .0667 J per frame, 15 frames per joule."""
    frames = frames_per_joule(joules(2.0 / 30, std=0.01 * 2.0 / 30))
    assert isinstance(frames, Estimate)
    assert frames.value == pytest.approx(15.0)
    assert frames.std == pytest.approx(0.15)


def test_operations_per_joule() -> None:
    """4 GOP, 50 inferences a second, 10 W: 20 GOP/J."""
    per_joule = ops_per_joule(joules(10.0 / 50), 4_000_000_000)
    assert isinstance(per_joule, Estimate)
    assert per_joule.value == pytest.approx(20e9)


def test_energy_delay_products() -> None:
    """2 J, 10 ms: .02 J s and 2e-4 J s²."""
    assert energy_delay_product(joules(2.0), 0.01).value == pytest.approx(0.02)
    assert energy_delay_product(joules(2.0), 0.01, power=2).value == pytest.approx(2e-4)


def test_what_is_missing_stays_missing() -> None:
    missing = Unavailable(reason="captures_dropped")
    assert frames_per_joule(missing) is missing
    assert ops_per_joule(missing, 5) is missing
    assert ops_per_joule(joules(1.0), 0) == Unavailable(reason="no_ops")
    assert frames_per_joule(joules(0.0)) == Unavailable(reason="no_energy")
