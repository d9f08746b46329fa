"""TI EnergyTrace logs of msp430-etv: the cumulative energy counter of the debug probe, in nanojoules.

References:
    derf/msp430-etv at ede040d3: README, bin/msp430-etv and the genuine log test/ledblink.etlog with its published
    figures (FORMATS_MORE, "EnergyTrace .etlog").
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, TimedColumns, boundary_of, source_file, timed_trace
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import difference_counter
from joulemap.records.finding import Severity
from joulemap.records.recording import Lane, Recording
from joulemap.trace import Channel, Clock, ClockKind, KernelKind, SensorKernel

__all__ = ["EnergyTraceReader"]

_ROW: Final = re.compile(r"(-?\d+)[ \t]+(?:(-?\d+)[ \t]+)?(-?\d+)[ \t]+(-?\d+)[ \t]+(-?\d+)")
_MODULUS: Final = float(1 << 32)
_POWER_MAX_W: Final = 5.0
"""Ten times what the probe can deliver (FORMATS_MORE: accuracy is stated up to 75 mA); above it a step is damage."""


class EnergyTraceReader:
    """Reads time, voltage and the energy counter; the current column is filtered by the tool and is not used."""

    name = "energytrace"
    certainty = Certainty.RECORDING
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for the probe's ``#`` chatter before rows of four or five integers."""
        del path
        lines = head_lines(head, 400)
        chatter = any(line.startswith("#") and "MSP430" in line for line in lines)
        rows = [line for line in lines if not line.startswith("#")][:5]
        return 0.95 if chatter and rows and all(_ROW.fullmatch(line.strip()) for line in rows) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power from differences of the counter, and the voltage as a lane.

        Raises:
            FormatError: fewer than two rows, or more lines that are none than rows.
        """
        log = FindingLog()
        time_us, line = array("q"), array("q")
        voltage_mv, energy_nj = array("q"), array("q")
        bad = 0
        states = False
        for number, text in read_lines(path):
            body = text.strip()
            if not body or body.startswith("#"):
                continue
            found = _ROW.fullmatch(body)
            if not found or any(len(field) > 18 for field in found.groups() if field):
                bad += 1
                log.add("line_unreadable", f"no row of four or five integers: {body[:40]!r}", f"line {number}")
                continue
            states = states or found[2] is not None
            at = 1 if found[2] is None else 2
            time_us.append(int(found[at]))
            voltage_mv.append(int(found[4]))
            energy_nj.append(int(found[5]))
            line.append(number)
        if len(time_us) < 2 or bad > len(time_us):
            raise FormatError(
                f"{path.name}: {len(time_us)} rows and {bad} lines that are none",
                hint="A log of msp430-etv has rows of time (us), current (nA), voltage (mV), energy (nJ).",
                slug="recording-empty",
            )
        if states:
            log.add(
                "state_bits_unused",
                "the first of five columns holds state bits, which are not read",
                severity=Severity.INFO,
            )
        time_ns = np.array(time_us, np.int64) * 1000
        step_s = np.diff(time_ns) * 1e-9
        steps = difference_counter(
            np.array(energy_nj, np.int64), modulus=_MODULUS, largest=np.maximum(step_s, 0) * _POWER_MAX_W * 1e9
        )
        if steps.wrapped.any():
            row = int(np.argmax(steps.wrapped)) + 1
            log.add(
                "counter_wrapped",
                f"the energy counter wraps {int(steps.wrapped.sum())} times",
                f"line {line[row]}",
                Severity.INFO,
            )
        if steps.lost.any():
            row = int(np.argmax(steps.lost)) + 1
            log.add(
                "impossible_power",
                f"{int(steps.lost.sum())} steps of the counter exceed {_POWER_MAX_W} W: they are gaps",
                f"line {line[row]}",
                Severity.ERROR,
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            power_w = np.where(steps.lost, np.nan, steps.delta * 1e-9 / step_s)
        clock = Clock(name="energytrace", kind=ClockKind.COUNTER, resolution_ns=1000.0)
        trace = timed_trace(
            TimedColumns(time_ns=time_ns[1:], value=power_w, line=line[1:], gap_factor=None),
            channel=Channel(
                name="dut",
                boundary=boundary_of(options.boundary, Boundary.RAIL),
                provenance=Provenance.MEASURED_COUNTER,
                kernel=SensorKernel(kind=KernelKind.COUNTER, window_s=0.0),
            ),
            clock=clock,
            log=log,
            first_ns=int(time_ns[0]),
        )
        order = np.argsort(time_ns, kind="stable")
        voltage = Lane(
            name="supply", unit="V", clock=clock, time_ns=time_ns[order], value=(np.array(voltage_mv) * 1e-3)[order]
        )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=(trace,),
            lanes=(voltage,),
            metadata={"rows": str(len(time_us))},
            findings=log.findings(),
        )
