"""Track events of a Perfetto trace: begins and ends into slices, instants into marks, counters into lanes.

References:
    google/perfetto docs, "TrackEvent" and "Interning"; protos track_event, track_descriptor, counter_descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from joulemap.formats.android.perfetto_packets import first
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.protobuf import Message
from joulemap.formats.ground.sampling import SampleBook
from joulemap.formats.ground.slices import SliceColumns
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, Timeline

__all__ = ["EventBook"]

_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_TYPES = {"TYPE_SLICE_BEGIN": _BEGIN, "TYPE_SLICE_END": _END, "TYPE_INSTANT": _INSTANT, "TYPE_COUNTER": _COUNTER}
_CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED
_UNITS = {1: ("s", 1e-9), 3: ("byte", 1.0)}


@dataclass(slots=True)
class _Sequence:
    names: dict[int, str] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    track: int = 0
    state: int = 0


class _Slices(Protocol):
    """Where begins, ends and instants go."""

    def begin(self, track: Hashable, name: str, time_ns: int, kind: str = "") -> None: ...
    def end(self, track: Hashable, time_ns: int) -> None: ...
    def mark(self, name: str, time_ns: int) -> None: ...
    def timelines(self, namer: Callable[[Any], str] = str) -> tuple[Timeline, ...]: ...
    def markers(self) -> tuple[MarkerTrack, ...]: ...


class EventBook:
    """Slices, marks and counters of track events.

    Args:
        clock: of the stamps.
        log: takes ``slice_unclosed``, ``slice_unopened`` and ``name_unknown``.
        book: takes the counters.
        slices: takes the slices and instants; columns of its own when there are none.
    """

    def __init__(self, clock: Clock, log: FindingLog, book: SampleBook, slices: _Slices | None = None) -> None:
        self.log = log
        self.book = book
        self.slices: _Slices = slices or SliceColumns(clock, log)
        self._states = 0
        self._sequences: dict[int, _Sequence] = {}
        self._tracks: dict[int, Message] = {}
        self._totals: dict[int, float] = {}

    def take(self, packet: Message, time_ns: int | None) -> None:
        """Takes the descriptors and events of a packet."""
        identity = first(packet, "trusted_packet_sequence_id", 0)
        sequence = self._sequence(identity)
        flags = first(packet, "sequence_flags", 0)
        cleared = first(packet, "incremental_state_cleared", default=False)
        if cleared or (isinstance(flags, int) and flags & _CLEARED):
            self._sequences.pop(identity)
            sequence = self._sequence(identity)
        for defaults in packet.get("trace_packet_defaults", []):
            for event in defaults.get("track_event_defaults", []):
                sequence.track = first(event, "track_uuid", sequence.track)
        for interned in packet.get("interned_data", []):
            for name in interned.get("event_names", []):
                sequence.names[first(name, "iid", 0)] = first(name, "name", "")
            for name in interned.get("event_categories", []):
                sequence.kinds[first(name, "iid", 0)] = first(name, "name", "")
        for track in packet.get("track_descriptor", []):
            self._tracks[first(track, "uuid", 0)] = track
        for event in packet.get("track_event", []):
            if time_ns is None:
                self.log.add("clock_unknown", "a track event without a stamp on a known clock; left out")
            else:
                self._event(event, time_ns, sequence)

    def _event(self, event: Message, time_ns: int, sequence: _Sequence) -> None:
        kind: Any = first(event, "type", 0)
        kind = _TYPES.get(kind, 0) if isinstance(kind, str) else kind
        track = first(event, "track_uuid", sequence.track)
        if kind == _BEGIN:
            self.slices.begin(track, self._name(event, sequence), time_ns, self._category(event, sequence))
        elif kind == _END:
            self.slices.end(track, time_ns)
        elif kind == _INSTANT:
            self.slices.mark(self._name(event, sequence), time_ns)
        elif kind == _COUNTER:
            self._counter(event, track, time_ns)

    def _name(self, event: Message, sequence: _Sequence) -> str:
        if "name" in event:
            return str(first(event, "name", ""))
        iid = first(event, "name_iid", 0)
        if iid in sequence.names:
            return sequence.names[iid]
        self.log.add("name_unknown", f"an event's name {iid} was never interned (packets were lost)", "", Severity.INFO)
        return f"name {iid}"

    @staticmethod
    def _category(event: Message, sequence: _Sequence) -> str:
        words = event.get("categories") or [sequence.kinds.get(iid, "") for iid in event.get("category_iids", [])]
        return ",".join(word for word in words if word)

    def _counter(self, event: Message, track: int, time_ns: int) -> None:
        raw = first(event, "double_counter_value", first(event, "counter_value", 0.0))
        name, unit, multiplier, scale = self._lane(track)
        value = float(raw) * multiplier * scale
        if self._runs_on(track):
            value = self._totals[track] = self._totals.get(track, 0.0) + value
        self.book.lane(name, unit, time_ns, value)

    def _lane(self, track: int) -> tuple[str, str, int, float]:
        counter = first(self._tracks.get(track, {}), "counter", {})
        unit_code: Any = first(counter, "unit", 0)
        unit, scale = _UNITS.get(unit_code if isinstance(unit_code, int) else 0, ("", 1.0))
        unit = first(counter, "unit_name", "") or unit or "1"
        return self._track_name(track), unit, first(counter, "unit_multiplier", 1), scale

    def _runs_on(self, track: int) -> bool:
        return bool(first(first(self._tracks.get(track, {}), "counter", {}), "is_incremental", default=False))

    def _sequence(self, identity: int) -> _Sequence:
        known = self._sequences.get(identity)
        if known is None:
            self._states += 1
            known = self._sequences[identity] = _Sequence(state=self._states)
        return known

    def state_of(self, sequence: int) -> int:
        """Returns a number that is another one whenever the names of the sequence were cleared."""
        return self._sequence(sequence).state

    def track_of(self, sequence: int) -> int:
        """Returns the track of a sequence's events that name none."""
        return self._sequence(sequence).track

    def lane_of(self, track: int) -> tuple[str, str, int, float] | None:
        """Returns name, unit, multiplier and scale of a counter; None for one whose values add up."""
        return None if self._runs_on(track) else self._lane(track)

    def _track_name(self, uuid: int) -> str:
        """Returns the name of a track: its own, or its thread's or process's, under its parents'."""
        words: list[str] = []
        seen: set[int] = set()
        while uuid in self._tracks and uuid not in seen:
            seen.add(uuid)
            track = self._tracks[uuid]
            thread, process = first(track, "thread", {}), first(track, "process", {})
            word = first(track, "name", "") or first(track, "static_name", "")
            word = word or (first(thread, "thread_name", "") or f"thread {first(thread, 'tid', 0)}" if thread else "")
            word = word or (
                first(process, "process_name", "") or f"process {first(process, 'pid', 0)}" if process else ""
            )
            if word:
                words.insert(0, word)
            uuid = first(track, "parent_uuid", 0)
        return " / ".join(words) or f"track {uuid}"

    def timelines(self) -> tuple[Timeline, ...]:
        """Returns the slices as one timeline, their tracks named now that every descriptor was read."""
        return self.slices.timelines(lambda track: self._track_name(int(track)))

    def markers(self) -> tuple[MarkerTrack, ...]:
        """Returns the instants."""
        return self.slices.markers()
