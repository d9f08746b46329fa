"""Where the shared recordings lie, and small recordings of every format written by the tests themselves."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from jls_files import write_jls
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader
from joulemap.records.recording import Recording
from live_captures import COUNTER, POWER, SIGNAL, capture_bytes, clocks_at

__all__ = [
    "READ_OPTIONS",
    "SEEDS",
    "SHARED",
    "VALUE_FIELDS",
    "read_bytes",
    "shared_file",
    "slugs",
    "write_jls_v1",
    "write_ppk2",
    "write_pt4",
]

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared_file(*parts: str) -> Path:
    """Returns a shared recording; skips the test where the shared data are not at hand."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared recording {'/'.join(parts)} is not here")
    return path


def read_bytes(name: str, body: bytes | str, folder: Path, **options: object) -> Recording:
    """Returns what a reader makes of a file of these bytes."""
    path = folder / "recording.dat"
    path.write_bytes(body.encode() if isinstance(body, str) else body)
    return reader(name).read(path, ReadOptions(**options))  # type: ignore[arg-type]


def slugs(recording: Recording) -> set[str]:
    """Returns the slugs of a recording's findings."""
    return {finding.slug for finding in recording.findings}


def write_ppk2(
    currents_ua: list[float], bits: list[int] | None = None, rate: object = 100_000, start: object = 1767323045123
) -> bytes:
    """Returns a .ppk2 archive; bits are the raw words of pairs (default: all low)."""
    words = bits if bits is not None else [0x5555] * len(currents_ua)
    raw = b"".join(struct.pack("<f", ua) + struct.pack(">H", word) for ua, word in zip(currents_ua, words, strict=True))
    meta: dict[str, object] = {"samplesPerSecond": rate}
    if start is not None:
        meta["startSystemTime"] = start
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.raw", raw)
        archive.writestr("metadata.json", json.dumps({"metadata": meta, "formatVersion": 2}))
        archive.writestr("minimap.raw", "{}")
    return body.getvalue()


def write_pt4(samples: list[tuple[int, int]], mask: int = 0x1000, rate: int = 5000, stated: int | None = None) -> bytes:
    """Returns a .pt4 file of main current and voltage words."""
    head = bytearray(1024)
    struct.pack_into("<I", head, 0, 212)
    struct.pack_into("<I", head, 68, rate)
    struct.pack_into("<8H", head, 144, 272, 60, 1024, 4, 0, 0, 0, mask)
    struct.pack_into("<QQ", head, 160, len(samples) if stated is None else stated, 0)
    return bytes(head) + b"".join(struct.pack("<HH", current, volts) for current, volts in samples)


def _tlv(tag: bytes, body: bytes, flags: int = 0) -> bytes:
    whole = tag + bytes([flags]) + struct.pack("<I", len(body)) + body
    whole += b"\0" * (-(len(whole) + 4) % 8)
    return whole + struct.pack("<I", crc32(whole))


def write_jls_v1(
    raw: bytes,
    data_format: object = "raw",
    calibration: dict[str, object] | None = None,
    *,
    v_range: object = 0,
    closed: bool = True,
) -> bytes:
    """Returns a JLS v1 file with one block of data."""
    magic = bytes.fromhex("d3746167666d74200d0a200a20201a1c")
    config = {
        "type": "config", "data_recorder_format_version": "2", "sampling_frequency": 1000.0, "data_format": data_format,
    }  # fmt: skip
    body = _tlv(b"MJS", json.dumps(config).encode())
    if calibration is not None:
        inner = magic + bytes(16) + _tlv(b"HDR", bytes(48)) + _tlv(b"AJS", json.dumps(calibration).encode())
        body += _tlv(b"SUB", b"calibration".ljust(128, b"\0") + inner)
    body += _tlv(b"CLS", bytes(12) + json.dumps({"v_range": v_range, "sample_id": 0}).encode()) + _tlv(b"ABN", raw)
    body += _tlv(b"CLE", b"") + (_tlv(b"END", b"") if closed else b"")
    head = magic + struct.pack("<Q", 32 + len(body)) + b"\0\0\0\1"
    return head + struct.pack("<I", crc32(head)) + body


def _jls_bytes() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.jls"
        write_jls(path, 240)
        return path.read_bytes()


def _spl() -> bytes:
    rows = [
        f"Time,02-17-2022 13:17:{10 + k:02d}.{k:03d},Watts,{20 + k / 8:.6f},Volts,120.640000,Amps,0.332000,PF,0.419300,"
        f"Mark,run_testing"
        for k in range(16)
    ]
    return "\n".join(rows).encode() + b"\n"


def _energyrunner() -> bytes:
    return b"\xf1" + struct.pack("<f", 1000.0) + np.linspace(20, 30, 400, dtype="<f4").tobytes()


def _energyrunner_json() -> bytes:
    trials = [
        {
            "file": f"t{n}.bin",
            "infer": {"iterations": 10},
            "power": {
                "samples": [1e-5 + 1e-8 * (k + n) for k in range(60)],
                "timestamps": [["00", 10], ["01", 50]],
                "voltage": 1.8,
            },
            "mode": "e",
        }
        for n in range(3)
    ]
    return json.dumps(trials).encode()


def _lines(header: str, rows: list[str], end: str = "\n") -> bytes:
    return end.join([header, *rows, ""]).encode()


def _sigrok() -> bytes:
    body = io.BytesIO()
    meta = (
        "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes=2\nsamplerate=10 kHz\n"
        "total analog=1\nprobe1=D0\nprobe2=D1\nanalog3=A0\nunitsize=1\n"
    )
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version", "2")
        archive.writestr("metadata", meta)
        archive.writestr("logic-1-1", bytes(k // 8 % 4 for k in range(25)))
        archive.writestr("analog-1-3-1", np.linspace(0, 1, 64, dtype="<f4").tobytes())
    return body.getvalue()


def _table() -> object:
    import pyarrow as pa

    n = 200
    power = 1.0 + np.arange(n) / 64
    return pa.table({"t": np.arange(n) * 1e-3, "p": power, "s": [f"a{k % 7}" for k in range(n)]})


def _parquet() -> bytes:
    import pyarrow.parquet as pq

    body = io.BytesIO()
    pq.write_table(_table(), body)
    return body.getvalue()


def _arrow() -> bytes:
    from pyarrow import ipc

    body = io.BytesIO()
    table = _table()
    with ipc.new_file(body, table.schema) as writer:  # type: ignore[attr-defined]
        writer.write_table(table)
    return body.getvalue()


def _saleae() -> bytes:
    volts = np.linspace(0, 1, 200, dtype="<f4")
    return b"<SALEAE>" + struct.pack("<iidQQQ", 0, 1, -0.001, 1_000_000, 5, volts.size) + volts.tobytes()


def _saleae_digital() -> bytes:
    times = np.arange(60, dtype="<f8") * 1e-3
    return b"<SALEAE>" + struct.pack("<iiIddQ", 0, 0, 0, -0.001, 0.1, times.size) + times.tobytes()


def _lpm01a_binary() -> bytes:
    packets = []
    for second in range(4):
        packets.append(b"\xf0\xf3" + struct.pack(">I", second * 1000) + b"\x01\xff\xff")
        packets.append(b"".join(struct.pack(">H", 0x5200 + second * 16 + k) for k in range(60)))
    return b"".join(packets) + b"\xf0\xf4\xff\xff"


def _lpm01a() -> bytes:
    rows = ["PowerShield > ack start", ""]
    for second in range(4):
        rows.append(f"TimeStamp: {second:03d}s 000ms, buff 02%")
        rows += [f"{6400 + 10 * second + k}-07" for k in range(16)]
    return "\r\n".join([*rows, "PowerShield > Acquisition completed", ""]).encode()


def _otii_dialogue() -> bytes:
    rows = ['{"type": "information", "info": "connected", "data": {"server": "otii-server"}}']
    for number, (channel, index) in enumerate((c, i) for i in (0, 20) for c in ("mc", "mv")):
        step_s = 0.001 if channel == "mc" else 0.002
        values = [0.0125 + (index + k) / 4096 if channel == "mc" else 3.3 for k in range(20)]
        head = {"cmd": "recording_get_channel_data", "trans_id": str(number)}
        place = {"device_id": "Arc1", "recording_id": 3, "channel": channel, "index": index, "count": 20}
        data = {"data_type": "analog", "timestamp": 3.25, "interval": step_s, "values": values}
        rows += [json.dumps({"type": "request", **head, "data": place})]
        rows += [json.dumps({"type": "response", **head, "data": data})]
    return "\r\n".join([*rows, ""]).encode()


def _jls_v1() -> bytes:
    pair = np.array([((k % 4000) << 2, (3300 << 2) | (2 if k % 2 else 0)) for k in range(400)], "<u2")
    gains = {"offset": [0.0] * 7, "gain": [1e-6] * 7}
    return write_jls_v1(
        pair.tobytes(), calibration={"current": gains, "voltage": {"offset": [0, 0], "gain": [1e-3, 1e-3]}}
    )


def _capture() -> bytes:
    raw = np.stack([np.arange(96.0) * 2e6, 20.0 + np.arange(96.0) % 5, 45_000.0 + np.arange(96.0)], axis=1)
    return capture_bytes(raw, COUNTER, POWER, SIGNAL, clocks=clocks_at([10**9, 5 * 10**9]))


SEEDS: dict[str, Callable[[], bytes]] = {
    "joulemap-capture": _capture,
    "mlperf-inference": _spl,
    "energyrunner": _energyrunner,
    "energyrunner-json": _energyrunner_json,
    "jls": _jls_bytes,
    "jls-v1": _jls_v1,
    "joulescope-csv": lambda: _lines(
        "#time,current,voltage,power,charge,energy",
        [
            f"{k * 0.5},0.01,3.3,{0.033 + k / 4096:.9g},{k * 0.005:g},{k * 0.0165 + k * (k + 1) / 16384:g}"
            for k in range(24)
        ],
    ),
    "ppk2": lambda: write_ppk2(
        [100.0 + k for k in range(300)], [0x5555 if k // 20 % 2 else 0x5556 for k in range(300)]
    ),
    "ppk2-csv": lambda: _lines(
        "Timestamp(ms),Current(uA),D0-D7", [f"{k / 100:g},{100 + k}.000,0000000{k // 10 % 2}" for k in range(120)]
    ),
    "otii-csv": lambda: _lines(
        '"Timestamp","Value"', [f"{k * 0.00025:.6f},{0.01 + k / 65536:.9g}" for k in range(200)]
    ),
    "otii-tcp": _otii_dialogue,
    "powertool-csv": lambda: _lines(
        "Time (s),Main Avg Current (mA),Main Avg Power (mW),Main Avg Voltage (V)",
        [f"{k * 0.0002:.4f},12.34,{45 + k / 8:.3f},3.70" for k in range(120)],
    ),
    "pymonsoon-csv": lambda: _lines(
        "Time(ms),Main(mA),Main Voltage(V),", [f"{k // 8 * 0.0016:.4f},{10 + k / 8},3.7," for k in range(64)]
    ),
    "pt4": lambda: write_pt4([(12340 + 2 * k, 0x73A0) for k in range(400)]),
    "lpm01a": _lpm01a,
    "lpm01a-binary": _lpm01a_binary,
    "energytrace": lambda: _lines(
        "#MSP430_Initialize(portNumber=TIUSB) returns 0",
        [f"{1000 + 214 * k} {3000 + k} 3290 {4700 + 2456 * k}" for k in range(150)],
    ),
    "energy-probe": lambda: b"".join(struct.pack("<3I", 1200 + k, 3300, (1200 + k) * 10 // 33) for k in range(300)),
    "powersensor3": lambda: _lines(
        "marker time dt_micro device_timestamp current0 voltage0 power0 power_total",
        [
            f"{'A' if k == 7 else 'S'} {0.000051 * (k + 1):.6f} 51 {k} 1.02 12.01 {12 + k / 16:.4f} 12.25"
            for k in range(100)
        ],
    ),
    "saleae": _saleae,
    "saleae-csv": lambda: _lines(
        "Time [s],Channel 0,Channel 1", [f"{-0.001 + k * 1e-6:.9f},{k / 64:.6f},3.300" for k in range(150)]
    ),
    "sigrok": _sigrok,
    "sigrok-csv": lambda: _lines(
        "; CSV generated by libsigrok 0.5.2\n; Channels (2/2): D0, A0\n; Samplerate: 10 kHz\nlogic,V DC",
        [f"{k // 8 % 2},{k / 64:.6g}" for k in range(80)],
    ),
    "scope-csv": lambda: _lines(
        "x-axis,1,2",
        ["second,Volt,Ampere", *[f"{-1e-3 + k * 1e-5:.4E},+3.300E+00,{0.01 + k / 8192:.6E}" for k in range(48)]],
    ),
    "csv": lambda: _lines("t (ms),p (mW)", [f"{k},{10 + k / 8}" for k in range(60)]),
    "parquet": _parquet,
    "arrow": _arrow,
}
"""A small, whole recording of each format, at most 8 kB."""

READ_OPTIONS: dict[str, dict[str, object]] = {
    "ppk2": {"voltage_v": 3.3},
    "ppk2-csv": {"voltage_v": 3.3},
    "otii-csv": {"voltage_v": 3.3, "units": {"value": "A"}},
    "lpm01a": {"voltage_v": 3.3, "rate_hz": 100.0},
    "lpm01a-binary": {"voltage_v": 3.3, "rate_hz": 100.0},
    "saleae": {"voltage_v": 3.3, "columns": {"current": "channel"}, "units": {"current": "100 mA/V"}},
    "saleae-csv": {"voltage_v": 3.3, "columns": {"current": "Channel 0"}, "units": {"current": "100 mA/V"}},
    "sigrok": {"voltage_v": 3.3, "columns": {"current": "A0"}, "units": {"current": "100 mA/V"}},
    "sigrok-csv": {"voltage_v": 3.3, "columns": {"current": "A0"}, "units": {"current": "100 mA/V"}},
    "scope-csv": {"columns": {"current": "2", "voltage": "1"}},
    "csv": {"columns": {"time": "t (ms)", "power": "p (mW)"}},
    "parquet": {"columns": {"time": "t", "power": "p"}, "units": {"time": "s", "power": "W"}},
    "arrow": {"columns": {"time": "t", "power": "p"}, "units": {"time": "s", "power": "W"}},
}
"""What must be said to read a seed."""

VALUE_FIELDS: dict[str, str | tuple[int, int, int]] = {
    "joulemap-capture": (len(_capture()) - 22 - 48 * 8, 8, 48),  # the last rows, before the block that ends it
    "mlperf-inference": r"Watts,(\d+\.\d+),Volts",
    "energyrunner": (5, 4, 400),
    "energyrunner-json": r"(1\.0\d+e-05)",
    "joulescope-csv": r"^[\d.]+,0\.01,3\.3,([\d.]+),",
    "ppk2-csv": r"^[\d.]+,(\d+\.000),",
    "otii-csv": r"^[\d.]+,([\d.]+)$",
    "otii-tcp": r"0\.0(\d{4,})[,\]]",
    "powertool-csv": r"^[\d.]+,12\.34,([\d.]+),",
    "pymonsoon-csv": r"^[\d.]+,([\d.]+),3\.7,",
    "pt4": (1024, 4, 400),
    "lpm01a": r"^(\d{4})-07",
    "lpm01a-binary": (10, 2, 59),
    "energytrace": r"^\d+ \d+ 3290 (\d+)$",
    "energy-probe": (0, 12, 300),
    "powersensor3": r"12\.01 ([\d.]+) 12\.25",
    "saleae": (48, 4, 200),
    "saleae-csv": r"^-?[\d.]+,([\d.]+),3\.300",
    "sigrok-csv": r"^[01],([\d.]+)$",
    "scope-csv": r"\+3\.300E\+00,([\d.]+E[+-]\d+)",
    "csv": r"^\d+,([\d.]+)$",
}
"""Where the values of a seed stand: a pattern of the text, or (offset, stride, count) of a little-endian field."""
