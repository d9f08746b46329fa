"""Groups are widened only as far as needed, with the neighbour that helps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.grouping import LayerGroup, choose_groups

Array = NDArray[np.float64]


def by_time(std_s: float) -> object:
    """Returns a half-width that only knows how long a sum lasts, as an uncertain boundary makes it."""

    def half_width(weight_s: Array) -> float:
        return 1.96 * std_s / float(weight_s.sum())

    return half_width


def groups_of(region_s: list[float], std_s: float) -> tuple[LayerGroup, ...]:
    half_width = by_time(std_s)
    assert callable(half_width)
    return choose_groups(np.array(region_s), half_width)


def test_everything_stands_alone_when_it_can() -> None:
    groups = groups_of([1.0, 2.0, 3.0, 0.5], 1e-3)
    assert [g.layers for g in groups] == [(0,), (1,), (2,), ()]
    assert [g.gap for g in groups] == [False, False, False, True]


def test_a_tiny_layer_joins_its_smaller_neighbour() -> None:
    groups = groups_of([10.0, 1e-4, 2.0, 5.0, 1.0], 1e-3)
    assert (1, 2) in [g.layers for g in groups]
    assert (0,) in [g.layers for g in groups]


def test_a_tiny_gap_stands_alone_as_it_hardly_weighs() -> None:
    groups = groups_of([1.0, 2.0, 1e-5], 1e-4)
    assert groups[-1] == LayerGroup(layers=(), gap=True)


def test_a_gap_that_weighs_and_is_unknown_is_joined() -> None:
    groups = groups_of([1.0, 2.0, 0.1], 0.01)
    assert sum(g.gap for g in groups) == 1
    assert all(g.layers for g in groups)


def test_the_last_layer_takes_the_gap_when_only_their_sum_is_known() -> None:
    """The boundary between last layer and gap is unknown, every other one is known."""

    def half_width(weight_s: Array) -> float:
        crosses = (weight_s[2] > 0) != (weight_s[3] > 0)
        return (0.5e-3 if crosses else 1e-6) / float(weight_s.sum())

    groups = choose_groups(np.array([1.0, 1.0, 1e-3, 1e-3]), half_width)
    assert groups == (LayerGroup(layers=(0,)), LayerGroup(layers=(1,)), LayerGroup(layers=(2,), gap=True))


def test_nothing_can_be_told() -> None:
    groups = groups_of([1.0, 1.0, 1.0, 0.1], 10.0)
    assert len(groups) == 1
    assert groups[0].layers == (0, 1, 2)
    assert groups[0].gap


def test_a_single_layer_is_a_group_of_its_own() -> None:
    assert groups_of([1.0, 1e-6], 1e-4)[0].layers == (0,)
