"""JLS files written and read by tests; a file is the same after it was read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from joulemap.formats.base import ReadOptions
from joulemap.formats.joulescope.jls import JlsReader
from joulemap.records.recording import Recording


def read(path: Path, **options: object) -> Recording:
    """Reads and checks that the file is the same afterwards."""
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        return JlsReader().read(path, ReadOptions(**options))  # type: ignore[arg-type]
    finally:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def write_signals(path: Path, signals: list[tuple[str, str, np.ndarray, int, int]], *, source: int = 1) -> None:
    """Writes float signals (name, unit, values, rate, source)."""
    import pyjls

    writer = pyjls.Writer(str(path))
    for number in sorted({entry[4] for entry in signals} | {source}):
        writer.source_def(
            source_id=number, name="JS220", vendor="j", model="m", version="1", serial_number=f"00{number}"
        )
    for number, (name, units, _, rate_hz, owner) in enumerate(signals, 1):
        writer.signal_def(
            signal_id=number, source_id=owner, signal_type=pyjls.SignalType.FSR, data_type=pyjls.DataType.F32,
            sample_rate=rate_hz, samples_per_data=1000, sample_decimate_factor=10, entries_per_summary=100,
            summary_decimate_factor=10, name=name, units=units,
        )  # fmt: skip
    for at in range(0, max(entry[2].size for entry in signals), 500):  # side by side, as an instrument records
        for number, (_, _, values, _, _) in enumerate(signals, 1):
            if at < values.size:
                writer.fsr(number, at, values[at : at + 500].astype(np.float32))
    writer.close()


def write_jls(
    path: Path, samples: int = 400, *, rate_hz: int = 1000, utc: bool = True, gpi: bool = True, far_utc: bool = False
) -> bytes:
    """Writes a closed JLS v2 file with pyjls: current with a lost run, voltage, one digital input, marks.

    Returns the bytes that were in the file before it was closed, as a killed writer leaves them.
    """
    import pyjls

    writer = pyjls.Writer(str(path))
    writer.source_def(source_id=1, name="demo", vendor="acme", model="m1", version="1", serial_number="0001")
    shape = {
        "samples_per_data": 128, "sample_decimate_factor": 16, "entries_per_summary": 32, "summary_decimate_factor": 10,
    }  # fmt: skip
    kinds = [(1, "current", "A", pyjls.DataType.F32), (2, "voltage", "V", pyjls.DataType.F32)]
    kinds += [(3, "gpi[0]", "", pyjls.DataType.U1)] if gpi else []
    for number, name, units, data_type in kinds:
        writer.signal_def(
            signal_id=number, source_id=1, signal_type=pyjls.SignalType.FSR, data_type=data_type, sample_rate=rate_hz,
            name=name, units=units, **shape,
        )  # fmt: skip
    current = (0.01 + 1e-5 * np.arange(samples)).astype(np.float32)
    current[samples // 2 : samples // 2 + samples // 20] = np.nan
    writer.fsr(1, 0, current)
    writer.fsr(2, 0, np.full(samples, 3.3, np.float32))
    if gpi:
        writer.fsr(3, 0, np.packbits((np.arange(samples) // 50 % 2).astype(np.uint8), bitorder="little"))
    if utc:
        for sample in (0, samples // 2, samples - 1):
            for number, *_ in kinds:
                writer.utc(number, sample, pyjls.utc_to_jls(1767323045.0 + sample / rate_hz))
    if far_utc:
        for number, *_ in kinds:
            writer.utc(number, 1 << 55, pyjls.utc_to_jls(1767323045.0))
    writer.annotation(1, samples // 4, 0.01, pyjls.AnnotationType.TEXT, 0, "note")
    writer.flush()
    unclosed = path.read_bytes()
    writer.close()
    return unclosed
