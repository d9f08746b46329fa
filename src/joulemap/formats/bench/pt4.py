"""Monsoon's ``.pt4``: a header, a status packet at 272 and samples from 1024, little endian.

References:
    brownsys/pt4utils at 0a79b2e9, pt4_filereader.py and raw_sample.py (FORMATS_MORE, "Monsoon .pt4"). ``.pt5`` is not
    read: no description of it was found.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, sampled_channel, source_file, uniform_trace
from joulemap.formats.ground.sample_store import release_pages, sample_store
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["Pt4Reader"]

_HEAD_B: Final = 212
_STATUS_AT: Final = 272
_SAMPLES_AT: Final = 1024
_MASKS: Final = ((0x1000, "main"), (0x2000, "usb"), (0x4000, "aux"))
_CURRENT_MISSING: Final = 0x7001
_VOLTAGE_MISSING: Final = 0xFFFF
_COARSE: Final = 250
_VOLT_STEP_V: Final = 125e-6
_RATE_HZ: Final = 5000.0
_BLOCK: Final = 1 << 16
_LAYOUT_AT: Final = 144
"""Offset of statusOffset, statusSize, sampleOffset, sampleSize, three initial voltages, captureDataMask (u16 each),
then the counts of samples and of missing ones (u64 each)."""
_HARDWARE_RATE_AT: Final = 68


@dataclass(frozen=True, slots=True)
class _Head:
    rails: tuple[str, ...]
    samples: int
    missing: int
    rate_hz: float


class Pt4Reader:
    """Reads the enabled currents and the voltage; markers ride in the voltage's low bits and are left out."""

    name = "pt4"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for the sizes and offsets of the header and a mask with a rail."""
        del path
        return 0.95 if _head(head) is not None else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per enabled current.

        Raises:
            FormatError: no such header, or no sample.
        """
        log = FindingLog()
        with path.open("rb") as handle:
            head = _head(handle.read(_SAMPLES_AT))
        if head is None:
            raise FormatError(
                f"{path.name}: no PowerTool header", hint="A .pt4 begins with a header of 212 bytes.", slug="pt4-head"
            )
        traces = _traces(path, head, options, log)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            metadata={"rate_hz": f"{head.rate_hz:g}", "samples": str(head.samples), "missing": str(head.missing)},
            findings=log.findings(),
        )


def _head(raw: bytes) -> _Head | None:
    if len(raw) < _STATUS_AT or struct.unpack_from("<I", raw, 0)[0] != _HEAD_B:
        return None
    status_at, _, samples_at, _, _, _, _, mask = struct.unpack_from("<8H", raw, _LAYOUT_AT)
    if (status_at, samples_at) != (_STATUS_AT, _SAMPLES_AT):
        return None
    samples, missing = struct.unpack_from("<QQ", raw, _LAYOUT_AT + 16)
    (rate_hz,) = struct.unpack_from("<I", raw, _HARDWARE_RATE_AT)
    rails = tuple(name for bit, name in _MASKS if mask & bit)
    return _Head(rails, samples, missing, float(rate_hz) if 0 < rate_hz <= 1_000_000 else _RATE_HZ) if rails else None


def _traces(path: Path, head: _Head, options: ReadOptions, log: FindingLog) -> tuple[EnergyTrace, ...]:
    """Returns the rails; the one voltage of a sample is the main rail's, the others need a stated supply."""
    supply_v = {rail: None if rail == "main" else options.voltage_v for rail in head.rails}
    for rail in [rail for rail, volts in supply_v.items() if rail != "main" and volts is None]:
        del supply_v[rail]
        log.add("channel_without_voltage", f"the {rail} current has no voltage and is left out", severity=Severity.INFO)
    sample = np.dtype([(rail, "<i2") for rail in head.rails] + [("volts", "<u2")])
    body_b = path.stat().st_size - _SAMPLES_AT
    count = max(body_b, 0) // sample.itemsize
    if not count or not supply_v:
        raise FormatError(
            f"{path.name} holds no sample of a rail with a voltage",
            hint="Say the supply of the USB or aux rail with --voltage.",
            slug="recording-empty",
        )
    if body_b % sample.itemsize:
        log.add("tail_cut", f"the file ends inside a sample: {body_b % sample.itemsize} bytes are left out")
    if head.samples != count:
        log.add("count_disagrees", f"the header says {head.samples} samples, the file holds {count}", "offset 160")
    stores = {rail: sample_store(count) for rail in supply_v}
    for first in range(0, count, _BLOCK):
        block = np.fromfile(path, sample, min(_BLOCK, count - first), offset=_SAMPLES_AT + first * sample.itemsize)
        volts = (block["volts"] & 0xFFFC).astype(np.float64) * _VOLT_STEP_V
        volts[block["volts"] == _VOLTAGE_MISSING] = np.nan
        for rail, stated_v in supply_v.items():
            current_a = _current_a(block[rail])
            stores[rail][first : first + block.size] = current_a * (volts if stated_v is None else stated_v)
            release_pages(stores[rail])
    clock = Clock(name="monsoon", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / head.rate_hz)
    boundary = boundary_of(options.boundary, Boundary.RAIL)
    return tuple(
        uniform_trace(
            power_w,
            channel=sampled_channel(rail, boundary, 1 / head.rate_hz),
            clock=clock,
            start_ns=0,
            period_s=1 / head.rate_hz,
            log=log,
        )
        for rail, power_w in stores.items()
    )


def _current_a(raw: NDArray[np.int16]) -> NDArray[np.float64]:
    """Returns amperes: bit 0 says coarse (250 times), the rest is thousandths of a milliampere; NaN for missing."""
    current_a = (raw & ~1).astype(np.float64) * 1e-6
    current_a[(raw & 1) == 1] *= _COARSE
    current_a[raw == _CURRENT_MISSING] = np.nan
    return current_a
