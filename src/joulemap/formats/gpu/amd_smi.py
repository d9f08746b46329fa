"""amd-smi metric and monitor, as CSV and JSON: epoch seconds in watch mode only, units in JSON only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.json_stream import read_json
from joulemap.formats.ground.logs import index_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_head, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["AmdSmiReader"]

_POWER = ("socket_power", "power_usage", "average_socket_power", "current_socket_power")
_LANES = {
    "hotspot_temperature": ("hotspot temperature", "degC", "degC"),
    "memory_temperature": ("memory temperature", "degC", "degC"),
    "gfx_voltage": ("gfx voltage", "V", "mV"),
    "soc_voltage": ("soc voltage", "V", "mV"),
    "mem_voltage": ("memory voltage", "V", "mV"),
}
_LARGEST_W = 5000.0  # no accelerator draws it; some APU firmware reports milliwatts as watts


class AmdSmiReader:
    """Reads amd-smi's logs; a watched CSV repeats its header and has blank lines between the polls.

    References:
        ROCm/amdsmi 0ceca28f (2024-10), amdsmi_cli/amdsmi_logger.py and amdsmi_commands.py; Umio-Yasuno/amdgpu_top
        issue 30 (milliwatts on APUs). Later versions are unchecked.
    """

    name: ClassVar[str] = "amd-smi"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a CSV header with gpu and a power column, or JSON of cards with a socket power."""
        del path
        lines = head_lines(head, 1)
        if not lines:
            return 0.0
        labels = split_fields(lines[0])
        if "gpu" in labels and set(labels) & set(_POWER):
            return 0.95
        opening = b"".join(head[:2048].split())
        power = any(f'"{key}"'.encode() in head for key in _POWER)
        return 0.95 if opening.startswith((b'[{"gpu"', b'[{"timestamp"', b'{"gpu_data"')) and power else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the power of each card; of a single poll, stated powers.

        Raises:
            FormatError: no card with a reading.
            InputError: several polls without a time and no stated rate.
        """
        log = FindingLog()
        table = not read_head(path).lstrip().startswith((b"[", b"{"))
        rows = list(_csv_rows(path, log) if table else _json_rows(path))
        timed = all(values.get("timestamp") for _, values in rows)
        clock, period_ns = Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e9), 1
        if not timed:
            repeats = len({values.get("gpu") for _, values in rows}) < len(rows)
            clock, period_ns = (
                index_clock(options, path.name) if repeats else (Clock(name="poll", kind=ClockKind.SAMPLE_INDEX), 1)
            )
        book = SampleBook(clock, log)
        domain = Domain(
            boundary=boundary_of(options.boundary, Boundary.PACKAGE), largest_w=_LARGEST_W, polled=True, gap_factor=2.5
        )
        polls: dict[str, int] = {}
        for line, values in rows:
            card = f"gpu{values.get('gpu', '')}"
            polls[card] = polls.get(card, -1) + 1
            time_ns = polls[card] * period_ns
            if timed:
                try:
                    time_ns = decimal_ns(values["timestamp"])
                except ValueError:
                    log.add("stamp_unreadable", f"{values['timestamp']!r} is no epoch time", f"line {line}")
                    continue
            for key in _POWER:
                if key in values:
                    book.series(card, domain).add(time_ns, read_quantity(log, values[key], line), line)
                    break
            for key, (lane, unit, bare) in _LANES.items():
                if key in values:
                    book.lane(f"{card} {lane}", unit, time_ns, read_quantity(log, values[key], line, bare))
        return recording_of(self.name, path, book)


def _csv_rows(path: Path, log: FindingLog) -> Iterator[tuple[int, dict[str, str]]]:
    header: list[str] = []
    for line, text in read_lines(path):
        if not text.strip():
            continue
        fields = split_fields(text)
        if "gpu" in fields:
            header = fields
        elif header:
            if len(fields) != len(header):
                log.add("row_ragged", f"{len(fields)} fields where the header has {len(header)}", f"line {line}")
            yield line, dict(zip(header, fields, strict=False))


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    document: Any = read_json(path)
    if isinstance(document, dict):
        document = document.get("gpu_data")
    if not isinstance(document, list):
        raise FormatError(f"{path.name} is no list of cards", hint="Use amd-smi --json.", slug="json-unexpected")
    for number, card in enumerate(document, start=1):
        if isinstance(card, dict):
            yield number, _flat(card)


def _flat(card: dict[str, Any]) -> dict[str, str]:
    """Returns the scalars of a card by their own name: ``{value, unit}`` is written as one quantity."""
    flat: dict[str, str] = {}
    pending = [card]
    while pending:
        for key, value in pending.pop().items():
            if isinstance(value, dict) and "value" in value:
                flat.setdefault(key, f"{value['value']} {value.get('unit') or ''}".replace(" C", " degC").strip())
            elif isinstance(value, dict):
                pending.append(value)
            elif isinstance(value, (str, int)):
                flat.setdefault(key, str(value))
    return flat
