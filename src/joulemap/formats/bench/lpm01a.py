"""ASCII logs of ST's X-NUCLEO-LPM01A (PowerShield): decimal currents between time stamps.

References:
    mlcommons/tiny at 1afd2c9, benchmark/runner/power_manager, and public readers (FORMATS_MORE, "LPM01A ascii_dec").
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.bench.lpm01a_times import stamped_times
from joulemap.formats.ground.building import (
    FindingLog,
    TimedColumns,
    boundary_of,
    sampled_channel,
    source_file,
    timed_trace,
    voltage_of,
)
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["Lpm01aReader"]

_STAMP: Final = re.compile(r"TimeStamp:\s*(\d{1,6})s\s*(\d{1,3})ms(?:,\s*buff\s*(\d{1,3})%)?")
_SAMPLE: Final = re.compile(r"[+ ]?(\d{1,6})([+-]\d{1,2})")


@dataclass(slots=True)
class _Log:
    """What the lines hold: samples, and before which sample each stamp stands."""

    current_a: array[float] = field(default_factory=lambda: array("d"))
    line: array[int] = field(default_factory=lambda: array("q"))
    stamps: list[tuple[int, int]] = field(default_factory=list)  # (samples before it, ns)
    fullest_percent: int = 0
    completed: bool = False


class Lpm01aReader:
    """Reads the board's decimal stream; the supply is not in the log and must be stated."""

    name = "lpm01a"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for the board's prompt or time stamp line with samples among the first lines."""
        del path
        lines = [line.strip("\0 ") for line in head_lines(head, 60)]
        said = any(_STAMP.match(line) or line.startswith("PowerShield >") for line in lines)
        return 0.95 if said and any(_SAMPLE.fullmatch(line) for line in lines) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power (current times the stated supply) on the board's millisecond clock.

        The sample rate is not in the log: it is the stated one, else what lies between two stamps.

        Raises:
            InputError: no supply was stated, or no rate and fewer than two stamps.
            FormatError: no sample.
        """
        voltage_v = voltage_of(options.voltage_v, path.name)
        log = FindingLog()
        found = _read(path, log)
        if not found.completed:
            log.add("recording_unfinished", "the log does not say 'Acquisition completed'", severity=Severity.INFO)
        if found.fullest_percent >= 100:
            log.add("buffer_full", "the board's buffer was full: samples after it may be missing")
        time_ns, period_ns = stamped_times(found.stamps, len(found.current_a), options.rate_hz)
        first = found.stamps[0][0] if found.stamps else 0
        trace = timed_trace(
            TimedColumns(
                time_ns=time_ns,
                value=np.array(found.current_a)[first:] * voltage_v,
                line=found.line[first:],
                stamp="start",
                gap_factor=2.5,
                period_ns=period_ns,
            ),
            channel=sampled_channel("dut", boundary_of(options.boundary, Boundary.RAIL), period_ns * 1e-9),
            clock=Clock(name="lpm01a", kind=ClockKind.MONOTONIC, resolution_ns=1e6),
            log=log,
        )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=(trace,),
            metadata={"supply_v": f"{voltage_v:g}", "period_s": f"{period_ns * 1e-9:.6g}"},
            findings=log.findings(),
        )


def _read(path: Path, log: FindingLog) -> _Log:
    found = _Log()
    strange = 0
    for number, text in read_lines(path):
        body = text.strip("\0 \t")  # the first sample after a stamp may follow a NUL
        if not body:
            continue
        if match := _SAMPLE.fullmatch(body):
            found.current_a.append(int(match[1]) * 10.0 ** int(match[2]))
            found.line.append(number)
        elif match := _STAMP.match(body):
            found.stamps.append((len(found.current_a), (int(match[1]) * 1000 + int(match[2])) * 1_000_000))
            found.fullest_percent = max(found.fullest_percent, int(match[3] or 0))
        elif "acquisition completed" in body.lower():
            found.completed = True
        elif "error" in body.lower() or "overcurrent" in body.lower():
            log.add("instrument_message", f"the board says {body[:120]!r}", f"line {number}")
        elif not body.startswith("PowerShield") and not found.completed:  # a free text summary follows the end
            strange += 1
            log.add("line_unreadable", f"no sample and no stamp: {body[:40]!r}", f"line {number}")
    if not found.current_a or strange > len(found.current_a):
        raise FormatError(
            f"{path.name}: {len(found.current_a)} samples among {strange} lines that are none",
            hint="Samples look like 6409-07.",
            slug="recording-empty",
        )
    return found
