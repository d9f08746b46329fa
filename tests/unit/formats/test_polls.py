"""What polls tell of when a sensor renewed its value."""

from __future__ import annotations

import numpy as np
import pytest

from joulemap.formats.ground.series.polling import date_polls


def polls(stay: list[int], poll_s: float, power_w: list[float] | None = None) -> tuple[np.ndarray, np.ndarray]:
    values = np.array(power_w or [10.0 + 0.25 * k for k in range(len(stay))])
    shown = np.repeat(values, stay)
    return (1_000_000_000 + np.arange(shown.size) * round(poll_s * 1e9)).astype(np.int64), shown


def test_polls_in_step_are_dated_by_the_middle_of_the_two_polls_around_a_renewal() -> None:
    time_ns, shown = polls([5] * 30, 0.02)
    dated = date_polls(time_ns, shown, renewal_s=None)
    assert dated.renewal_s == pytest.approx(0.1)
    assert dated.std_s == pytest.approx(0.02 / 12**0.5)
    assert dated.late_s == pytest.approx(0.1 - 0.01)
    assert dated.even_ns.tolist() == dated.seen_ns.tolist()


def test_polls_out_of_step_bound_the_line_of_the_renewals() -> None:
    at_s = 0.0123 + 0.1 * np.arange(61)
    poll_s = np.arange(0.02, 6.0, 0.037)
    shown = 5.0 + np.sin(np.searchsorted(at_s, poll_s, side="right"))
    dated = date_polls(np.rint(poll_s * 1e9).astype(np.int64), shown, renewal_s=None)
    assert dated.renewal_s == pytest.approx(0.1, rel=1e-4)
    assert dated.std_s < 0.0015  # 0.0107 of one of them
    # what is new at a renewal is the mean of the time since the one before
    off_s = (dated.even_ns * 1e-9 - at_s[0]) / 0.1
    assert np.abs(off_s - np.rint(off_s)).max() * 0.1 < 0.003


def test_a_renewal_is_told_by_a_declaration_or_by_values_that_are_new_and_not_by_power_that_stays() -> None:
    steady = polls([5] * 60, 0.2, [10.0, 30.0] * 30)  # a second each
    assert date_polls(*steady, renewal_s=None).renewal_s is None
    assert date_polls(*steady, renewal_s=None).std_s == pytest.approx(0.2 / 12**0.5)
    assert date_polls(*steady, renewal_s=1.0).late_s == pytest.approx(0.9)
    assert date_polls(*polls([5] * 60, 0.2), renewal_s=None).renewal_s == pytest.approx(1.0)
    assert date_polls(*polls([5] * 60, 0.2), renewal_s=None, slowest_s=0.5).renewal_s is None
    assert date_polls(*polls([5] * 12, 0.02), renewal_s=None).renewal_s is None  # too few to tell
    chance = np.random.default_rng(1).geometric(0.8, 60).tolist()  # neighbours that happen to read alike
    assert date_polls(*polls(chance, 0.02), renewal_s=None).renewal_s is None


def test_renewals_that_show_nothing_new_and_polls_that_fail_do_not_move_the_others() -> None:
    time_ns, shown = polls([5, 10, 5, 5, 15] * 8, 0.02)
    whole = date_polls(time_ns, shown, renewal_s=None)
    assert whole.renewal_s == pytest.approx(0.1)
    shown[40:43] = np.nan
    late = np.delete(np.arange(time_ns.size), slice(90, 97))  # nothing was polled for a while
    some = date_polls(time_ns[late], shown[late], renewal_s=None)
    assert some.renewal_s == pytest.approx(0.1)
    assert set((some.even_ns - some.seen_ns).tolist()) == {0}
    assert date_polls(time_ns[:1], shown[:1], renewal_s=0.1).std_s == 0.0
