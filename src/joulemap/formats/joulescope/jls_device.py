"""What a JLS file says of its instruments: which signals belong to which, where their samples lie in time, their marks.

References:
    pyjls 0.17.0 (FORMATS_MORE, "JLS v2"). JLS time is a 34Q30 count of seconds since 2018-01-01 00:00 UTC (pyjls
    ``time64``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.joulescope.jls_link import JlsSession, JlsSignal
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, ClockKind, Marker, Slice, Timeline

__all__ = ["JlsDevice", "JlsTimeBase", "list_devices", "list_marks", "place_device"]

_EPOCH_NS: Final = 1_514_764_800 * 1_000_000_000
_LAST_NS: Final = 1 << 61
_RATE_MAX_HZ: Final = 10_000_000
_QUANTITIES: Final = {"current": "A", "voltage": "V", "power": "W"}
_PAIR: Final = re.compile(r"(\d+)([ab])")


@dataclass(slots=True)
class JlsDevice:
    """The signals of one source, by what they are."""

    name: str
    analog: dict[str, JlsSignal] = field(default_factory=dict)
    digital: list[JlsSignal] = field(default_factory=list)

    @property
    def signals(self) -> list[JlsSignal]:
        """Both kinds."""
        return [*self.analog.values(), *self.digital]


@dataclass(frozen=True, slots=True)
class JlsTimeBase:
    """Where sample id 0 of a rate lies: ``origin_ns`` on ``clock``."""

    clock: Clock
    origin_ns: int


def list_devices(session: JlsSession) -> list[tuple[JlsDevice, str]]:
    """Returns the sources in order with the prefix of their names; a signal must carry the unit of what it is."""
    devices: dict[int, JlsDevice] = {}
    for signal in session.signals:
        source = session.sources.get(str(signal.source), {})
        label = "-".join(
            part for key in ("name", "serial_number") if (part := str(source.get(key) or "").strip()) not in {"", "-"}
        )
        device = devices.setdefault(signal.source, JlsDevice(name=label or f"source {signal.source}"))
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
    found = list(devices.values())
    return [(device, f"{device.name} " if len(found) > 1 else "") for device in found]


def place_device(device: JlsDevice, prefix: str, log: FindingLog, facts: dict[str, str]) -> JlsTimeBase:
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
        return JlsTimeBase(Clock(name=f"{prefix}joulescope", kind=ClockKind.UTC, resolution_ns=1e9 / rate_hz), origin)
    if signals:
        log.add("utc_missing", f"{prefix}the file maps no sample to UTC: time is relative", severity=Severity.INFO)
    clock = Clock(name=f"{prefix}joulescope", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
    return JlsTimeBase(clock, 0)


def list_marks(device: JlsDevice, base: JlsTimeBase, prefix: str) -> tuple[list[MarkerTrack], list[Timeline]]:
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
