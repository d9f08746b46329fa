"""Alumet's CSV: long format, one measurement per row, attributes in columns and in a last catch-all column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, open_table
from joulemap.formats.ground.values import parse_stamp
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["AlumetReader"]

_HEAD = ("metric", "timestamp", "value", "resource_kind", "resource_id", "consumer_kind", "consumer_id")
_UNIT = re.compile(r"_(m|u|n|k)?(J|W)$")
_SCALE = {None: 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "k": 1e3}
_BARE = {"rapl_consumed_energy": "rapl_consumed_energy_J"}
_LATE = re.compile(r"(?:^|(?<!\\),)((?:[^=,\\]|\\.)+)=((?:[^,\\]|\\.)*)")
_INSIDE = {"package": ("package_total",), "dram": ("dram_total",), "pp0": ("package", "package_total"),
           "pp1": ("package", "package_total")}  # fmt: skip


class AlumetReader:
    """Reads Alumet's CSV. Energies are what was consumed since the measurement before; powers are gauges.

    Only metrics whose name ends in their unit (and RAPL's energy, which is in joules) are read as power; the others
    are named in the metadata.

    References:
        alumet-dev/alumet afb0aa12, plugins/csv and plugin-rapl (energies are counter differences).
    """

    name: ClassVar[str] = "alumet"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for Alumet's header, with any separator."""
        del path
        lines = head_lines(head, 1)
        words = tuple(re.split(r"[;,\t|]", lines[0]))[: len(_HEAD)] if lines else ()
        return 1.0 if words == _HEAD else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per energy or power metric, resource, domain and consumer.

        Raises:
            FormatError: no such metric.
        """
        del options
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC), log)
        with path.open("rb") as handle:
            first = handle.readline(4096).decode("utf-8-sig", "replace")
        table = open_table(
            path, delimiter=first[len("metric")] if first.startswith("metric") and len(first) > 6 else ";"
        )
        if tuple(table.header[: len(_HEAD)]) != _HEAD:
            raise FormatError(f"{path.name} has not Alumet's header", hint="Export again.", slug="column-missing")
        others: set[str] = set()
        for row in table.rows():
            cells = dict(zip(table.header, row.fields, strict=True))
            metric = _BARE.get(cells["metric"], cells["metric"])
            unit = _UNIT.search(metric)
            if unit is None:
                others.add(cells["metric"])
                continue
            try:
                stamp = parse_stamp(cells["timestamp"])
            except ValueError:
                log.add("stamp_unreadable", f"{cells['timestamp']!r} is no time stamp", f"line {row.line}")
                continue
            time_ns = stamp.ns if stamp.offset_s is None else stamp.utc_ns
            attributes = {key: value for key, value in cells.items() if key not in _HEAD and value}
            late = attributes.pop("__late_attributes", "")
            attributes |= {key: value.replace("\\=", "=").replace("\\,", ",") for key, value in _LATE.findall(late)}
            value = read_quantity(log, cells["value"], row.line)
            name = _name(metric[: unit.start()], cells, attributes)
            book.series(name, _domain(unit, cells, attributes)).add(time_ns, value, row.line)
        overlaps = [
            (name, name.replace(f" {inner}", f" {outer}"))
            for name in book.names
            for inner, outers in _INSIDE.items()
            for outer in outers
            if f" {inner}" in f"{name} " and f" {inner}_" not in name
        ]
        metadata = {"metrics_not_read": ", ".join(sorted(others))} if others else {}
        return recording_of(self.name, path, book, overlaps=overlaps, metadata=metadata)


def _name(metric: str, cells: dict[str, str], attributes: dict[str, str]) -> str:
    words = [metric, cells["resource_kind"], cells["resource_id"], attributes.pop("domain", "")]
    if cells["consumer_kind"] != "local_machine":
        words += [cells["consumer_kind"], cells["consumer_id"]]
    words += [f"{key}={value}" for key, value in sorted(attributes.items())]
    return " ".join(word for word in words if word and word != "local_machine")


def _domain(unit: re.Match[str], cells: dict[str, str], attributes: dict[str, str]) -> Domain:
    domain = cells.get("domain", "") or attributes.get("domain", "")
    boundary = Boundary.PACKAGE if domain.startswith("package") else Boundary.RAIL
    if domain in ("psys", "platform"):
        boundary = Boundary.NODE
    if "gpu" in cells["resource_kind"]:
        boundary = Boundary.BOARD
    whole = cells["consumer_kind"] == "local_machine"
    energy = unit.group(2) == "J"
    measured = Provenance.MEASURED_COUNTER if energy else Provenance.MEASURED_SAMPLED
    return Domain(
        boundary=boundary,
        provenance=measured if whole else Provenance.ESTIMATED,
        meaning=Meaning.STEP if energy else Meaning.POWER,
        scale=_SCALE[unit.group(1)],
    )
