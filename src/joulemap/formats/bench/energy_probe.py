"""Raw captures of Arm's Energy Probe (caiman): milliwatts, millivolts, milliamperes per port, and nothing else.

References:
    ARM-software/devlib at 0980d744, devlib/instrument/energy_probe.py (FORMATS_MORE, "Arm Energy Probe"); the rate of
    10 kHz is what devlib found by experiment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, sampled_channel, source_file, uniform_trace
from joulemap.formats.ground.sample_store import release_pages, sample_store
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["EnergyProbeReader"]

_RATE_HZ: Final = 10_000.0
_PORTS_MAX: Final = 3
_PORT: Final = np.dtype([("power_mw", "<u4"), ("voltage_mv", "<u4"), ("current_ma", "<u4")])
_BLOCK: Final = 1 << 16


class EnergyProbeReader:
    """Reads one port, or as many as ``--column ports=N`` says: the file does not tell."""

    name = "energy-probe"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.7 when every triple of the head is a power that equals its voltage times its current."""
        del path
        count = len(head) // _PORT.itemsize
        if count < 3:
            return 0.0
        part = np.frombuffer(head, _PORT, count)
        power, volts, amps = (part[name].astype(np.float64) for name in ("power_mw", "voltage_mv", "current_ma"))
        used = (volts > 0) & (amps > 0)
        if used.sum() < 3 or volts.max() > 60_000 or amps.max() > 60_000:
            return 0.0
        apart = np.abs(power - volts * amps * 1e-3)
        return 0.7 if bool(np.mean(apart <= 0.02 * power + volts * 1e-3 + 1) > 0.95) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per port at 10 kHz, or at the stated rate.

        Raises:
            FormatError: no whole sample.
            InputError: the stated number of ports or rate is none.
        """
        log = FindingLog()
        ports = _ports(options)
        if "ports" not in options.columns:
            log.add(
                "ports_unstated", "the file does not say how many ports it holds: one is assumed; else state ports=N"
            )
        rate_hz = _RATE_HZ if options.rate_hz is None else options.rate_hz
        size_b = path.stat().st_size
        row_b = _PORT.itemsize * ports
        count = size_b // row_b
        if not count:
            raise FormatError(f"{path.name} holds no whole sample", hint="Record again.", slug="recording-empty")
        if size_b % row_b:
            log.add("tail_cut", f"the last row is cut: {size_b % row_b} bytes are left out", f"offset {count * row_b}")
        stores = [sample_store(count) for _ in range(ports)]
        apart = _fill(path, stores, count)
        if apart > 0.5:
            raise FormatError(
                f"{path.name}: in {apart:.0%} of the samples power is not voltage times current",
                hint="This is no capture of the probe, or --column ports=N is wrong.",
                slug="energy-probe-mismatch",
            )
        if apart > 0.05:
            log.add(
                "power_disagrees", f"in {apart:.0%} of the samples power is not voltage times current: wrong ports?"
            )
        clock = Clock(name="energy probe", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
        traces = tuple(
            uniform_trace(
                power_w,
                channel=sampled_channel(f"port{number}", boundary_of(options.boundary, Boundary.RAIL), 1 / rate_hz),
                clock=clock,
                start_ns=0,
                period_s=1 / rate_hz,
                log=log,
            )
            for number, power_w in enumerate(stores)
        )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            metadata={"rate_hz": f"{rate_hz:g}", "ports": str(ports)},
            findings=log.findings(),
        )


def _ports(options: ReadOptions) -> int:
    text = options.columns.get("ports", "1").strip()
    if text not in {str(number) for number in range(1, _PORTS_MAX + 1)}:
        raise InputError(f"{text!r} ports are none", hint="--column ports=1, 2 or 3.", slug="ports-impossible")
    if options.rate_hz is not None and not 0 < options.rate_hz <= 1e9:
        raise InputError(f"a rate of {options.rate_hz} Hz is none", hint="Say --rate in Hz.", slug="rate-needed")
    return int(text)


def _fill(path: Path, stores: list[NDArray[np.float32]], count: int) -> float:
    """Fills watts per port and returns the share of samples whose power is not voltage times current."""
    wrong = 0
    supplied = False
    row = np.dtype((_PORT, (len(stores),)))
    for first in range(0, count, _BLOCK):
        take = min(_BLOCK, count - first)
        block = np.fromfile(path, _PORT, take * len(stores), offset=first * row.itemsize).reshape(take, len(stores))
        for number, store in enumerate(stores):
            part = block[:, number]
            store[first : first + take] = part["power_mw"] * 1e-3
            product = part["voltage_mv"].astype(np.float64) * part["current_ma"] * 1e-3
            supplied = supplied or bool(part["voltage_mv"].any())
            slack = 0.02 * product + part["voltage_mv"] * 1e-3 + 1
            wrong += int((np.abs(part["power_mw"] - product) > slack).sum())
            release_pages(store)
    if not supplied:
        raise FormatError(
            f"{path.name}: every voltage is 0", hint="Was the probe connected?", slug="energy-probe-mismatch"
        )
    return wrong / (count * len(stores))
