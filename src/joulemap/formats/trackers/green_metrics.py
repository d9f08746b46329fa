"""Logs of the Green Metrics Tool's providers: epoch microseconds, an integer, a detail. The unit is not written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import InputError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import UnitKind, decimal_ns, parse_unit
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["GreenMetricsReader"]

_ROW = re.compile(r'^(\d{16}) (-?\d{1,18})(?: ("[^"]*"|\S+))?$')
_RAPL = re.compile(r"^(Package|DRAM|PSYS|Core|Cores|Uncore)_(\d+)$", re.IGNORECASE)


class GreenMetricsReader:
    """Reads provider logs.

    RAPL's (known by its details, Package_0 and such) are microjoules of the interval that ends at the stamp; for any
    other provider the unit must be stated, since only its source knows it.

    References:
        green-coding-solutions/green-metrics-tool 86d47334, metric_providers/base.py and
        cpu/energy/rapl/msr/component/source.c; FORMATS 3 (RAPL log and PSU log of GMT).
    """

    name: ClassVar[str] = "green-metrics"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.85 when the first lines are a 16-digit epoch, an integer and at most one detail."""
        del path
        lines = head_lines(head, 3)
        return 0.85 if lines and all(_ROW.match(text) for text in lines[:2]) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per detail.

        Raises:
            FormatError: no row.
            InputError: the details are not RAPL's and no unit was stated.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e3), log)
        stated = _stated_unit(options)
        for line, text in read_lines(path):
            if not text.strip():
                continue
            match = _ROW.match(text.rstrip())
            if match is None:
                log.add("tail_cut", f"not a row of a provider: {text[:40]!r}; left out", f"line {line}")
                continue
            stamp, value, detail = match.groups()
            name = (detail or "machine").strip('"')
            rapl = _RAPL.match(name)
            if stated is None and rapl is None:
                raise InputError(
                    f"{path.name} does not say in which unit {name!r} is",
                    hint="State it, for example --unit energy=uJ or --unit power=mW.",
                    slug="unit-needed",
                )
            try:
                time_ns = decimal_ns(stamp, 1000)
            except ValueError:
                log.add("stamp_unreadable", f"{stamp} us is beyond any calendar; left out", f"line {line}")
                continue
            meaning, scale = stated or (Meaning.STEP, 1e-6)
            own = Boundary.PACKAGE if name.lower().startswith("package") else Boundary.NODE
            if rapl is not None and not name.lower().startswith(("package", "psys")):
                own = Boundary.RAIL
            domain = Domain(
                boundary=boundary_of(options.boundary, own) if rapl is None else own,
                provenance=Provenance.MEASURED_COUNTER if meaning is Meaning.STEP else Provenance.MEASURED_SAMPLED,
                meaning=meaning,
                scale=scale,
            )
            book.series(name, domain).add(time_ns, float(value), line)
        overlaps = []
        for name in book.names:
            kind, _, number = name.rpartition("_")
            if kind.lower() in ("core", "cores", "uncore"):
                overlaps.append((name, f"Package_{number}"))
            if kind.lower() != "psys":
                overlaps.append((name, f"PSYS_{number}"))
        return recording_of(self.name, path, book, overlaps=overlaps)


def _stated_unit(options: ReadOptions) -> tuple[Meaning, float] | None:
    for role, meaning, kind in (("energy", Meaning.STEP, UnitKind.ENERGY), ("power", Meaning.POWER, UnitKind.POWER)):
        text = options.units.get(role)
        if text is None:
            continue
        try:
            unit = parse_unit(text)
        except ValueError:
            unit = None
        if unit is None or unit.kind is not kind:
            raise UsageError(f"{text!r} is no unit of {role}", hint="For example uJ or mW.", slug="unit-unknown")
        return meaning, unit.factor
    return None
