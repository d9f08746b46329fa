"""Which operators are taken to read their weights from a cache, by what a machine can read from its memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from joulemap.runtimes.graphs.repetition import Caches
from joulemap.workflow.host.windows.weight_room import find_room

MIB = 1 << 20


CACHES = Caches(near_b=MIB // 2, last_b=8 * MIB, whole_b=32 * MIB)


def session(*weights_b: int) -> Any:
    operators = [SimpleNamespace(weights_b=size_b, bytes=3 * size_b) for size_b in weights_b]
    return SimpleNamespace(model=SimpleNamespace(constants_b=sum(weights_b), operators=operators))


def times_s(*rates_b_per_s: float, weights_b: int = MIB) -> Any:
    return np.array([weights_b / rate for rate in rates_b_per_s])


def test_weights_that_come_faster_than_from_memory_come_from_a_cache() -> None:
    room = find_room(session(MIB, MIB, MIB), times_s(9e9, 3e10, 1e11), caches=CACHES)
    assert (room.fast, room.cached) == (frozenset({1, 2}), frozenset({2}))
    assert room.read_b == (MIB, MIB, MIB)  # half of what is no weights


def test_a_model_that_no_cache_holds_is_read_from_memory_however_fast_that_is() -> None:
    sizes_b = (MIB, MIB, 31 * MIB)
    assert find_room(session(*sizes_b), times_s(1e10, 2e11, 2e11), caches=CACHES).cached == frozenset()


def test_a_share_so_small_that_its_time_may_be_wrong_is_repeated_all_the_same() -> None:
    usual = times_s(1e10, 1e10)
    assert find_room(session(MIB, MIB, MIB), np.append(usual, 0.0), caches=CACHES).cached == frozenset()
    assert find_room(session(MIB, MIB, 64 * 1024), np.append(usual, 65536 / 2e11), caches=CACHES).cached == frozenset()
    assert find_room(session(MIB, MIB, 4 * MIB), np.append(usual, 4 * MIB / 2e11), caches=CACHES).cached == {2}


def test_operators_of_unknown_time_are_in_neither_set() -> None:
    room = find_room(session(MIB, MIB), np.array([np.nan, MIB / 2e11]), caches=CACHES)
    assert (room.fast, room.cached) == (frozenset({1}), frozenset({1}))
