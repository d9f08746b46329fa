"""A known offset and drift are recovered within the bound that is printed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.analysis.clocks.regression import fit_clock
from joulemap.records.mapping.clock_map import AlignMethod
from mapped_traces import METER, WORK


@given(
    offset_ns=st.integers(-(10**18), 10**18),
    drift_ppm=st.floats(-200, 200),
    count=st.integers(3, 60),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80, deadline=None)
def test_exact_stamps_give_back_every_instant(offset_ns: int, drift_ppm: float, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = np.sort(rng.integers(0, 3_600 * 10**9, count))
    source[-1] = source[0] + 10**9 if source[-1] == source[0] else source[-1]
    drift = drift_ppm * 1e-6
    target = source + offset_ns + np.rint((source - source[0]).astype(np.float64) * drift).astype(np.int64)
    found = fit_clock((WORK, source), (METER, target), method=AlignMethod.MARKERS)
    assert np.abs(found.apply(source) - target).max() <= 2
    assert found.drift == pytest.approx(drift, abs=6 * found.drift_std + 1e-12)


@pytest.mark.parametrize("late", [0.0, 0.1])
def test_the_printed_bound_covers_at_its_rate(late: float) -> None:
    held = 0
    draws = 300
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(20, 200))
        source = np.sort(rng.integers(0, 100 * 10**9, count))
        drift, offset_ns = rng.uniform(-1e-4, 1e-4), int(rng.integers(-(10**15), 10**15))
        noise = rng.normal(0, 20_000, count) + np.where(rng.random(count) < late, rng.exponential(3e6, count), 0.0)
        target = source + offset_ns + np.rint(source * drift + noise).astype(np.int64)
        found = fit_clock((WORK, source), (METER, target), method=AlignMethod.MARKERS)
        at = int(rng.integers(0, 100 * 10**9))
        error_ns = int(found.apply(np.array([at], np.int64))[0]) - (at + offset_ns + round(at * drift))
        held += abs(error_ns) * 1e-9 <= 1.96 * found.std_at_s(at)
    assert held / draws >= (0.92 if not late else 0.8), held / draws
