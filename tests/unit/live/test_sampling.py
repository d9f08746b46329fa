"""The sampling process from inside: deadlines, commands, lost meters, full disks, shared memory."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.errors import PowerError, SetupError, UsageError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.segments import read_capture
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.clocks import read_clocks
from joulemap.meters.live.sampling.loop import SamplingLoop, wrap_safe_period_s
from joulemap.meters.live.sampling.plan import Command, NamedMeter, Priority, SamplingPlan
from joulemap.meters.live.sampling.process import SamplerProcess
from joulemap.meters.live.sampling.ring import RingReader, RingWriter, open_ring_memory
from joulemap.meters.live.sampling.stream import MeterStream, match_domains
from joulemap.meters.live.sampling.writer import BackgroundWriter, CaptureWriter
from joulemap.records.live.capture_header import CaptureHeader
from joulemap.records.live.capture_layout import (
    EXTRA_TICK,
    MAGIC,
    BlockKind,
    SampleRows,
    decode_blocks,
    decode_samples,
    encode_block,
    encode_samples,
)
from joulemap.records.live.domain import LiveDomain, MeterAddress
from live_captures import COUNTER, POWER, header_block, header_of, rows_of

MS = 1_000_000


@dataclass
class Clock:
    """Time that passes only when it is slept or listened for."""

    at_ns: int = 10**9
    commands: dict[int, list[Command]] = field(default_factory=dict)  # at which time the owner says what
    stop_ns: int = 2 * 10**9
    listened: list[int] = field(default_factory=list)

    def now_ns(self) -> int:
        return self.at_ns

    def sleep_ns(self, span_ns: int) -> None:
        self.at_ns += span_ns

    def listen(self, span_ns: int) -> Iterable[Command]:
        self.listened.append(span_ns)
        until = self.at_ns + span_ns
        due = sorted(at for at in self.commands if at <= until)
        if due:
            self.at_ns = max(self.at_ns, due[0])
            return tuple(self.commands.pop(due[0]))
        self.at_ns = until
        return (Command.STOP,) if self.at_ns >= self.stop_ns else ()


class Meter:
    """A meter whose readings a test chooses; each takes its own time."""

    def __init__(
        self, clock: Clock, take: Callable[[int], float], *, costs_ns: Callable[[int], int] = lambda _: 0
    ) -> None:
        self.clock = clock
        self.take = take
        self.costs_ns = costs_ns
        self.reads = 0
        self.closed = 0
        self.domains: tuple[LiveDomain, ...] = (COUNTER,)

    @property
    def address(self) -> MeterAddress:
        return MeterAddress(driver="test")

    def open(self) -> None:
        """Nothing to open."""

    def read(self, raw: NDArray[np.float64]) -> None:
        self.reads += 1
        self.clock.at_ns += self.costs_ns(self.reads)
        raw[0] = self.take(self.reads)

    def close(self) -> None:
        self.closed += 1


def stream_of(meter: Meter, clock: Clock, *, every: int = 1, reopen: Callable[[MeterAddress], LiveMeter] | None = None,
              notes: list[str] | None = None, capacity: int = 4096) -> MeterStream:  # fmt: skip
    def refuse(_: MeterAddress) -> LiveMeter:
        raise SetupError("gone", hint="", slug="meter-unusable")

    return MeterStream(
        0,
        "m",
        meter,
        every=every,
        capacity=capacity,
        reopen=reopen or refuse,
        note=lambda slug, _message, _at: None if notes is None else notes.append(slug),
        now_ns=clock.now_ns,
    )


def sample(
    meter: Meter,
    clock: Clock,
    *,
    period_ns: int = 10 * MS,
    paused: Callable[[int, int | None], None] = lambda _begin, _end: None,
    **given: object,
) -> tuple[SampleRows, list[int]]:
    stream = stream_of(meter, clock, **given)  # type: ignore[arg-type]
    answers: list[int] = []
    rows: list[SampleRows] = []

    def flush() -> None:
        taken = stream.take()
        if taken is not None:
            rows.append(taken)

    loop = SamplingLoop(
        streams=[stream],
        period_ns=period_ns,
        time=clock,
        flush=flush,
        flush_ns=50 * MS,
        answered=answers.append,
        resting_ns=100 * MS,
        paused=paused,
    )
    loop.run()
    joined = SampleRows(
        stamp_ns=np.concatenate([r.stamp_ns for r in rows]),
        tick=np.concatenate([r.tick for r in rows]),
        took_ns=np.concatenate([r.took_ns for r in rows]),
        raw=np.concatenate([r.raw for r in rows]),
    )
    return joined, answers


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


def test_a_full_disk_keeps_blocks_and_says_so() -> None:
    writer = CaptureWriter(Path("/dev/full"), kept_b=1000)
    for _ in range(5):
        writer.append(encode_samples(rows_of(np.arange(16.0)), 0))
    assert writer.problem
    assert writer.dropped == 4
    writer.close()


def test_what_waited_for_room_is_written_when_there_is_some(tmp_path: Path) -> None:
    path = tmp_path / "c"
    writer = CaptureWriter(path)
    real = writer._descriptor
    full = os.open("/dev/full", os.O_WRONLY)
    writer._descriptor = full
    writer.append(header_block(header_of(COUNTER)), encode_samples(rows_of(np.arange(16.0) * 1e6), 0))
    writer._descriptor = real
    os.close(full)
    writer.append(encode_samples(rows_of(np.arange(16.0) * 1e6, begin_ns=10**10), 0))
    writer.close()
    capture = read_capture(path, FindingLog())
    assert capture.rows[0].stamp_ns.size == 32
    assert [note.slug for note in capture.notes] == ["capture_unwritable"]


def test_a_disk_that_hangs_delays_no_reading(tmp_path: Path) -> None:
    """A pipe that nobody reads stands for a disk that does not answer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = BackgroundWriter(CaptureWriter(pipe), kept_b=300_000)
    block = encode_samples(rows_of(np.arange(4000.0)), 0)
    for _ in range(8):
        writer.append(block)  # the third is more than the pipe takes
    assert not writer.drain(0.05)
    assert writer.dropped > 0
    taken = bytearray()
    while not writer.drain(0.001):
        with contextlib.suppress(BlockingIOError):
            taken += os.read(reading, 1 << 16)
    writer.close()
    while more := os.read(reading, 1 << 16):
        taken += more
    os.close(reading)
    kinds = [found.kind for found in decode_blocks(bytes(taken))]
    assert 1 <= len(kinds) <= 8 - writer.dropped


def test_a_block_that_is_damaged_is_skipped_and_the_next_is_found() -> None:
    blocks = [encode_block(BlockKind.NOTE, b"x" * n) for n in (5, 50, 500)]
    data = bytearray(MAGIC + b"".join(blocks))
    data[len(MAGIC) + len(blocks[0]) + 30] ^= 1
    found = list(decode_blocks(bytes(data)))
    assert [len(block.payload) for block in found] == [5, 500]
    assert [block.skipped_b for block in found] == [0, len(blocks[1])]


def test_samples_survive_the_trip() -> None:
    rows = rows_of(np.arange(20.0).reshape(10, 2))
    (block,) = decode_blocks(MAGIC + encode_samples(rows, 3))
    back = decode_samples(block)
    assert block.stream == 3
    np.testing.assert_array_equal(back.raw, rows.raw)
    np.testing.assert_array_equal(back.stamp_ns, rows.stamp_ns)


def test_a_header_survives_the_trip_and_a_newer_one_is_refused() -> None:
    header = header_of(COUNTER, POWER)
    document = json.loads(json.dumps(header.to_json()))
    assert CaptureHeader.from_json(document) == header
    with pytest.raises(ValueError, match="version"):
        CaptureHeader.from_json(document | {"schema_version": 99})
    del document["streams"]
    with pytest.raises(ValueError, match="lacks"):
        CaptureHeader.from_json(document)


def test_a_short_slice_is_asked_for_and_leaves_policy_and_nice_alone() -> None:
    code = (
        "import os\n"
        "from joulemap.meters.live.sampling.plan import Priority\n"
        "from joulemap.meters.live.sampling.scheduling import request_short_slice, take_priority\n"
        "before = os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0)\n"
        "granted = request_short_slice(), request_short_slice()\n"
        "print(*granted, take_priority(Priority.NORMAL))\n"
        "assert before == (os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() in (["True", "True", "normal"], ["False", "False", "normal"])
    linux = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
    if linux and tuple(map(int, platform.release().split(".")[:2])) >= (6, 12):
        assert done.stdout.startswith("True")


def test_a_live_reader_sees_each_row_once_and_counts_what_it_missed() -> None:
    memory = open_ring_memory()
    writer = RingWriter(memory, [1, 2], 8)
    reader = RingReader(memory, [1, 2], 8)
    for k in range(5):
        writer.write(1, k, np.array([k, -k], np.float64).data)
    rows = reader.read(1)
    assert rows.stamp_ns.tolist() == [0, 1, 2, 3, 4]
    assert rows.lost == 0
    assert reader.read(1).stamp_ns.size == 0
    for k in range(5, 25):
        writer.write(1, k, np.array([k, -k], np.float64).data)
    rows = reader.read(1)
    assert rows.stamp_ns.tolist() == list(range(18, 25))  # the place of the next row counts as gone
    assert rows.lost == 13
    np.testing.assert_array_equal(rows.raw[:, 1], -np.arange(18.0, 25.0))
    os.close(memory)


def test_a_plan_survives_the_trip() -> None:
    plan = SamplingPlan(
        meters=(NamedMeter(name="a", address=MeterAddress(driver="simulated", options={"mean_w": "3"})),),
        rate_hz=12.5,
        session="s",
        file="x",
        priority=Priority.NICE,
    )
    back = SamplingPlan.from_line(plan.to_line())
    assert (back.rate_hz, back.priority, back.file) == (12.5, Priority.NICE, "x")
    assert dict(back.meters[0].address.options) == {"mean_w": "3"}
    with pytest.raises(ValueError, match="rate"):
        SamplingPlan(meters=plan.meters, rate_hz=0.0, session="s")


def test_clocks_are_read_together() -> None:
    first, second = read_clocks(), read_clocks()
    assert second.monotonic_ns >= first.monotonic_ns
    assert first.width_ns >= 0


def plan_of(file: Path, **options: str) -> SamplingPlan:
    address = MeterAddress(driver="simulated", options=options)
    return SamplingPlan(
        meters=(NamedMeter(name="simulated", address=address),), rate_hz=100.0, session="s", file=str(file)
    )


def test_a_process_that_cannot_open_its_meter_says_why(tmp_path: Path) -> None:
    sampler = SamplerProcess(plan_of(tmp_path / "c", colour="red"))
    with pytest.raises(UsageError) as caught:
        sampler.start()
    assert caught.value.slug == "meter-option"
    sampler.stop()


def test_a_process_loads_nothing_heavy(tmp_path: Path) -> None:
    """The modules of the entry, as the process imports them."""
    import subprocess
    import sys

    heavy = "numba pyarrow scipy pandas rich click"
    program = (
        "import sys, joulemap.meters.live.sampling.entry, joulemap.meters.live.drivers.virtual.simulated, "
        "joulemap.meters.live.drivers.host.powercap\n"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.strip() == "[]"


def test_a_process_reads_when_asked_and_ends_when_told(tmp_path: Path) -> None:
    file = tmp_path / "c"
    sampler = SamplerProcess(plan_of(file))
    sampler.start()
    pid = sampler.pid
    first = sampler.read_now()
    second = sampler.read_now()
    assert first is not None
    assert second is not None
    assert second > first
    assert sampler.pause() is not None
    assert sampler.resume() is not None
    end = sampler.stop()
    assert end.status == 0
    assert end.told["reason"] == "stopped"
    assert not Path(f"/proc/{pid}").exists()
    capture = read_capture(file, FindingLog())
    assert capture.ended
    assert len(capture.pauses) == 1
    assert sampler.read_now() is None
