"""Perfetto traces: Android's power rails, battery and energy breakdown, slices, counters and processor states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.android.perfetto_columns import PacketColumns, takes_compiled
from joulemap.formats.android.perfetto_events import EventBook
from joulemap.formats.android.perfetto_packets import ClockTable, first, is_binary, is_text, iter_packets
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import key_of
from joulemap.formats.ground.protobuf import Message
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind
from joulemap.trace.integrate import Backend

__all__ = ["PerfettoReader"]

_MICROWATT_SECOND = 1e-6
_IDLE_LEAVE = 0xFFFFFFFF
_BATTERY = {
    "current_ua": ("current", "A", 1e-6),
    "current_avg_ua": ("mean current", "A", 1e-6),
    "charge_counter_uah": ("charge", "C", 3600e-6),
    "capacity_percent": ("capacity", "1", 0.01),
    "energy_counter_uwh": ("energy left", "J", 3600e-6),
}


@dataclass(slots=True)
class _Power:
    """What the power packets have said so far; rails and consumers are told apart by their sequence."""

    rails: dict[tuple[int, int], str] = field(default_factory=dict)
    consumers: dict[tuple[int, int], str] = field(default_factory=dict)
    uids: dict[tuple[str, int], int] = field(default_factory=dict)
    used: dict[str, tuple[int, int]] = field(default_factory=dict)
    scaled: bool = False


class PerfettoReader:
    """Reads android.power of a Perfetto trace, in binary or text form, with its slices and counters.

    Rails and consumers are cumulative energies, so they are differenced; a rail's own time in ms counts, not the
    packet's. Two streams may use one rail index: they are kept apart. The battery's current has no common sign, so it
    stays a current. The energy breakdown is an estimate of the system.

    Args:
        backend: ``numba`` takes plain packets of a binary trace by the compiled scan, ``numpy`` none; ``auto`` when it
            is installed and the trace is large enough for it to pay. Both say the same.

    References:
        google/perfetto 515cd212, protos power_rails, battery_counters, android_energy_estimation_breakdown;
        FORMATS 4 (reports 54, 55); files written with PyPI perfetto 0.59.1.
    """

    name: ClassVar[str] = "perfetto"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def __init__(self, backend: Backend = "auto") -> None:
        self.backend: Backend = backend

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a text dump, 0.9 for a row of binary packets."""
        del path
        if is_text(head):
            return 0.95
        return 0.9 if is_binary(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns energies as traces (single readings as stated figures), slices, marks and counters.

        Raises:
            FormatError: no trace, or nothing in it that is read.
        """
        del options
        log = FindingLog()
        clock = Clock(name="boot", kind=ClockKind.MONOTONIC)
        book = SampleBook(clock, log)
        clocks, power = ClockTable(log), _Power()
        columns = PacketColumns(clock, log) if takes_compiled(path, self.backend) else None
        events = EventBook(clock, log, book, columns)
        if columns is not None:
            columns.events, columns.clocks = events, clocks
        for packet in iter_packets(path, log, scan=columns.scan if columns is not None else None):
            clocks.take(packet)
            time_ns = clocks.boot_ns(packet)
            self._power(packet, time_ns, (power, book))
            events.take(packet, time_ns)
            _states(packet, book)
            if columns is not None:
                columns.learn(packet)
        for (name, uid), energy in power.uids.items():
            domain = Domain(boundary=Boundary.RAIL, provenance=Provenance.ESTIMATED)
            book.state(f"{key_of(name)}_uid_{uid}_energy_j", energy * _MICROWATT_SECOND, domain)
        metadata = {}
        if clocks.realtime_offset_ns is not None:
            metadata["realtime_minus_boot_ns"] = str(clocks.realtime_offset_ns)
        return recording_of(
            self.name, path, book, metadata=metadata, markers=events.markers(), timelines=events.timelines()
        )

    @staticmethod
    def _power(packet: Message, time_ns: int | None, sink: tuple[_Power, SampleBook]) -> None:
        power, book = sink
        sequence = first(packet, "trusted_packet_sequence_id", 0)
        for rails in packet.get("power_rails", []):
            _rails(rails, (sequence, time_ns), (power, book))
        for battery in packet.get("battery", []):
            if time_ns is not None:
                _battery(battery, time_ns, (power, book))
        for breakdown in packet.get("android_energy_estimation_breakdown", []):
            _breakdown(breakdown, (sequence, time_ns), (power, book))


def _name(power: _Power, wanted: str, key: tuple[int, int]) -> str:
    """Returns a name that only this stream uses."""
    name = wanted
    while power.used.setdefault(name, key) != key:
        name = f"{wanted} (sequence {key[0]})" if name == wanted else f"{name}'"
    return name


def _rails(rails: Message, place: tuple[int, int | None], sink: tuple[_Power, SampleBook]) -> None:
    power, book = sink
    sequence, packet_ns = place
    for rail in rails.get("rail_descriptor", []):
        key = (sequence, first(rail, "index", 0))
        power.rails[key] = _name(power, first(rail, "rail_name", "") or f"rail {key[1]}", key)
    domain = Domain(
        boundary=Boundary.RAIL,
        provenance=Provenance.MEASURED_COUNTER,
        meaning=Meaning.COUNTER,
        scale=_MICROWATT_SECOND,
    )
    for data in rails.get("energy_data", []):
        key = (sequence, first(data, "index", 0))
        if key not in power.rails:
            power.rails[key] = _name(power, f"rail {key[1]}", key)
            book.log.add("rail_unnamed", f"rail {key[1]} of sequence {sequence} has no descriptor")
        time_ns = first(data, "timestamp_ms", 0) * 1_000_000 if "timestamp_ms" in data else packet_ns
        if time_ns is None or "energy" not in data:
            book.log.add("value_unreadable", f"{power.rails[key]}: a reading without time or energy")
            continue
        book.series(power.rails[key], domain).add(time_ns, float(first(data, "energy", 0)), 0)


def _battery(battery: Message, time_ns: int, sink: tuple[_Power, SampleBook]) -> None:
    power, book = sink
    name = f"battery {first(battery, 'name', '')}".strip()
    for key, (what, unit, scale) in _BATTERY.items():
        if key in battery:
            book.lane(f"{name} {what}", unit, time_ns, first(battery, key, 0.0) * scale)
    if "voltage_uv" in battery:
        volts = first(battery, "voltage_uv", 0) * 1e-6
        if 0 < volts < 0.1 and 1 < volts * 1e3 < 100:  # no battery has millivolts: the phone wrote mV
            if not power.scaled:
                book.log.add("battery_millivolts", f"{name}: voltage_uv holds {volts * 1e6:g}, which can only be mV")
            power.scaled = True
            volts *= 1e3
        book.lane(f"{name} voltage", "V", time_ns, volts)
    if "current_ua" in battery and not book.log.count("battery_sign"):
        book.log.add(
            "battery_sign",
            "the sign of a battery's current differs between devices; no power is derived from it",
            severity=Severity.INFO,
        )


def _breakdown(breakdown: Message, place: tuple[int, int | None], sink: tuple[_Power, SampleBook]) -> None:
    power, book = sink
    sequence, time_ns = place
    for consumer in _consumers(breakdown):
        key = (sequence, first(consumer, "energy_consumer_id", 0))
        kind, label = first(consumer, "type", ""), first(consumer, "name", "")
        power.consumers[key] = _name(power, f"consumer {label or kind or key[1]}", (sequence, -1 - key[1]))
    if "energy_uws" not in breakdown or time_ns is None:
        return
    key = (sequence, first(breakdown, "energy_consumer_id", 0))
    name = power.consumers.get(key)
    if name is None:
        name = power.consumers[key] = _name(power, f"consumer {key[1]}", (sequence, -1 - key[1]))
    domain = Domain(
        boundary=Boundary.RAIL,
        provenance=Provenance.ESTIMATED,
        meaning=Meaning.COUNTER,
        scale=_MICROWATT_SECOND,
    )
    book.series(name, domain).add(time_ns, float(first(breakdown, "energy_uws", 0)), 0)
    for share in breakdown.get("per_uid_breakdown", []):
        power.uids[name, first(share, "uid", 0)] = first(share, "energy_uws", 0)


def _consumers(breakdown: Message) -> Iterator[Message]:
    for table in breakdown.get("energy_consumer_descriptor", []):
        yield from table.get("energy_consumers", [])


def _states(packet: Message, book: SampleBook) -> None:
    for bundle in packet.get("ftrace_events", []):
        for event in bundle.get("event", []):
            time_ns = first(event, "timestamp", 0)
            for change in event.get("cpu_frequency", []):
                cpu = first(change, "cpu_id", 0)
                book.lane(f"cpu{cpu} clock", "Hz", time_ns, first(change, "state", 0) * 1e3)
            for change in event.get("cpu_idle", []):
                state = first(change, "state", 0)
                cpu = first(change, "cpu_id", 0)
                book.lane(f"cpu{cpu} idle state", "1", time_ns, -1.0 if state == _IDLE_LEAVE else float(state))
