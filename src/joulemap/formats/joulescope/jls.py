"""Joulescope JLS v2: current, voltage, power, digital inputs, annotations and UTC of any number of instruments.

References:
    pyjls 0.17.0 (FORMATS_MORE, "JLS v2"); files written by it (``generated/jls``) and one genuine annotation file.
    JLS time is a 34Q30 count of seconds since 2018-01-01 00:00 UTC (pyjls ``time64``).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, source_file, uniform_trace, voltage_of
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.sample_store import release_pages, sample_store
from joulemap.formats.ground.values import widen
from joulemap.formats.joulescope.jls_file import JLS_MAGIC
from joulemap.formats.joulescope.jls_link import JlsSession, JlsSignal, open_jls
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, Marker, SensorKernel, Slice, Timeline

__all__ = ["JlsReader"]

_EPOCH_NS: Final = 1_514_764_800 * 1_000_000_000
_LAST_NS: Final = 1 << 61
_RATE_MAX_HZ: Final = 10_000_000
_QUANTITIES: Final = {"current": "A", "voltage": "V", "power": "W"}
_EDGES_MAX: Final = 2_000_000
_PAIR: Final = re.compile(r"(\d+)([ab])")


@dataclass(slots=True)
class _Device:
    """The signals of one source, by what they are."""

    name: str
    analog: dict[str, JlsSignal] = field(default_factory=dict)
    digital: list[JlsSignal] = field(default_factory=list)

    @property
    def signals(self) -> list[JlsSignal]:
        return [*self.analog.values(), *self.digital]


@dataclass(frozen=True, slots=True)
class _Base:
    """Where sample id 0 of a rate lies: ``origin_ns`` on ``clock``."""

    clock: Clock
    origin_ns: int


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

        Raises:
            FormatError: nothing can be read, or the file holds neither samples nor annotations.
            InputError: it holds current only and no supply was stated.
            SetupError: pyjls is missing.
        """
        log = FindingLog()
        source = source_file(path)
        with open_jls(path) as session:
            _say_salvaged(session, source.size_b, log)
            traces: list[EnergyTrace] = []
            timelines: list[Timeline] = []
            markers: list[MarkerTrack] = []
            facts: dict[str, str] = {}
            devices = _devices(session)
            for device in devices:
                prefix = f"{device.name} " if len(devices) > 1 else ""
                base = _base(device, prefix, log, facts)
                if (trace := _power(session, device, (base, prefix), (options, log))) is not None:
                    traces.append(trace)
                for signal in device.digital:
                    timeline, edges = _digital(session, signal, (base, prefix), log)
                    timelines += [timeline] if timeline is not None else []
                    markers += [edges] if edges is not None else []
                marks, spans = _annotations(device, base, prefix)
                markers += marks
                timelines += spans
        if not traces and not markers and not timelines:
            raise FormatError(
                f"{path.name} holds neither power nor marks",
                hint="Record current and voltage (or power) with the instrument.",
                slug="recording-empty",
            )
        return Recording(
            format=self.name,
            sources=(source,),
            traces=tuple(traces),
            timelines=tuple(timelines),
            markers=tuple(markers),
            metadata=facts,
            findings=log.findings(),
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


def _devices(session: JlsSession) -> list[_Device]:
    """Returns the sources in order; a signal is known by its name and must carry the right unit."""
    devices: dict[int, _Device] = {}
    for signal in session.signals:
        source = session.sources.get(str(signal.source), {})
        label = "-".join(
            part for key in ("name", "serial_number") if (part := str(source.get(key) or "").strip()) not in {"", "-"}
        )
        device = devices.setdefault(signal.source, _Device(name=label or f"source {signal.source}"))
        if not 0 < signal.rate_hz <= _RATE_MAX_HZ or signal.length < 0:
            continue
        quantity = signal.name.strip().lower()
        if quantity in _QUANTITIES and signal.units == _QUANTITIES[quantity] and signal.bits in {32, 64}:
            device.analog[quantity] = signal
        elif signal.bits == 1:
            device.digital.append(signal)
    names = [device.name for device in devices.values()]
    for key, device in devices.items():
        if names.count(device.name) > 1:
            device.name = f"{device.name} ({key})"
    return list(devices.values())


def _base(device: _Device, prefix: str, log: FindingLog, facts: dict[str, str]) -> _Base:
    """Returns the clock of a device: UTC when the file maps samples to it, else its own count of samples.

    The sample period is the nominal one: the instrument's oscillator is far better than the host's UTC over minutes.
    """
    signals = [signal for signal in device.signals if signal.length]
    rate_hz = max((signal.rate_hz for signal in signals or device.signals), default=1)
    facts[f"{prefix}rate_hz"] = str(rate_hz)
    for signal in signals:
        pairs = np.array(signal.utc, np.int64).reshape(-1, 2)
        if not pairs.size or np.abs(pairs).max() >= _LAST_NS * 2:
            continue
        # 34Q30 to ns: the whole seconds and the fraction apart, so that nothing leaves int64
        utc_ns = (pairs[:, 1] >> 30) * 1_000_000_000 + ((pairs[:, 1] & 0x3FFFFFFF) * 1_000_000_000 >> 30) + _EPOCH_NS
        elapsed_ns = np.round(pairs[:, 0] * (1e9 / signal.rate_hz))
        if np.abs(elapsed_ns).max() >= _LAST_NS:
            continue
        origin_ns = utc_ns - elapsed_ns.astype(np.int64)
        if np.abs(origin_ns).max() >= _LAST_NS:
            continue
        origin = int(np.median(origin_ns - origin_ns[0])) + int(origin_ns[0])
        spread_s = float(np.abs(origin_ns - origin).max()) * 1e-9
        facts[f"{prefix}utc_entries"] = str(len(pairs))
        facts[f"{prefix}utc_residual_s"] = f"{spread_s:.3g}"
        if spread_s > 0.01:
            log.add(
                "utc_map_scatters",
                f"{prefix}the {len(pairs)} UTC entries leave the sample clock by up to {spread_s:.3g} s",
                signal.name,
            )
        return _Base(Clock(name=f"{prefix}joulescope", kind=ClockKind.UTC, resolution_ns=1e9 / rate_hz), origin)
    if signals:
        log.add("utc_missing", f"{prefix}the file maps no sample to UTC: time is relative", severity=Severity.INFO)
    clock = Clock(name=f"{prefix}joulescope", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
    return _Base(clock, 0)


def _power(
    session: JlsSession, device: _Device, base: tuple[_Base, str], context: tuple[ReadOptions, FindingLog]
) -> EnergyTrace | None:
    """Returns the power of a device: its own power signal, else current times voltage, else times the stated supply."""
    (options, log), (place, prefix) = context, base
    found = {name: signal for name, signal in device.analog.items() if signal.length}
    if "power" in found:
        signals = [found["power"]]
    elif "current" in found and "voltage" in found:
        signals = [found["current"], found["voltage"]]
        if signals[0].rate_hz != signals[1].rate_hz:
            raise FormatError(
                f"{session.name}: current is sampled at {signals[0].rate_hz} Hz and voltage at {signals[1].rate_hz} Hz",
                hint="Record both at one rate, or record power.",
                slug="rates-differ",
            )
    elif "current" in found:
        signals = [found["current"]]
    else:
        return None
    scale = voltage_of(options.voltage_v, session.name) if signals == [found.get("current")] else 1.0
    first = max(signal.offset for signal in signals)
    last = min(signal.offset + signal.length for signal in signals)
    if last <= first:
        raise FormatError(
            f"{session.name}: current and voltage have no sample in common",
            hint="The file is damaged; export CSV from the original tool.",
            slug="recording-empty",
        )
    if any(signal.offset != first or signal.length != last - first for signal in signals):
        log.add(
            "signals_differ_in_length",
            f"{prefix}current and voltage cover different samples: {last - first} are common to both",
        )
    power_w = _product(session, signals, (first, last - first), (scale, log))
    rate_hz = signals[0].rate_hz
    channel = Channel(
        name=f"{prefix}power" if prefix else "power",
        boundary=boundary_of(options.boundary, Boundary.RAIL),
        provenance=Provenance.MEASURED_SAMPLED,
        kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1 / rate_hz),
    )
    return uniform_trace(
        power_w,
        channel=channel,
        clock=place.clock,
        start_ns=place.origin_ns + round(first * 1e9 / rate_hz),
        period_s=1 / rate_hz,
        log=log,
    )


def _product(
    session: JlsSession, signals: list[JlsSignal], span: tuple[int, int], rule: tuple[float, FindingLog]
) -> NDArray[np.float32]:
    """Returns the product of the signals, W, formed in float64; NaN where a sample is lost or unreadable."""
    (first, count), (scale, log) = span, rule
    power_w = sample_store(count)
    unreadable = 0
    for at, arrays, bad in _aligned(session, signals, first, count):
        part = widen(arrays[0])
        for other in arrays[1:]:
            part *= other
        with np.errstate(over="ignore", invalid="ignore"):
            power_w[at : at + part.size] = part * scale
        unreadable += bad
        release_pages(power_w)
    if unreadable:
        log.add(
            "samples_unreadable",
            f"{unreadable} of {count} samples lie in damaged blocks and are gaps",
            signals[0].name,
            Severity.ERROR,
        )
    return power_w


def _aligned(
    session: JlsSession, signals: list[JlsSignal], first: int, count: int
) -> Iterator[tuple[int, list[NDArray[np.float64]], int]]:
    """Yields chunks of signals over the same sample ids; two streams are needed when their offsets differ."""
    if len({signal.offset for signal in signals}) == 1:
        yield from session.stream(signals, first - signals[0].offset, count)
        return
    kept = sample_store(count)  # the two cannot be asked for in one request: read one, then the other beside it
    for at, (part,), _ in session.stream(signals[:1], first - signals[0].offset, count):
        kept[at : at + part.size] = part
    for at, (part,), bad in session.stream(signals[1:], first - signals[1].offset, count):
        yield at, [widen(kept[at : at + part.size]), part], bad


def _digital(
    session: JlsSession, signal: JlsSignal, base: tuple[_Base, str], log: FindingLog
) -> tuple[Timeline | None, MarkerTrack | None]:
    """Returns a digital input as slices and edges; an unreadable stretch keeps the level before it."""
    (place, prefix), step_ns = base, 1e9 / signal.rate_hz
    index: array[int] = array("q")
    level: array[int] = array("b")
    last = -1
    unreadable = 0
    for at, (part,), bad in session.stream([signal], 0, signal.length):
        unreadable += bad
        where = np.flatnonzero(part != 255)
        values = part[where]
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


def _annotations(device: _Device, base: _Base, prefix: str) -> tuple[list[MarkerTrack], list[Timeline]]:
    """Returns text and vertical marks as markers, and each pair 1a, 1b of vertical ones as a slice."""
    seen: dict[tuple[int, str], None] = {}
    for signal in device.signals:
        for sample, kind, _, text in signal.marks:
            if kind in {1, 2} and 0 <= sample < _LAST_NS // 1_000_000_000 * signal.rate_hz:
                time_ns = base.origin_ns + round(sample * 1e9 / signal.rate_hz)
                seen.setdefault((time_ns, text.strip() or "mark"), None)
    if not seen:
        return [], []
    markers = tuple(Marker(time_ns=time_ns, name=text) for time_ns, text in sorted(seen))
    halves: dict[str, dict[str, int]] = {}
    for marker in markers:
        if found := _PAIR.fullmatch(marker.name):
            halves.setdefault(found[1], {}).setdefault(found[2], marker.time_ns)
    slices = [
        Slice(
            name=f"marker {key}", start_ns=min(ends.values()), end_ns=max(ends.values()), track="markers", kind="mark"
        )
        for key, ends in halves.items()
        if len(ends) == 2
    ]
    track = MarkerTrack(name=f"{prefix}annotations", clock=base.clock, markers=markers)
    return [track], [Timeline.from_slices(base.clock, slices)] if slices else []
