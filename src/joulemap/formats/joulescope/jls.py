"""Joulescope JLS v2: current, voltage, power, digital inputs, annotations and UTC of any number of instruments.

References:
    pyjls 0.17.0 (FORMATS_MORE, "JLS v2"); files written by it (``generated/jls``) and one genuine annotation file.
"""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, say_lost, source_file, uniform_trace
from joulemap.formats.ground.levels import level_records
from joulemap.formats.joulescope.jls_device import JlsTimeBase, list_devices, list_marks, place_device
from joulemap.formats.joulescope.jls_file import JLS_MAGIC
from joulemap.formats.joulescope.jls_link import JlsSession, JlsSignal
from joulemap.formats.joulescope.jls_source import JlsFile, JlsSource, build_power
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import EnergyTrace, Timeline
from joulemap.trace.passes import run_pass
from joulemap.trace.streamed import StreamedTrace

__all__ = ["JlsReader"]

_EDGES_MAX: Final = 2_000_000
_LOAD_MAX: Final = 1 << 23
"""Samples that are taken into memory, 64 MiB; more stay in the file and are streamed."""


class JlsReader:
    """Reads JLS v2 through pyjls in a process of its own; a file that was not closed is saved on a copy first."""

    name = "jls"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the magic number of JLS v2."""
        del path
        return 1.0 if head.startswith(JLS_MAGIC) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power per instrument, digital lines as slices and edges, annotations as markers.

        Power of more than eight million samples is in ``streamed``: its samples stay in the file.

        Raises:
            FormatError: nothing can be read, or the file holds neither samples nor annotations.
            InputError: it holds current only and no supply was stated.
            SetupError: pyjls is missing.
        """
        log = FindingLog()
        file = JlsFile(path)
        try:
            with ThreadPoolExecutor(1) as pool:
                source = pool.submit(source_file, path)
                session = file.describe()
                _say_salvaged(session, path.stat().st_size, log)
                traces: list[EnergyTrace] = []
                streamed: list[StreamedTrace] = []
                timelines: list[Timeline] = []
                markers: list[MarkerTrack] = []
                facts: dict[str, str] = {}
                for device, prefix in list_devices(session):
                    base = place_device(device, prefix, log, facts)
                    trace = build_power(file, device, (base, prefix), (options, log))
                    if trace is not None and trace.n <= _LOAD_MAX:
                        traces.append(_loaded(trace, log))
                    elif trace is not None:
                        streamed.append(_passed(trace, log))
                    for signal in device.digital:
                        timeline, edges = _digital(file, signal, (base, prefix), log)
                        timelines += [timeline] if timeline is not None else []
                        markers += [edges] if edges is not None else []
                    marks, spans = list_marks(device, base, prefix)
                    markers += marks
                    timelines += spans
                found = source.result()
        finally:
            file.close()
        if not traces and not streamed and not markers and not timelines:
            raise FormatError(
                f"{path.name} holds neither power nor marks",
                hint="Record current and voltage (or power) with the instrument.",
                slug="recording-empty",
            )
        return Recording(
            format=self.name,
            sources=(found,),
            traces=tuple(traces),
            streamed=tuple(streamed),
            timelines=tuple(timelines),
            markers=tuple(markers),
            metadata=facts,
            findings=log.findings(),
        )

    def open_traces(self, path: Path, options: ReadOptions) -> tuple[StreamedTrace, ...]:
        """Returns the traces of a file whose samples are streamed from it; none of them is read.

        Raises:
            FormatError, InputError, SetupError: as :meth:`read`.
        """
        log, facts = FindingLog(), dict[str, str]()
        file = JlsFile(path)
        traces = [
            build_power(file, device, (place_device(device, prefix, log, facts), prefix), (options, log))
            for device, prefix in list_devices(file.describe())
        ]
        return tuple(trace for trace in traces if trace is not None)


def _loaded(trace: StreamedTrace, log: FindingLog) -> EnergyTrace:
    whole = trace.load(0, trace.n)
    power_w = whole.power_w.copy()
    for begin, end in whole.gaps:
        power_w[begin:end] = np.nan
    _say_unreadable(trace, log)
    assert isinstance(trace.source, JlsSource)  # built here
    signals = trace.source.signals
    single = len(signals) == 1 and signals[0].bits == 32 and trace.scale == 1.0
    return uniform_trace(
        power_w.astype(np.float32) if single else power_w,  # as they were written
        channel=trace.channel,
        clock=trace.clock,
        start_ns=trace.start_ns,
        period_s=trace.period_s,
        log=log,
    )


def _passed(trace: StreamedTrace, log: FindingLog) -> StreamedTrace:
    """Returns the trace with its gaps, which one pass finds."""
    found = run_pass(trace, ())
    _say_unreadable(trace, log)
    if found.lost:
        say_lost(log, trace.channel.name, found.lost, (trace.n, int(found.gaps[0, 0])))
    return replace(trace, gaps=found.gaps)


def _say_unreadable(trace: StreamedTrace, log: FindingLog) -> None:
    assert isinstance(trace.source, JlsSource)  # built here
    if trace.source.unreadable:
        log.add(
            "samples_unreadable",
            f"{trace.source.unreadable} of {trace.n} samples lie in damaged blocks and are gaps",
            trace.source.signals[0].name,
            Severity.ERROR,
        )


def _say_salvaged(session: JlsSession, size_b: int, log: FindingLog) -> None:
    if session.salvaged_b is None:
        return
    lengths = ", ".join(f"{signal.name} {signal.length}" for signal in session.signals)
    log.add(
        "recording_salvaged",
        f"the file was not closed or was cut: {session.salvaged_b} of {size_b} bytes were saved on a copy; "
        f"samples per signal: {lengths or 'none'}",
        f"offset {session.salvaged_b}",
    )


def _digital(
    file: JlsFile, signal: JlsSignal, base: tuple[JlsTimeBase, str], log: FindingLog
) -> tuple[Timeline | None, MarkerTrack | None]:
    """Returns a digital input as slices and edges; an unreadable stretch keeps the level before it."""
    (place, prefix), step_ns = base, 1e9 / signal.rate_hz
    index: array[int] = array("q")
    level: array[int] = array("b")
    last = -1
    unreadable = 0
    for at, (part,), bad in file.stream((signal,), (0,), signal.length):
        unreadable += bad
        level_of = np.asarray(part, np.uint8)
        where = np.flatnonzero(level_of != 255)
        values = level_of[where]
        turns = np.flatnonzero(np.diff(values, prepend=np.uint8(last) if last >= 0 else ~values[:1]))
        if len(index) + turns.size > _EDGES_MAX:
            log.add("line_too_busy", f"{prefix}{signal.name} toggles more than {_EDGES_MAX} times and is left out")
            return None, None
        index.extend((where[turns] + at).tolist())
        level.extend(values[turns].tolist())
        last = int(values[-1]) if values.size else last
    if unreadable:
        log.add("line_unreadable_part", f"{prefix}{signal.name}: {unreadable} samples lie in damaged blocks")
    time_ns = place.origin_ns + np.round((np.array(index, np.int64) + signal.offset) * step_ns).astype(np.int64)
    end_ns = place.origin_ns + round((signal.length + signal.offset) * step_ns)
    changes = (time_ns, np.array(level, np.int64))
    return level_records(f"{prefix}{signal.name}", changes, clock=place.clock, end_ns=end_ns, log=log)
