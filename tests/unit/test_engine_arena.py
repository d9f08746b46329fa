"""The arena planner, and who may share memory."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulemap.firmware.engines.aot.arena import ALIGNMENT_B, ArenaBuffer, plan_arena

buffers = st.builds(
    lambda size_b, first, length: ArenaBuffer(size_b=size_b, first=first, last=first + length),
    st.integers(1, 5000),
    st.integers(0, 20),
    st.integers(0, 8),
)


@given(st.lists(buffers, max_size=25))
def test_live_buffers_never_overlap_and_starts_are_aligned(drawn: list[ArenaBuffer]) -> None:
    plan = plan_arena(drawn)
    placed = list(zip(drawn, plan.offsets_b, strict=True))
    for (a, at_a), (b, at_b) in itertools.combinations(placed, 2):
        if a.overlaps(b):
            assert at_a + a.size_b <= at_b or at_b + b.size_b <= at_a
    assert all(at % ALIGNMENT_B == 0 for at in plan.offsets_b)
    assert plan.size_b == max((at + b.size_b for b, at in placed), default=0)


@given(st.lists(buffers, min_size=1, max_size=25))
def test_the_arena_is_no_larger_than_all_and_no_smaller_than_what_lives_at_once(drawn: list[ArenaBuffer]) -> None:
    size_b = plan_arena(drawn).size_b
    padded_b = sum(-(-b.size_b // ALIGNMENT_B) * ALIGNMENT_B for b in drawn)
    steps = range(max(b.last for b in drawn) + 1)
    assert max(sum(b.size_b for b in drawn if b.first <= s <= b.last) for s in steps) <= size_b <= padded_b


def test_a_chain_needs_only_its_two_largest_neighbours() -> None:
    sizes = [64, 4096, 1024, 2048, 16]
    chain = [ArenaBuffer(size_b=size, first=i, last=i + 1) for i, size in enumerate(sizes)]
    assert plan_arena(chain).size_b == 4096 + 1024


def test_nothing_needs_nothing() -> None:
    assert plan_arena([]).size_b == 0


@pytest.mark.parametrize(("size_b", "first", "last"), [(0, 0, 1), (-1, 0, 1), (4, 2, 1)])
def test_a_buffer_without_size_or_with_a_backward_life_is_refused(size_b: int, first: int, last: int) -> None:
    with pytest.raises(ValueError, match="a buffer of"):
        ArenaBuffer(size_b=size_b, first=first, last=last)
