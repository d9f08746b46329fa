"""The sampling loop: absolute deadlines, one reading each, rows to the capture, commands between deadlines.

A deadline that could not be kept is skipped and its number with it, so that what was missed stays visible. Time,
sleep and commands are handed in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from joulemap.meters.live.sampling.plan import Command
from joulemap.meters.live.sampling.stream import MeterStream

__all__ = ["LoopTime", "SamplingLoop", "wrap_safe_period_s"]

_NEAR_NS: Final = 4_000_000  # closer deadlines are slept for, farther ones listen to the owner
_LISTEN_NS: Final = 20_000_000
_LISTEN_MARGIN_NS: Final = 1_000_000  # who listens counts whole milliseconds
_EXTRA: Final = 0xFFFFFFFF
_TICKS: Final = 0xFFFFFFFF  # tick numbers run below EXTRA and then start anew
_SLOW_SHARE: Final = 0.25


class LoopTime(Protocol):
    """The loop's clock and ear."""

    def now_ns(self) -> int:
        """Returns the monotonic clock, ns."""
        ...

    def sleep_ns(self, span_ns: int) -> None:
        """Sleeps."""
        ...

    def listen(self, span_ns: int) -> Iterable[Command]:
        """Waits at most that long for commands and returns them; STOP when the owner is gone."""
        ...


def wrap_safe_period_s(streams: Sequence[MeterStream], longest_s: float = 20.0) -> float:
    """Returns how seldom counters may be read so that none can pass its end twice unseen, s.

    References:
        METHODS 1.2: poll at most every R / (2 P_max).
    """
    periods = [
        domain.modulus * domain.scale / (2.0 * domain.largest_w)
        for stream in streams
        for domain in stream.domains
        if domain.modulus is not None and domain.largest_w is not None
    ]
    return min([longest_s, *periods])


@dataclass(slots=True)
class SamplingLoop:
    """Samples streams until it is told to stop.

    Args:
        streams: read in order at each deadline that is theirs.
        period_ns: between two deadlines, ns.
        time: clock and commands.
        flush: writes what the streams hold.
        flush_ns: longest time between two flushes, ns.
        answered: told the stamp after each reading that was asked for.
        resting_ns: between two readings while paused, ns.
        paused: told begin and end of each pause, ns, twice: at its begin, when it has no end, and at its end.
        begins_paused: it is paused before its first reading, until it is told to go on.
    """

    streams: Sequence[MeterStream]
    period_ns: int
    time: LoopTime
    flush: Callable[[], None]
    flush_ns: int
    answered: Callable[[int], None]
    resting_ns: int
    paused: Callable[[int, int | None], None] = lambda _begin_ns, _end_ns: None
    begins_paused: bool = False
    _paused_ns: int = field(default=0, init=False)
    _paused: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)
    _heard_ns: int = field(default=0, init=False)
    _threads: list[threading.Thread] = field(default_factory=list, init=False)

    def run(self) -> None:
        """Samples; returns after a command to stop, with everything flushed."""
        slow = self._first_readings()
        quick = [stream for stream in self.streams if stream not in slow]
        for stream in slow:
            thread = threading.Thread(target=self._run_slow, args=(stream,), daemon=True)
            self._threads.append(thread)
            thread.start()
        self.flush()
        now_ns = start_ns = self._heard_ns = flushed_ns = self.time.now_ns()
        number = 0
        while not self._stopped:
            if self._paused:
                number, now_ns = 0, self._rest()
                start_ns = now_ns
                continue
            deadline_ns = start_ns + (number + 1) * self.period_ns
            if now_ns > deadline_ns + self.period_ns:  # whole deadlines went by
                number = (now_ns - start_ns) // self.period_ns
                deadline_ns = start_ns + (number + 1) * self.period_ns
            number += 1
            if not self._wait(deadline_ns, now_ns):
                continue
            tick = number % _TICKS
            for stream in quick:
                if number % stream.every == 0:
                    stream.read(tick)
            now_ns = self.time.now_ns()
            if now_ns - flushed_ns >= self.flush_ns:
                flushed_ns = now_ns
                self.flush()
                now_ns = self.time.now_ns()
        for thread in self._threads:
            thread.join(0.2)
        self.flush()

    def _first_readings(self) -> list[MeterStream]:
        """Reads all once; returns the streams whose reading is too slow to share the loop with others.

        A pause that lasts from before is told first, so that these readings lie in it.
        """
        if self.begins_paused:
            self._begin_pause()
        if len(self.streams) == 1:
            self.streams[0].read(_EXTRA)
            return []
        limit_ns = self.period_ns * _SLOW_SHARE
        return [s for s in self.streams if s.read(_EXTRA) > limit_ns and s.read(_EXTRA) > limit_ns]

    def _wait(self, deadline_ns: int, now_ns: int) -> bool:
        """Waits for a deadline; returns False when a command changed what is to be done."""
        clock_ns = self.time.now_ns
        while True:
            left_ns = deadline_ns - now_ns
            if left_ns > _NEAR_NS or now_ns - self._heard_ns > _LISTEN_NS:
                self._heard_ns = now_ns
                if self._obey(self.time.listen(max(left_ns - _NEAR_NS // 2, 0))):
                    return False
            elif left_ns > 0:
                self.time.sleep_ns(left_ns)
            else:
                return True
            now_ns = clock_ns()

    def _obey(self, commands: Iterable[Command]) -> bool:
        """Carries commands out; returns True when sampling is to stop or to pause."""
        for command in commands:
            if command is Command.READ:
                self._read_now()
            elif command is Command.PAUSE:
                self._pause()
            elif command is Command.RESUME:
                self._resume()
            else:
                self._read_all()
                self._stopped = True
        return self._stopped or self._paused

    def _pause(self) -> None:
        """Begins a pause after a last reading; nothing is said twice."""
        self._read_all()
        if not self._paused:
            self._begin_pause()
        self._tell_read()

    def _begin_pause(self) -> None:
        self._paused, self._paused_ns = True, self.time.now_ns()
        self.paused(self._paused_ns, None)

    def _resume(self) -> None:
        """Ends a pause with a first reading."""
        if self._paused:
            self._paused = False
            self.paused(self._paused_ns, self.time.now_ns())
        self._read_now()

    def _read_now(self) -> None:
        self._read_all()
        self._tell_read()

    def _tell_read(self) -> None:
        self.flush()
        self.answered(self.time.now_ns())

    def _read_all(self) -> None:
        for stream in self.streams:
            if not stream.threaded:
                stream.read(_EXTRA)

    def _rest(self) -> int:
        """Waits for the end of a pause, reading just often enough for counters; returns the new start, ns."""
        due_ns = self.time.now_ns() + self.resting_ns
        while self._paused and not self._stopped:
            left_ns = due_ns - self.time.now_ns()
            if left_ns > 0:  # what the owner says in between puts no reading off: a counter would wrap twice
                self._obey(self.time.listen(left_ns + _LISTEN_MARGIN_NS))
            else:
                self._read_all()
                self.flush()
                due_ns = self.time.now_ns() + self.resting_ns
        return self.time.now_ns()

    def _run_slow(self, stream: MeterStream) -> None:
        """Reads a meter that takes its time, at its own deadlines, so that it delays no other."""
        stream.threaded = True
        period_ns = self.period_ns * stream.every
        start_ns = self.time.now_ns()
        number = 0
        while not self._stopped:
            number += 1
            left_ns = start_ns + number * period_ns - self.time.now_ns()
            if left_ns < -period_ns:
                number = (self.time.now_ns() - start_ns) // period_ns
                continue
            self.time.sleep_ns(max(min(left_ns, period_ns), 0))
            if not self._paused:
                stream.read(number * stream.every % _TICKS)
