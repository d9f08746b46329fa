"""The sampling process: ``python -m joulemap.meters.live.sampling.entry``, its plan on the first line of stdin.

Answers on stdout, one JSON line each: ``ready`` or ``failed``, ``read`` after each reading that was asked for, and
``end``. It ends when it is told to, when its standard input ends, or when its parent is gone; it leaves
signals from the terminal to its owner. It loads no numba, no pyarrow and no screen.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from joulemap import __version__
from joulemap.errors import JoulemapError
from joulemap.meters.live.registry import open_meter
from joulemap.meters.live.sampling.clocks import read_clocks
from joulemap.meters.live.sampling.loop import SamplingLoop, wrap_safe_period_s
from joulemap.meters.live.sampling.plan import Command, SamplingPlan
from joulemap.meters.live.sampling.ring import RingWriter
from joulemap.meters.live.sampling.scheduling import take_priority
from joulemap.meters.live.sampling.stream import MeterStream
from joulemap.meters.live.sampling.writer import BackgroundWriter, CaptureWriter
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.capture_layout import (
    OWNER_LOST,
    BlockKind,
    encode_block,
    encode_clocks,
    encode_pause,
    encode_samples,
)

__all__ = ["main"]

_GOING: Final = 40
_GOING_S: Final = 0.05
_RING_S: Final = 8.0
_FIRST_WRITE_S: Final = 10.0
_UPDATE_SHARE: Final = 4  # readings per update of the source: where it changes is then known to a quarter


class _OwnerTime:
    """The machine's clock, and the owner's commands on standard input."""

    now_ns = staticmethod(time.monotonic_ns)

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN | select.POLLHUP)
        self.told_to_stop = False
        self.ended_by = "stopped"

    @staticmethod
    def sleep_ns(span_ns: int) -> None:
        time.sleep(span_ns * 1e-9)

    def clear_away(self, folder: str) -> None:
        """Removes a folder of an owner that is gone; what closed its pipe a moment ago may still be ending."""
        for _ in range(_GOING if folder and self.ended_by == OWNER_LOST else 0):
            if os.getppid() != self._parent:
                shutil.rmtree(folder, ignore_errors=True)
                return
            time.sleep(_GOING_S)

    def listen(self, span_ns: int) -> Iterable[Command]:
        """Returns what the owner says within that time; looks for the owner itself at least every half second."""
        end_ns = time.monotonic_ns() + span_ns
        while True:
            if self.told_to_stop or (self._parent and os.getppid() != self._parent):
                self.ended_by = "terminated" if self.told_to_stop else OWNER_LOST
                return (Command.STOP,)
            left_ms = (end_ns - time.monotonic_ns()) // 1_000_000
            if self._poll.poll(max(min(left_ms, 500), 0)):
                said = os.read(0, 64)
                if not said:
                    self.ended_by = OWNER_LOST
                    return (Command.STOP,)
                return tuple(Command(sign) for sign in said.decode("ascii", "replace") if sign in "rpgq")
            if left_ms <= 0:
                return ()


class _Capture:
    """What one process adds to a capture; without a file only live readers see the samples."""

    def __init__(self, plan: SamplingPlan) -> None:
        self.writer = BackgroundWriter(CaptureWriter(Path(plan.file))) if plan.file else None
        self.streams: list[MeterStream] = []
        self.rows = 0

    def note(self, stream: int, slug: str, message: str, at_ns: int) -> None:
        if self.writer is not None:
            self.writer.note(slug, message, at_ns, stream)
        _answer({"note": slug, "message": message})

    def note_pause(self, begin_ns: int, end_ns: int | None) -> None:
        if self.writer is not None:
            self.writer.append(encode_pause(begin_ns, end_ns))

    def flush(self) -> None:
        taken = [(stream.number, stream.take()) for stream in self.streams]
        self.rows += sum(rows.stamp_ns.size for _, rows in taken if rows is not None)
        if self.writer is not None:
            blocks = [encode_samples(rows, number) for number, rows in taken if rows is not None]
            self.writer.append(encode_clocks(read_clocks()), *blocks)

    def end(self, reason: str) -> dict[str, Any]:
        told: dict[str, Any] = {"reason": reason, "rows": self.rows, "overrun": sum(s.overrun for s in self.streams)}
        if self.writer is not None:
            told["dropped"] = self.writer.dropped
            self.writer.append(encode_block(BlockKind.END, json.dumps(told).encode()))
            self.writer.close()
            told["problem"] = self.writer.problem
        return told


def main() -> None:
    """Runs the process."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    try:
        plan = SamplingPlan.from_line(_read_line())
    except (ValueError, KeyError, TypeError) as error:
        _answer({"failed": {"message": f"no plan: {error}", "hint": "", "slug": "sampler-failed", "usage": False}})
        sys.exit(2)
    try:
        _run(plan)
    except JoulemapError as error:
        kind = type(error).__name__ == "UsageError"
        _answer({"failed": {"message": error.message, "hint": error.hint, "slug": error.slug, "usage": kind}})
        sys.exit(3)
    except Exception as error:  # noqa: BLE001  the root of this process: told to the owner, never dumped on the user
        _answer({"failed": {"message": f"{type(error).__name__}: {error}", "hint": "", "slug": "sampler-failed",
                            "usage": False, "trace": traceback.format_exc()}})  # fmt: skip
        sys.exit(1)


def _run(plan: SamplingPlan) -> None:
    owner = _OwnerTime(plan.parent)

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        owner.told_to_stop = True

    signal.signal(signal.SIGTERM, ask_to_stop)
    capture = _Capture(plan)
    header = _open_streams(plan, capture)
    if capture.writer is not None:
        capture.writer.append(encode_block(BlockKind.HEADER, json.dumps(header.to_json()).encode()))
    capacity = max(64, int(plan.rate_hz * _RING_S))
    widths = [len(stream.domains) for stream in capture.streams]
    if plan.ring_fd >= 0:
        ring = RingWriter(plan.ring_fd, widths, capacity)
        for stream in capture.streams:
            stream.ring = ring
    told = False

    def flush() -> None:
        nonlocal told
        capture.flush()
        if not told:  # the first readings are in the file
            told = True
            if capture.writer is not None:
                capture.writer.drain(_FIRST_WRITE_S)
            _answer({"ready": header.to_json(), "capacity": capacity, "pid": os.getpid()})

    loop = SamplingLoop(
        streams=capture.streams,
        period_ns=round(1e9 / plan.rate_hz),
        time=owner,
        flush=flush,
        flush_ns=round(plan.flush_s * 1e9),
        answered=lambda at_ns: _answer({"read": at_ns}),
        resting_ns=round(wrap_safe_period_s(capture.streams) * 1e9),
        paused=capture.note_pause,
        begins_paused=plan.paused,
    )
    gc.collect()
    gc.disable()  # a collection is a pause of milliseconds; the loop makes no cycles
    loop.run()
    _answer({"end": capture.end(owner.ended_by)})
    for stream in capture.streams:
        if not stream.threaded:
            stream.close()
    owner.clear_away(plan.scratch)


def _open_streams(plan: SamplingPlan, capture: _Capture) -> CaptureHeader:
    period_s = 1.0 / plan.rate_hz
    told: list[CaptureStream] = []
    for number, named in enumerate(plan.meters):
        meter = open_meter(named.address)
        updates = [d.update_period_s for d in meter.domains]
        known = [update_s for update_s in updates if update_s is not None]
        slowest_s = min(known) / _UPDATE_SHARE if known and len(known) == len(updates) else period_s
        every = max(1, int(slowest_s / period_s))
        capture.streams.append(
            MeterStream(
                number,
                named.name,
                meter,
                every=every,
                capacity=max(64, int(4 * plan.flush_s * plan.rate_hz / every) + 16),
                reopen=open_meter,
                note=partial(capture.note, number),
                now_ns=time.monotonic_ns,
            )
        )
        told.append(
            CaptureStream(
                meter=named.name, driver=named.address.driver, period_s=every * period_s, domains=meter.domains
            )
        )
    return CaptureHeader(
        session=plan.session,
        rate_hz=plan.rate_hz,
        streams=tuple(told),
        priority=take_priority(plan.priority),
        facts={"joulemap": __version__, "pid": str(os.getpid())},
    )


def _read_line() -> str:
    """Returns the first line of standard input, byte by byte: what follows it belongs to the loop."""
    line = bytearray()
    while (sign := os.read(0, 1)) and sign != b"\n":
        line += sign
    return line.decode()


def _answer(told: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the owner is gone: the loop sees it too
        os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
