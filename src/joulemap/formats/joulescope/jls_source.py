"""The power of a JLS device as a stream of samples from its file: the file is opened when a pass begins, and kept open.

The process that reads it starts once and serves one pass after the other; a pass inside another one gets a process of
its own. Nothing is kept of the samples.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, sampled_channel, voltage_of
from joulemap.formats.joulescope.jls_device import JlsDevice, JlsTimeBase
from joulemap.formats.joulescope.jls_link import JlsSession, JlsSignal, open_jls
from joulemap.trace.streamed import Factor, StreamedTrace

__all__ = ["JlsFile", "JlsSource", "build_power"]

_Idle = list[tuple[JlsSession, ExitStack]]


class JlsFile:
    """A file whose process stays for the next pass, and ends with this object or by :meth:`close`.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: _Idle = []
        self._end = weakref.finalize(self, _close, self._idle)

    def describe(self) -> JlsSession:
        """Returns an open session for what it says of the file; its samples come by a :class:`JlsSource`.

        Raises:
            SetupError, FormatError: as :func:`open_jls`.
        """
        if not self._idle:
            self._idle.append(_open(self.path))
        return self._idle[-1][0]

    def stream(
        self, signals: tuple[JlsSignal, ...], firsts: tuple[int, ...], count: int
    ) -> Iterator[tuple[int, list[NDArray[Any]], int]]:
        """Yields (index, one array per signal, samples that could not be read); each signal from its own first one."""
        session, stack = self._idle.pop() if self._idle else _open(self.path)
        whole = False
        try:
            yield from session.stream(signals, firsts, count)
            whole = True
        finally:
            if whole:
                self._idle.append((session, stack))
            else:
                stack.close()  # replies are under way: this process is of no further use

    def close(self) -> None:
        """Ends the process; the next pass starts another one."""
        _close(self._idle)


def _open(path: Path) -> tuple[JlsSession, ExitStack]:
    stack = ExitStack()
    return stack.enter_context(open_jls(path)), stack


def _close(idle: _Idle) -> None:
    while idle:
        idle.pop()[1].close()


class JlsSource:
    """One or two signals whose product is power.

    Args:
        file: that holds them.
        signals: of one rate.
        firsts: first sample of each that counts.
    """

    def __init__(self, file: JlsFile, signals: tuple[JlsSignal, ...], firsts: tuple[int, ...]) -> None:
        self.file = file
        self.signals = signals
        self.firsts = firsts
        self.unreadable = 0
        """Samples that the last whole stream could not read."""

    def stream(self, first: int, count: int) -> Iterator[tuple[int, tuple[Factor, ...]]]:
        """Yields (index of the first sample of the part, the signals' samples); NaN where lost or unreadable."""
        unreadable = 0
        for at, arrays, bad in self.file.stream(self.signals, tuple(f + first for f in self.firsts), count):
            unreadable += bad
            yield first + at, tuple(arrays)
        self.unreadable = unreadable


def build_power(
    file: JlsFile, device: JlsDevice, place: tuple[JlsTimeBase, str], context: tuple[ReadOptions, FindingLog]
) -> StreamedTrace | None:
    """Returns the power of a device: its own power signal, else current times voltage, else times the stated supply.

    Args:
        file: that holds it.
        device: its signals.
        place: its clock, and the prefix of its names.
        context: what the user says; takes ``signals_differ_in_length``.

    Raises:
        FormatError: the rates of current and voltage differ, or they have no sample in common.
        InputError: it holds current only and no supply was stated.
    """
    (options, log), (base, prefix) = context, place
    found = {name: signal for name, signal in device.analog.items() if signal.length}
    if "power" in found:
        signals: tuple[JlsSignal, ...] = (found["power"],)
    elif "current" in found and "voltage" in found:
        signals = found["current"], found["voltage"]
        if signals[0].rate_hz != signals[1].rate_hz:
            raise FormatError(
                f"{file.path.name}: current is sampled at {signals[0].rate_hz} Hz and voltage at"
                f" {signals[1].rate_hz} Hz",
                hint="Record both at one rate, or record power.",
                slug="rates-differ",
            )
    elif "current" in found:
        signals = (found["current"],)
    else:
        return None
    scale = voltage_of(options.voltage_v, file.path.name) if signals == (found.get("current"),) else 1.0
    first = max(signal.offset for signal in signals)
    last = min(signal.offset + signal.length for signal in signals)
    if last <= first:
        raise FormatError(
            f"{file.path.name}: current and voltage have no sample in common",
            hint="The file is damaged; export CSV from the original tool.",
            slug="recording-empty",
        )
    if any(signal.offset != first or signal.length != last - first for signal in signals):
        log.add(
            "signals_differ_in_length",
            f"{prefix}current and voltage cover different samples: {last - first} are common to both",
        )
    rate_hz = signals[0].rate_hz
    return StreamedTrace(
        clock=base.clock,
        channel=sampled_channel(f"{prefix}power", boundary_of(options.boundary, Boundary.RAIL), 1 / rate_hz),
        start_ns=base.origin_ns + round(first * 1e9 / rate_hz),
        period_s=1 / rate_hz,
        n=last - first,
        source=JlsSource(file, signals, tuple(first - signal.offset for signal in signals)),
        scale=scale,
    )
