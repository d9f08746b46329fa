"""A loop of the sampling process over one meter whose readings, and their cost, a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.sampling.loop import SamplingLoop
from joulemap.meters.live.sampling.plan import Command
from joulemap.meters.live.sampling.stream import MeterStream
from joulemap.records.live.capture_layout import SampleRows
from joulemap.records.live.domain import LiveDomain, MeterAddress
from live_captures import COUNTER

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
