"""Packets of a Perfetto trace, binary or text, one at a time: framing, compression, cut files, clocks per sequence.

It knows frames and clocks, not what a packet measures.

References:
    google/perfetto docs, "Trace packet format" and "Clock synchronization" (sequence-scoped clocks 64 to 127,
    incremental clocks, packet defaults).
"""

from __future__ import annotations

import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from joulemap.errors import FormatError
from joulemap.formats.android.perfetto_schema import BOOTTIME, PACKET, SCHEMA
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.protobuf import Message, decode_message, iter_fields, read_varint
from joulemap.formats.ground.prototext import parse_text_messages
from joulemap.formats.ground.text import open_bytes

__all__ = ["ClockTable", "first", "is_binary", "is_text", "iter_packets"]

_TEXT = re.compile(rb"^(?:\s|#[^\n]*\n)*packet\s*:?\s*\{")
_CHUNK_B = 1 << 20
_PACKET_LIMIT_B = 1 << 26
_TEXT_LIMIT_B = 1 << 28
_WANTED = frozenset(SCHEMA[PACKET])
_PACKET_KEY = 0x0A
_DAMAGE_LIMIT = 1000
_INFLATED_LIMIT_B = 1 << 27


def is_text(head: bytes) -> bool:
    """Returns True for a text dump: ``packet {``."""
    return _TEXT.match(head) is not None


def is_binary(head: bytes) -> bool:
    """Returns True when the head is a row of packets whose fields are those of Perfetto."""
    if head[:1] != bytes([_PACKET_KEY]):
        return False
    try:
        length, at = read_varint(head, 1)
        body = head[at : at + length]
        if not body or (len(body) < length and len(head) < 4096):
            return False
        if at + length < len(head) and head[at + length] != _PACKET_KEY:
            return False
        if len(body) < length:
            return False
        known = {number for number, _, _ in iter_fields(body)}
    except FormatError:
        return False
    return bool(known & {8, 10, 3, 33, 36, 6, 60})


def first(message: Message, name: str, default: Any) -> Any:
    """Returns the last value of a field, as proto readers do for scalars; the default when it is not there."""
    values = message.get(name)
    return values[-1] if values else default


def iter_packets(path: Path, log: FindingLog, *, scan: Callable[[bytes, int], int] | None = None) -> Iterator[Message]:
    """Yields the packets of a trace in file order; a packet that is cut or damaged is said and left out.

    Args:
        path: of the trace.
        log: takes the findings.
        scan: takes whole packets of a block itself, from an offset on, and returns that of the first it leaves here.

    Raises:
        FormatError: no trace.
        InputError: the file cannot be opened.
    """
    with open_bytes(path) as handle:
        head = handle.read(4096)
        if is_text(head.removeprefix(BOM_UTF8)):
            yield from _text_packets(head + handle.read(_TEXT_LIMIT_B), path.name)
            return
        framer = _Framer(path.name, log, head, scan)
        while True:
            yield from framer.packets()
            block = handle.read(max(_CHUNK_B, min(len(framer.pending), _PACKET_LIMIT_B)))
            if not block:
                framer.close()
                return
            framer.feed(block)


def _text_packets(body: bytes, name: str) -> list[Message]:
    if len(body) > _TEXT_LIMIT_B:
        raise FormatError(
            f"{name} is a text dump of more than {_TEXT_LIMIT_B} bytes",
            hint="Give the binary trace instead.",
            slug="recording-too-large",
        )
    return parse_text_messages(SCHEMA, "Trace", body.decode("utf-8-sig", "replace"), place=name).get("packet", [])


class _Framer:
    """Cuts a stream of bytes into packets; one that is damaged is said and left out."""

    def __init__(self, name: str, log: FindingLog, head: bytes, scan: Callable[[bytes, int], int] | None) -> None:
        self.name = name
        self.scan = scan
        self.log = log
        self.pending = head
        self._offset = 0
        self._damaged = 0

    def feed(self, block: bytes) -> None:
        """Appends bytes of the file.

        Raises:
            FormatError: a packet is longer than a bounded reader takes.
        """
        if len(self.pending) > _PACKET_LIMIT_B:
            raise FormatError(
                f"{self.name}: a packet at byte {self._offset} is longer than {_PACKET_LIMIT_B} bytes",
                hint="The file is damaged there.",
                slug="protobuf-damaged",
            )
        self.pending += block

    def close(self) -> None:
        """Says what is left when the file ends."""
        if self.pending:
            message = f"the last packet is cut ({len(self.pending)} bytes left out)"
            self.log.add("tail_cut", message, f"byte {self._offset}")

    def packets(self) -> Iterator[Message]:
        """Yields the packets that are whole; keeps the rest."""
        at = 0
        while True:
            at = self.scan(self.pending, at) if self.scan else at
            frame = _frame(self.pending, at)
            if frame is None:
                break
            start, end = frame
            if self.pending[at] >> 3 == 1:
                yield from self._packet(self.pending[start:end], self._offset + at)
            at = end
        self._offset += at
        self.pending = self.pending[at:]

    def _packet(self, body: bytes, offset: int) -> Iterator[Message]:
        try:
            yield from _decode(body, f"{self.name}, byte {offset}")
        except FormatError as error:
            self._damaged += 1
            self.log.add("packet_damaged", f"{error.message}; the packet is left out", f"byte {offset}")
            if self._damaged > _DAMAGE_LIMIT:
                raise


def _frame(data: bytes, at: int = 0) -> tuple[int, int] | None:
    """Returns (start, end) of the body of the field at ``at``; None when it is not whole.

    Raises:
        FormatError: the bytes are no length-delimited field.
    """
    if len(data) - at < 2:
        return None
    if data[at] & 7 != 2 or data[at] >> 3 == 0 or data[at] > 0x7F:
        raise FormatError(
            f"not a packet of a trace: byte {data[at]:#04x}", hint="The file is damaged there.", slug="protobuf-damaged"
        )
    try:
        length, start = read_varint(data, at + 1)
    except FormatError:
        if len(data) - at > 11:
            raise
        return None
    return (start, start + length) if start + length <= len(data) else None


def _decode(body: bytes, place: str) -> Iterator[Message]:
    """Yields the packet, or those inside it when it is compressed; none when it holds nothing of interest."""
    numbers = {number for number, _, _ in iter_fields(body, place=place)}
    if not numbers & _WANTED:
        return
    packet = decode_message(SCHEMA, PACKET, body, place=place)
    for packed in packet.get("compressed_packets", []):
        engine = zlib.decompressobj()
        try:
            plain = engine.decompress(packed, _INFLATED_LIMIT_B)
        except zlib.error as error:
            raise FormatError(f"{place}: {error}", hint="The file is damaged there.", slug="protobuf-damaged") from None
        for number, wire, inner in iter_fields(plain, place=place):
            if number == 1 and wire == 2:
                yield decode_message(SCHEMA, PACKET, inner, place=place)
    if set(packet) != {"compressed_packets"}:
        yield packet


class ClockTable:
    """Turns the stamps of packets into ns on the trace's clock (boot time).

    Args:
        log: takes ``clock_unknown``.
    """

    def __init__(self, log: FindingLog) -> None:
        self.log = log
        self.realtime_offset_ns: int | None = None
        self._offsets: dict[tuple[int, int], int] = {}
        self._rules: dict[tuple[int, int], tuple[int, bool]] = {}
        self._running: dict[tuple[int, int], int] = {}
        self._defaults: dict[int, int] = {}

    def take(self, packet: Message) -> None:
        """Learns from the packet's snapshot and defaults."""
        sequence = first(packet, "trusted_packet_sequence_id", 0)
        for defaults in packet.get("trace_packet_defaults", []):
            if "timestamp_clock_id" in defaults:
                self._defaults[sequence] = first(defaults, "timestamp_clock_id", BOOTTIME)
        for snapshot in packet.get("clock_snapshot", []):
            clocks = [clock for clock in snapshot.get("clocks", []) if "clock_id" in clock and "timestamp" in clock]
            boot = next((first(c, "timestamp", 0) for c in clocks if first(c, "clock_id", 0) == BOOTTIME), None)
            if boot is None:
                continue
            for clock in clocks:
                key = self._key(first(clock, "clock_id", 0), sequence)
                unit_ns = first(clock, "unit_multiplier_ns", 1) or 1
                self._rules[key] = (unit_ns, first(clock, "is_incremental", default=False))
                stamp_ns = first(clock, "timestamp", 0) * unit_ns
                self._running[key] = stamp_ns
                self._offsets[key] = boot - stamp_ns
                if key[1] == 1 and self.realtime_offset_ns is None:
                    self.realtime_offset_ns = stamp_ns - boot

    def boot_ns(self, packet: Message) -> int | None:
        """Returns the packet's stamp in ns of boot time; None when its clock was never tied to it."""
        if "timestamp" not in packet:
            return None
        sequence = first(packet, "trusted_packet_sequence_id", 0)
        clock_id = first(packet, "timestamp_clock_id", self._defaults.get(sequence, BOOTTIME))
        stamp: int = first(packet, "timestamp", 0)
        if clock_id == BOOTTIME:
            return stamp
        key = self._key(clock_id, sequence)
        offset = self._offsets.get(key)
        if offset is None:
            self.log.add(
                "clock_unknown", f"a packet on clock {clock_id}, which no snapshot ties to boot time; left out"
            )
            return None
        unit_ns, incremental = self._rules[key]
        if incremental:
            self._running[key] += stamp * unit_ns
            return self._running[key] + offset
        return stamp * unit_ns + offset

    def plain_rule(self, sequence: int) -> tuple[int, int] | None:
        """Returns ns per unit and offset in ns of a sequence's own stamps; None when they run on or are not tied."""
        clock_id = self._defaults.get(sequence, BOOTTIME)
        if clock_id == BOOTTIME:
            return 1, 0
        key = self._key(clock_id, sequence)
        if key not in self._offsets or self._rules[key][1]:
            return None
        return self._rules[key][0], self._offsets[key]

    @staticmethod
    def _key(clock_id: int, sequence: int) -> tuple[int, int]:
        return (sequence if 64 <= clock_id < 128 else 0, clock_id)
