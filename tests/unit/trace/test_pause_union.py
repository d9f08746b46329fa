"""Pauses united: in order, disjoint, and over the same time as before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joulemap.trace.pauses import unite_pauses

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8)


@given(SPANS)
def test_united_pauses_hold_the_same_time_in_order(spans: list[tuple[int, int]]) -> None:
    united = unite_pauses(np.array(spans, np.int64).reshape(-1, 2)).tolist()
    assert united == sorted(united)
    assert all(begin < end for begin, end in united)
    assert all(before[1] < after[0] for before, after in pairwise(united))
    held = {tick for begin, end in united for tick in range(begin, end)}
    assert held == {tick for begin, end in spans for tick in range(begin, end)}
