"""Nsight Systems' report cuda_gpu_trace as CSV: kernels and copies of the GPU, ns from the session's start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.slices import SliceColumns
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["NsightCsvReader"]

_START = re.compile(r"^Start \((ns|us|μs|µs|ms|s|sec)\)$")
_DURATION = re.compile(r"^Duration \((ns|us|μs|µs|ms|s|sec)\)$")
_UNIT_NS = {"ns": 1, "us": 1_000, "μs": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "sec": 1_000_000_000}


class NsightCsvReader:
    """Reads the trace; the last column, the kernel's name, may hold commas. There is no wall clock.

    References:
        FORMATS 3 (nsys cuda_gpu_trace CSV), 5 (quirk 12); Nsight Systems User Guide, report cuda_gpu_trace.
    """

    name: ClassVar[str] = "nsight-csv"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the report's header."""
        del path
        return 1.0 if any(_header(text) is not None for text in head_lines(head, 30)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns kernels and copies as slices, one track per device and stream.

        Raises:
            FormatError: no header of the report, or no row.
        """
        del options
        log = FindingLog()
        clock = Clock(name="nsys session", kind=ClockKind.MONOTONIC)
        slices = SliceColumns(clock, log)
        header: list[str] = []
        units = (1, 1)
        for line, text in read_lines(path):
            if not text.strip():
                continue
            if not header:
                header = _header(text) or []
                if header:
                    units = _units(header)
                continue
            plain = '"' not in text  # then only the name, which is last, may hold commas
            fields = text.split(",", len(header) - 1) if plain else split_fields(text)
            cells = dict(zip(header, fields, strict=False))
            try:
                start_ns = decimal_ns(fields[0], units[0])
                length_ns = decimal_ns(cells[next(c for c in header if _DURATION.match(c))], units[1])
                name = cells["Name"]
            except (ValueError, KeyError, IndexError):
                log.add("row_unreadable", f"a row without start, duration or name: {text[:40]!r}", f"line {line}")
                continue
            kind = "transfer" if name.startswith("[CUDA mem") else "kernel"
            track = f"{cells.get('Device', '')} stream {cells.get('Strm', '')}".strip()
            slices.add(track, name, (start_ns, start_ns + length_ns), kind)
        timelines = slices.timelines()
        if not timelines:
            raise FormatError(
                f"{path.name} holds no row of the report",
                hint="Use nsys stats --report cuda_gpu_trace --format csv.",
                slug="recording-empty",
            )
        return recording_of(self.name, path, SampleBook(clock, log), timelines=timelines)


def _header(text: str) -> list[str] | None:
    fields = split_fields(text)
    known = len(fields) > 3 and _START.match(fields[0]) and fields[-1] == "Name" and any(map(_DURATION.match, fields))
    return fields if known else None


def _units(header: list[str]) -> tuple[int, int]:
    start = _START.match(header[0])
    duration = next(match for match in map(_DURATION.match, header) if match)
    return (_UNIT_NS[start.group(1)] if start else 1), _UNIT_NS[duration.group(1)]
