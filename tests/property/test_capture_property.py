"""Whatever a counter does within its limits, its energy is the truth; wherever a capture is cut, it is a beginning."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.errors import FormatError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import read_capture
from joulemap.trace import integrate_between
from live_captures import COUNTER, capture_bytes, read_bytes, rows_of

STEP_S = 0.1
WIDE = replace(COUNTER, modulus=1e8, largest_w=400.0)  # a wrap every 250 ms at the limit: never two between readings


@given(
    power_w=st.lists(st.floats(1.0, 350.0), min_size=4, max_size=80),
    failed=st.sets(st.integers(1, 78), max_size=6),
    begin=st.floats(0.0, 1e8 - 1.0),
    late=st.lists(st.integers(0, 40_000_000), min_size=81, max_size=81),
)
@settings(max_examples=150)
def test_the_energy_of_a_counter_is_the_truth(
    power_w: list[float], failed: set[int], begin: float, late: list[int]
) -> None:
    """Random powers, wraps, and readings that fail singly or late: what lies between first and last is exact."""
    n = len(power_w) + 1
    alone = {at for at in failed if at < n - 1 and at - 1 not in failed and at + 1 not in failed}
    stamps = 10**9 + np.arange(n, dtype=np.int64) * 10**8 + np.array(late[:n], np.int64)
    spans_s = np.diff(stamps) * 1e-9
    counted_uj = np.concatenate([[0.0], np.cumsum(np.array(power_w) * spans_s * 1e6)])
    raw = np.floor(begin + counted_uj) % 1e8
    for at in alone:
        raw[at] = np.nan
    spaced = np.isfinite(raw)
    if (np.diff(stamps[spaced]) * 1e-9 > 0.25).any():
        return  # two readings so far apart may hide a wrap: such steps are gaps, tested elsewhere
    if any(raw[at + 1] < raw[at - 1] for at in alone):
        return  # a wrap that nobody saw may be a counter that began anew: such steps may be gaps, tested elsewhere
    rows = replace(rows_of(raw), stamp_ns=stamps)
    with tempfile.TemporaryDirectory() as folder:
        recording = read_bytes(capture_bytes([], WIDE, rows=rows), Path(folder))
    (trace,) = recording.traces
    held = integrate_between(trace, np.array([stamps[0], stamps[-1]]))
    assert trace.lost_samples == 0
    assert abs(float(held.energy_j[0]) - counted_uj[-1] * 1e-6) <= 2e-6 + 1e-12 * counted_uj[-1]


@given(cut=st.floats(0.0, 1.0), flip=st.floats(0.0, 1.0), n=st.integers(2, 120))
@settings(max_examples=100)
def test_a_cut_and_damaged_capture_gives_rows_of_the_whole_or_is_refused(cut: float, flip: float, n: int) -> None:
    data = bytearray(capture_bytes(np.arange(n) * 2e6))
    whole = {(int(s), float(r)) for s, r in zip(rows_of(np.arange(n) * 2e6).stamp_ns, np.arange(n) * 2e6, strict=True)}
    del data[round(cut * len(data)) :]
    if data:
        data[min(int(flip * len(data)), len(data) - 1)] ^= 0x10
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        path.write_bytes(bytes(data))
        try:
            rows = read_capture(path, FindingLog()).rows[0]
        except FormatError:
            return
    found = {(int(s), float(r)) for s, r in zip(rows.stamp_ns, rows.raw[:, 0], strict=True)}
    assert found <= whole
