"""nvidia-smi --query-gpu=... --format=csv: one row per card and poll, local time, units in the header or the cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import local_clock, read_quantity, read_stamp
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, normal_label, read_lines, split_fields
from joulemap.formats.ground.values import header_unit
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording

__all__ = ["NvidiaSmiCsvReader"]

_POWER = {"power.draw": "", "power.draw.average": " average", "power.draw.instant": " instant"}
_LANES = {
    "utilization.gpu": ("utilisation", "1"),
    "utilization.memory": ("memory utilisation", "1"),
    "temperature.gpu": ("temperature", "degC"),
    "clocks.sm": ("sm clock", "Hz"),
    "clocks.current.sm": ("sm clock", "Hz"),
    "clocks.mem": ("memory clock", "Hz"),
    "clocks.current.memory": ("memory clock", "Hz"),
    "clocks.gr": ("graphics clock", "Hz"),
    "clocks.current.graphics": ("graphics clock", "Hz"),
    "power.limit": ("power limit", "W"),
    "enforced.power.limit": ("enforced power limit", "W"),
}
_BARE_UNIT = {"utilisation": "%", "memory utilisation": "%", "sm clock": "MHz", "memory clock": "MHz",
              "graphics clock": "MHz", "temperature": "degC", "power limit": "W",
              "enforced power limit": "W"}  # fmt: skip
_IDENTITY = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial")


@dataclass(frozen=True, slots=True)
class _Column:
    position: int
    label: str
    unit: str


def _columns(text: str) -> list[_Column]:
    columns = []
    for position, cell in enumerate(split_fields(text)):
        label, unit = header_unit(cell)
        bracket = cell[cell.rindex("[") + 1 : -1] if unit is not None and cell.endswith("]") else ""
        columns.append(_Column(position, normal_label(label), bracket))
    return columns


class NvidiaSmiCsvReader:
    """Reads the CSV of nvidia-smi's queries.

    A card without an energy counter has its power held over each interval. ``power.draw`` is a mean of one second on
    Ampere (not GA100) and later, about 25 to 100 ms before: the file does not say which card it is, so the wider window
    is declared. A poller faster than the sensor repeats a value; repeats are one sample.

    Powers are written with two decimals. ``power.limit`` is the limit that software set, ``enforced.power.limit`` the
    lowest of all that hold; both are lanes.

    References:
        nvidia-smi --help-query-gpu (power.limit, enforced.power.limit);
        FORMATS 3 (nvidia-smi CSV), 4 (reports 23, 24, 31); METHODS 1.3; NVML API reference, nvmlDeviceGetPowerUsage.
    """

    name: ClassVar[str] = "nvidia-smi-csv"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for a header that names nvidia-smi's power or utilisation queries."""
        del path
        lines = head_lines(head, 1)
        labels = {column.label for column in _columns(lines[0])} if lines else set()
        return 0.95 if labels & set(_POWER) or len(labels & set(_LANES)) > 1 else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per card and power query, and its utilisation, clocks and temperature as lanes.

        Raises:
            FormatError: no time stamp column, or no reading at all.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e6)
        book = SampleBook(clock, log)
        domain = Domain(
            boundary=boundary_of(options.boundary, Boundary.BOARD), window_s=1.0, polled=True, resolution_w=0.01
        )
        overlaps: set[tuple[str, str]] = set()
        for line, columns, fields in _rows(path, log):
            by_label = {column.label: column for column in columns}
            stamp_at = by_label.get("timestamp")
            if stamp_at is None:
                raise FormatError(
                    f"{path.name} has no timestamp column",
                    hint="Query timestamp,power.draw with --format=csv -lms.",
                    slug="column-missing",
                )
            stamp = read_stamp(log, fields[stamp_at.position], line)
            if stamp is None:
                continue
            time_ns = stamp.ns + shift_ns
            card = _card(by_label, fields)
            for column in columns:
                cell = fields[column.position]
                if column.label in _POWER:
                    name = card + _POWER[column.label]
                    power_w = read_quantity(log, cell, line, column.unit or "W")
                    book.series(name, domain).add(time_ns, power_w, line)
                    if name != card:
                        overlaps.add((name, card))
                elif column.label in _LANES:
                    lane, unit = _LANES[column.label]
                    value = read_quantity(log, cell, line, column.unit or _BARE_UNIT[lane])
                    book.lane(f"{card} {lane}", unit, time_ns, value)
        if book.names:
            log.add(
                "sensor_window",
                "power.draw is the mean of up to one second (Ampere and later, but GA100); work shorter than that is "
                "not resolved, and one call before a run says nothing about the run",
                severity=Severity.INFO,
            )
        return recording_of(self.name, path, book, overlaps=sorted(overlaps))


def _card(by_label: dict[str, _Column], fields: list[str]) -> str:
    for label in _IDENTITY:
        column = by_label.get(label)
        if column is not None and fields[column.position]:
            value = fields[column.position]
            return f"gpu{value}" if label == "index" else f"gpu {value}"
    return "gpu"


def _rows(path: Path, log: FindingLog) -> Iterator[tuple[int, list[_Column], list[str]]]:
    columns: list[_Column] = []
    header = ""
    for line, text in read_lines(path):
        if not text.strip():
            continue
        if not columns:
            columns, header = _columns(text), text
            continue
        if text == header:
            continue  # the log was appended to by a second run
        fields = split_fields(text)
        if len(fields) != len(columns):
            log.add("row_ragged", f"{len(fields)} fields where the header has {len(columns)}", f"line {line}")
            fields = (fields + [""] * len(columns))[: len(columns)]
        yield line, columns, fields
