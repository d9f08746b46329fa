"""Scaphandre's JSON exporter: an array of steps in microwatts that is closed only when the tool ends cleanly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.json_stream import JsonStream
from joulemap.formats.ground.sampling import Domain, SampleBook, recording_of
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["ScaphandreReader"]

_MICRO = 1e-6


class ScaphandreReader:
    """Reads Scaphandre's JSON. Everything is microwatts; the host is psys, or packages and memory together.

    Processes hold a share of the host by their processor time: estimates, never added to it. A machine without a dram
    domain has no dram channel: missing, not 0 W.

    References:
        hubblo-org/scaphandre 04cc6ec9, src/exporters/json.rs and docs_src/references/metrics.md; FORMATS 4 (reports
        11, 12, 13).
    """

    name: ClassVar[str] = "scaphandre"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for an array of objects with host, consumers and sockets."""
        del path
        opening = b"".join(head[:256].split()).lstrip(b"\xef\xbb\xbf")
        known = opening.startswith((b'[{"host"', b'[,{"host"', b'{"host"')) and b'"consumption"' in head
        return 1.0 if known else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per host, socket, domain and process.

        Raises:
            FormatError: no JSON or no step with a power.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e6), log)
        overlaps: set[tuple[str, str]] = set()
        stream = JsonStream(path)
        for step, (_, record) in enumerate(stream, start=1):
            if isinstance(record, dict):
                self._step(record, step, (book, options, overlaps))
        if stream.truncated:
            message = "the array was never closed (the tool was killed); every whole step was read"
            log.add("recording_unfinished", message, f"character {stream.offset}", Severity.INFO)
        return recording_of(self.name, path, book, overlaps=sorted(overlaps))

    @staticmethod
    def _step(record: dict[str, Any], step: int, sink: tuple[SampleBook, ReadOptions, set[tuple[str, str]]]) -> None:
        book, options, overlaps = sink
        node = Domain(boundary=boundary_of(options.boundary, Boundary.NODE), scale=_MICRO)
        host = record.get("host")
        if isinstance(host, dict):
            _add(host, "host", node, (book, step))
        for socket in _objects(record.get("sockets")):
            name = f"socket {socket.get('id')}"
            _add(socket, name, Domain(boundary=Boundary.PACKAGE, scale=_MICRO), (book, step))
            overlaps.add((name, "host"))
            for domain in _objects(socket.get("domains")):
                inner = f"{name} {domain.get('name')}"
                _add(domain, inner, Domain(boundary=Boundary.RAIL, scale=_MICRO), (book, step))
                overlaps.add((inner, "host"))
                if domain.get("name") != "dram":
                    overlaps.add((inner, name))
        estimate = Domain(boundary=Boundary.NODE, provenance=Provenance.ESTIMATED, scale=_MICRO)
        for process in _objects(record.get("consumers")):
            name = f"process {process.get('exe')} {process.get('pid')}"
            _add(process, name, estimate, (book, step))
            overlaps.add((name, "host"))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _add(record: dict[str, Any], name: str, domain: Domain, sink: tuple[SampleBook, int]) -> None:
    book, step = sink
    try:
        time_ns = decimal_ns(str(record.get("timestamp")))
        value = record.get("consumption")
        power_uw = math.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        book.log.add("value_unreadable", f"{name}: no time stamp or no number", f"step {step}")
        return
    book.series(name, domain).add(time_ns, power_uw, step)
