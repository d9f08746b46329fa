"""The loop of the sampling process: deadlines, commands, pauses, and a slow meter beside a quick one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.loop import SamplingLoop, wrap_safe_period_s
from joulemap.meters.live.sampling.plan import Command
from joulemap.meters.live.sampling.stream import MeterStream
from joulemap.records.live.capture_layout import EXTRA_TICK
from joulemap.records.live.domain import MeterAddress
from sampled_meters import MS, Clock, Meter, sample, stream_of


def test_deadlines_are_absolute_whatever_a_reading_costs() -> None:
    clock = Clock()
    rows, _ = sample(Meter(clock, float, costs_ns=lambda n: n % 3 * MS), clock)
    scheduled = rows.tick != EXTRA_TICK
    ticks = rows.tick[scheduled].astype(int)
    assert (np.diff(ticks) == 1).all()
    late_ns = rows.stamp_ns[scheduled] - 10**9 - ticks * 10 * MS
    assert late_ns.min() >= 0
    assert late_ns.max() <= 3 * MS  # no drift: 99 readings later it is still the cost of one reading


def test_a_deadline_that_passed_is_left_out_with_its_number() -> None:
    clock = Clock()
    rows, _ = sample(Meter(clock, float, costs_ns=lambda n: 47 * MS if n == 20 else 0), clock)
    ticks = rows.tick[rows.tick != EXTRA_TICK].astype(int)
    assert sorted(set(range(1, ticks[-1] + 1)) - set(ticks.tolist())) == [20, 21, 22, 23]


def test_a_reading_can_be_asked_for_between_deadlines() -> None:
    clock = Clock(commands={10**9 + 123 * MS: [Command.READ]})
    rows, answers = sample(Meter(clock, float), clock)
    extra = rows.stamp_ns[rows.tick == EXTRA_TICK]
    assert 10**9 + 123 * MS in extra.tolist()
    assert len(answers) == 1


def test_a_pause_reads_seldom_and_a_resume_goes_on() -> None:
    clock = Clock(commands={10**9 + 200 * MS: [Command.PAUSE], 10**9 + 750 * MS: [Command.RESUME]})
    rows, answers = sample(Meter(clock, float), clock)
    paused = (rows.stamp_ns > 10**9 + 201 * MS) & (rows.stamp_ns < 10**9 + 749 * MS)
    assert 1 <= int(paused.sum()) <= 6
    assert (rows.tick[paused] == EXTRA_TICK).all()
    assert (rows.tick[rows.stamp_ns > 10**9 + 760 * MS] != EXTRA_TICK).sum() > 20
    assert len(answers) == 2


def test_a_pause_is_told_at_its_begin_and_at_its_end() -> None:
    clock = Clock(
        commands={
            10**9 + 200 * MS: [Command.PAUSE],
            10**9 + 300 * MS: [Command.PAUSE, Command.READ],
            10**9 + 750 * MS: [Command.RESUME],
            10**9 + 800 * MS: [Command.RESUME],
        }
    )
    told: list[tuple[int, int | None]] = []
    rows, answers = sample(Meter(clock, float), clock, paused=lambda begin, end: told.append((begin, end)))
    begin_ns, end_ns = 10**9 + 200 * MS, 10**9 + 750 * MS
    assert told == [(begin_ns, None), (begin_ns, end_ns)]
    assert {begin_ns, end_ns} <= set(rows.stamp_ns.tolist())
    assert len(answers) == 5


def test_counters_are_read_in_a_pause_whatever_the_owner_says_and_how_coarsely_it_is_heard() -> None:
    class Coarse(Clock):
        """Hears in whole milliseconds, and so ends a little early."""

        def listen(self, span_ns: int) -> Iterable[Command]:
            return super().listen(max(span_ns - 999_999, 0))

    said = {10**9 + at * MS: [Command.READ] for at in range(230, 740, 30)}
    clock = Coarse(commands={10**9 + 200 * MS: [Command.PAUSE], **said, 10**9 + 750 * MS: [Command.RESUME]})
    rows, answers = sample(Meter(clock, float), clock)
    paused = (rows.stamp_ns > 10**9 + 201 * MS) & (rows.stamp_ns < 10**9 + 749 * MS)
    assert int(paused.sum()) - (len(answers) - 2) == 5  # each 100 ms, besides those that were asked for


def test_the_last_reading_is_taken_when_it_stops() -> None:
    clock = Clock()
    rows, _ = sample(Meter(clock, float), clock)
    assert rows.tick[-1] == EXTRA_TICK


def test_a_meter_that_renews_seldom_is_read_seldom() -> None:
    clock = Clock()
    rows, _ = sample(Meter(clock, float), clock, every=10)
    assert set((rows.tick[rows.tick != EXTRA_TICK] % 10).tolist()) == {0}


def test_rows_that_nobody_takes_are_counted() -> None:
    clock = Clock()
    stream = stream_of(Meter(clock, float), clock, capacity=4)
    for tick in range(10):
        stream.read(tick)
    assert stream.overrun == 6
    taken = stream.take()
    assert taken is not None
    assert taken.stamp_ns.size == 4
    assert stream.take() is None


def test_counters_are_never_read_so_seldom_that_they_wrap_twice() -> None:
    clock = Clock()
    stream = stream_of(Meter(clock, float), clock)
    assert wrap_safe_period_s([stream]) == pytest.approx(2.0**32 * 1e-6 / 1000.0)


class Real:
    """The machine's time, and a command to stop after a while."""

    def __init__(self, seconds: float) -> None:
        self.until_ns = time.monotonic_ns() + round(seconds * 1e9)

    @staticmethod
    def now_ns() -> int:
        return time.monotonic_ns()

    @staticmethod
    def sleep_ns(span_ns: int) -> None:
        time.sleep(max(span_ns, 0) * 1e-9)

    def listen(self, span_ns: int) -> Iterable[Command]:
        time.sleep(min(span_ns, 5 * MS) * 1e-9)
        return (Command.STOP,) if time.monotonic_ns() >= self.until_ns else ()


class SlowMeter(Meter):
    """A meter whose reading takes its time, as one over a network does."""

    def read(self, raw: NDArray[np.float64]) -> None:
        time.sleep(0.06)
        self.reads += 1
        raw[0] = self.reads


def opener_of(meter: LiveMeter) -> Callable[[MeterAddress], LiveMeter]:
    return lambda _: meter


def test_a_slow_meter_is_read_beside_the_others_and_delays_none() -> None:
    clock = Clock()
    streams = [
        MeterStream(
            number, "m", meter, every=1, capacity=4096, reopen=opener_of(meter), note=lambda *_: None,
            now_ns=time.monotonic_ns,
        )
        for number, meter in enumerate((Meter(clock, float), SlowMeter(clock, float)))
    ]  # fmt: skip
    loop = SamplingLoop(
        streams=streams,
        period_ns=10 * MS,
        time=Real(1.2),
        flush=lambda: None,
        flush_ns=100 * MS,
        answered=lambda _: None,
        resting_ns=100 * MS,
    )
    loop.run()
    quick, slow = (stream.take() for stream in streams)
    assert quick is not None
    assert slow is not None
    assert streams[1].threaded
    assert not streams[0].threaded
    assert quick.stamp_ns.size > 2 * slow.stamp_ns.size > 6
    assert (slow.took_ns >= 50 * MS).all()
    assert float(np.median(quick.took_ns)) < MS
