"""Meters that are lost, come back, or answer with no number, while they are sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.errors import PowerError, SetupError
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.stream import match_domains
from joulemap.records.live.domain import LiveDomain, MeterAddress
from live_captures import COUNTER, POWER
from sampled_meters import Clock, Meter, sample


def test_a_lost_meter_is_missing_until_it_can_be_opened_again() -> None:
    clock = Clock(stop_ns=6 * 10**9)
    notes: list[str] = []

    def take(read: int) -> float:
        if read == 50:
            raise PowerError("unplugged", slug="meter-lost", phase="power")
        return float(read)

    meter = Meter(clock, take)
    again = Meter(clock, lambda read: 1000.0 + read)
    tries: list[int] = []

    def reopen(_: MeterAddress) -> LiveMeter:
        tries.append(clock.at_ns)
        if len(tries) < 3:
            raise SetupError("still gone", slug="meter-unusable")
        return again

    rows, _ = sample(meter, clock, reopen=reopen, notes=notes)
    assert notes == ["meter_lost", "meter_back"]
    assert meter.closed == 1
    missing = np.isnan(rows.raw[:, 0])
    assert 280 <= int(missing.sum()) <= 305  # three tries, a second apart, at 100 Hz
    assert (np.diff(tries) >= 10**9).all()
    assert rows.raw[-1, 0] > 1000


def test_a_meter_that_comes_back_as_another_stays_lost() -> None:
    clock = Clock(stop_ns=4 * 10**9)
    notes: list[str] = []

    def take(read: int) -> float:
        if read == 5:
            raise PowerError("unplugged", slug="meter-lost", phase="power")
        return float(read)

    other = Meter(clock, float)
    other.domains = (POWER,)
    rows, _ = sample(Meter(clock, take), clock, reopen=lambda _: other, notes=notes)
    assert notes == ["meter_lost", "meter_changed"]  # looked for every second, said once
    assert np.isnan(rows.raw[10:, 0]).all()


def lose_at_fifth(clock: Clock, *domains: LiveDomain) -> Meter:
    def take(read: int) -> float:
        if read == 5:
            raise PowerError("unplugged", slug="meter-lost", phase="power")
        return float(read)

    meter = Meter(clock, take)
    meter.domains = domains
    return meter


class Numbered(Meter):
    """Each domain reads the number that stands in its name."""

    def read(self, raw: NDArray[np.float64]) -> None:
        raw[:] = [float(domain.name[-1]) for domain in self.domains]


ONE, TWO, THREE = (replace(COUNTER, name=f"package-{number}") for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("back", "seconds", "notes", "last"),
    [
        ((ONE, TWO), 4, ["meter_lost", "meter_back"], [1.0, 2.0]),
        ((THREE, TWO, ONE), 4, ["meter_lost", "meter_back"], [1.0, 2.0]),  # in another order, with more
        ((replace(ONE, update_period_s=0.5, largest_w=9.0), TWO), 4, ["meter_lost", "meter_back"], [1.0, 2.0]),
        ((TWO,), 4, ["meter_lost"], [np.nan, np.nan]),  # the rest may follow
        ((TWO,), 14, ["meter_lost", "meter_changed", "meter_back"], [np.nan, 2.0]),
        ((replace(ONE, modulus=1e6), TWO), 14, ["meter_lost", "meter_changed", "meter_back"], [np.nan, 2.0]),
        (
            (replace(ONE, source="other"), replace(TWO, source="other")),
            4,
            ["meter_lost", "meter_changed"],
            [np.nan] * 2,
        ),
    ],
)
def test_a_meter_goes_on_with_what_is_as_it_was(
    back: tuple[LiveDomain, ...], seconds: int, notes: list[str], last: list[float]
) -> None:
    clock = Clock(stop_ns=seconds * 10**9)
    said: list[str] = []
    meter = lose_at_fifth(clock, ONE, TWO)
    again = Numbered(clock, float)
    again.domains = back
    rows, _ = sample(meter, clock, reopen=lambda _: again, notes=said)
    assert said == notes
    np.testing.assert_array_equal(rows.raw[-1], last)


def test_a_meter_that_was_another_for_a_while_goes_on_when_it_is_itself() -> None:
    clock = Clock(stop_ns=6 * 10**9)
    said: list[str] = []
    other, again = Numbered(clock, float), Numbered(clock, float)
    other.domains, again.domains = (replace(ONE, scale=1.0),), (ONE,)
    rows, _ = sample(
        lose_at_fifth(clock, ONE), clock, reopen=lambda _: again if clock.at_ns > 4 * 10**9 else other, notes=said
    )
    assert said == ["meter_lost", "meter_changed", "meter_back"]
    assert rows.raw[-1, 0] == 1.0


def test_what_differs_is_said_in_words() -> None:
    columns, words = match_domains((ONE, TWO, THREE), (replace(TWO, modulus=1e6), ONE))
    assert columns == [1, -1, -1]
    assert words == "package-2: modulus 1000000.0, not 4294967296.0; no package-3"


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), ValueError("no number")])
def test_a_reading_that_fails_is_missing_and_said_once(error: Exception) -> None:
    clock = Clock()
    notes: list[str] = []

    def take(read: int) -> float:
        if 20 <= read < 30:
            raise error
        return float(read)

    rows, _ = sample(Meter(clock, take), clock, notes=notes)
    assert notes == ["meter_unreadable"]
    assert int(np.isnan(rows.raw[:, 0]).sum()) == 10
