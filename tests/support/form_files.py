"""The other forms that a format comes in, as small recordings: folders, older versions, text beside binary."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from jls_files import write_jls
from recording_files import SEEDS, write_jls_v1
from text_lines import join_lines
from timeline_files import TIMELINE_SEEDS
from wire_fields import varint, wire

__all__ = ["FOLDERS", "FORMS"]


def _mlperf_run() -> dict[str, bytes]:
    values = {
        "power_begin": "02-17-2022 13:17:12.000", "power_end": "02-17-2022 13:17:40.000",
        "effective_scenario": "SingleStream", "result_query_count": 79036, "test_datetime": "2022-02-17T05:17:10Z",
    }  # fmt: skip
    rows = [f":::MLLOG {json.dumps({'key': key, 'value': value, 'time_ms': 1.0})}" for key, value in values.items()]
    hosts = {}
    for host, zone in (("client", 28800), ("server", 0)):
        moments = [[1645103830.5 + 10 * k + zone / 1e6, 100.5 + 10 * k] for k in range(4)]
        hosts[f"power/{host}.json"] = json.dumps(
            {"version": "1.0", "timezone": zone, "phases": {"ranging": moments, "testing": moments}}
        ).encode()
    return {"run_1/spl.txt": SEEDS["mlperf-inference"](), "run_1/mlperf_log_detail.txt": join_lines("", rows), **hosts}


def _energyrunner_session() -> dict[str, bytes]:
    log = [
        "00037.091 session: m-session-start-id[20230517160004]",
        "00037.595 parser: m-bm-cfg-name[ulp-ml]-key[iterInfer]-val[20]",
    ]  # as its tool writes it
    return {
        "trace1-energy.bin": SEEDS["energyrunner"](),
        "trace1-timestamps.json": json.dumps([0.015, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]).encode(),
        "log.txt": join_lines("", log),
    }


def _otii_folder() -> dict[str, bytes]:
    volts = [f"{k * 0.001:.6f},3.{3000 + k}" for k in range(20)]
    return {
        "Main current - Ace.csv": SEEDS["otii-csv"](),
        "Main voltage - Ace.csv": join_lines('"Timestamp","Value"', volts),
    }


def _otii3_project() -> dict[str, bytes]:
    def measured(name: str, kind: str, rate: int) -> dict[str, Any]:
        source = {"type": "samples", "name": name, "data_type": kind, "sample_rate": rate, "device": "d1"}
        return {"measurement": {"id": f"m-{name}", "source": source}, "data": {"id": f"blob-{name}"}, "offset": 0}

    document = {
        "name": "demo",
        "devices": [{"id": "d1", "type": "Ace", "settings": {"name": "Ace"}}],
        "recordings": [
            {
                "id": "r1", "start_time": 1767323045123, "offset": 0,
                "measurements": [measured("mc", "current", 4000), measured("mv", "voltage", 1000)],
            }
        ],
    }  # fmt: skip
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("PRAGMA page_size = 512")
        base.execute("CREATE TABLE value(object_id TEXT, name TEXT, data TEXT)")
        base.execute("INSERT INTO value VALUES ('r1', 'name', 'first')")
        base.commit()
        attributes = base.serialize()
    return {
        "demo.otii3": b"{}",
        "data/meta/project_format": b"17",
        "data/meta/saved_version": b"v1",
        "data/versions/v1/data/project.json": json.dumps(document).encode(),
        "data/versions/v1/data/attributes.db": attributes,
        "data/data/project/blob-mc/samples.dat": np.linspace(0.01, 0.02, 240, dtype="<f4").tobytes(),
        "data/data/project/blob-mv/samples.dat": np.full(60, 3.3, "<f4").tobytes(),
    }


FOLDERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "mlperf-inference": _mlperf_run,
    "energyrunner": _energyrunner_session,
    "otii-csv": _otii_folder,
    "otii3": _otii3_project,
}
"""Recordings that are a folder of files, by relative path."""


def _arrow_stream() -> bytes:
    import pyarrow as pa
    from pyarrow import ipc

    table = ipc.open_file(pa.BufferReader(SEEDS["arrow"]())).read_all()
    out = io.BytesIO()
    with ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _unclosed_jls() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.jls"
        return write_jls(path, 240, gpi=False)


def _float_blocks() -> bytes:
    count = 200
    arrays = {0x01: np.linspace(0.1, 0.2, count, dtype="<f4"), 0x11: np.full(count, 3.3, "<f4")}
    heads = b"".join(struct.pack("<2I", 0x02 | key << 8, 4 * count) for key in arrays)
    block = b"ARRY" + bytes(4) + struct.pack("<2I", 16 + len(heads), len(arrays) << 24) + heads
    return write_jls_v1(block + b"".join(array.tobytes() for array in arrays.values()), "float32_v2")


def _text_packets() -> bytes:
    rows = []
    for k in range(20):
        rows += [
            "packet {", f"  timestamp: {10**10 + k * 10**9}", "  power_rails {", "    energy_data {", "      index: 0",
            f"      timestamp_ms: {10_000 + 1000 * k}", f"      energy: {10**9 + 375_000 * k}", "    }", "  }", "}",
        ]  # fmt: skip
    head = 'packet {\n  power_rails {\n    rail_descriptor {\n      index: 0\n      rail_name: "VDD"\n    }\n  }\n}'
    return join_lines(head, rows)


def _perf_json() -> list[str]:
    return [
        f'{{"interval" : {k}.100171493, "counter-value" : "{12 + k}.58", "unit" : "Joules", "event" : '
        '"power/energy-pkg/", "event-runtime" : 589154, "pcnt-running" : 100.00}'
        for k in range(30)
    ]


def _otlp_rows() -> list[str]:
    return [
        json.dumps(
            {
                "name": f"step {k}",
                "context": {"trace_id": "0xa8", "span_id": f"0x{k + 1:x}", "trace_state": "[]"},
                "kind": "SpanKind.INTERNAL",
                "parent_id": None,
                "start_time": f"2026-11-29T15:38:{k:02d}.719481Z",
                "end_time": f"2026-11-29T15:38:{k:02d}.729661Z",
                "attributes": {"index": k},
                "events": [],
            }
        )
        for k in range(20)
    ]


def _otlp_message() -> bytes:
    def stamp(number: int, time_ns: int) -> bytes:
        return varint(number << 3 | 1) + struct.pack("<Q", time_ns)

    start_ns = 17 * 10**17
    spans = b"".join(
        wire(
            2,
            wire(1, bytes(range(16))) + wire(2, bytes(8)) + wire(5, f"step {k}") + wire(6, 1)
            + stamp(7, start_ns + 1000 * k) + stamp(8, start_ns + 1000 * k + 900)
            + wire(11, stamp(1, start_ns + 1000 * k + 5) + wire(2, "begun")),
        )
        for k in range(20)
    )  # fmt: skip
    resource = wire(1, wire(1, wire(1, "service.name") + wire(2, wire(1, "bench"))))
    return wire(1, resource + wire(2, spans))


def _openvino_json() -> bytes:
    nodes = [
        {
            "name": f"conv{k}", "node_type": "Convolution", "status": "Status.EXECUTED", "real_time": f"0.{620 + k}",
            "cpu_time": "0.620", "exec_type": "jit",
        }
        for k in range(20)
    ]  # fmt: skip
    return json.dumps({"report_type": "detailed", "detailed_performance": [{"nodes": nodes}]}).encode()


def _trtexec_times() -> bytes:
    rows = [
        {
            "startEnqMs": k + 0.01, "endEnqMs": k + 0.05, "startH2dMs": k + 0.02, "endH2dMs": k + 0.03,
            "startComputeMs": k + 0.03, "endComputeMs": k + 0.93, "startD2hMs": k + 0.93, "endD2hMs": k + 0.95,
            "h2dMs": 0.01, "computeMs": 0.9, "d2hMs": 0.02, "latencyMs": 0.93,
        }
        for k in range(20)
    ]  # fmt: skip
    return json.dumps(rows).encode()


FORMS: dict[str, tuple[Callable[[], bytes], ...]] = {
    "jls": (_unclosed_jls,),
    "jls-v1": (_float_blocks,),
    "arrow": (_arrow_stream,),
    "perfetto": (_text_packets,),
    "openvino": (_openvino_json,),
    "trtexec": (_trtexec_times,),
    "torch-profiler": (lambda: gzip.compress(TIMELINE_SEEDS["torch-profiler"](), 1, mtime=0),),
    "chrome-trace": (
        lambda: join_lines(
            "[",
            [
                f'{{"ph":"{"E" if k % 2 else "B"}","pid":1,"tid":1,"ts":"{10 * k}.5","name":"op{k // 2}"}},'
                for k in range(16)
            ],
        ),
    ),
    "joulescope-csv": (
        lambda: join_lines(
            "# time,JS220-000001.current,JS220-000001.voltage",
            [f"{k * 1e-6:.18e},{0.01 + k * 1e-5:.18e},{3.3:.18e}" for k in range(24)],
        ),
    ),
    "ppk2-csv": (
        lambda: join_lines(
            "Timestamp(ms),Current(uA),Bits", [f"{k / 100:g},{100 + k}.000,0000000{k % 2}" for k in range(32)]
        ),
        lambda: join_lines(
            "Timestamp(ms),Current(uA),D0,D1", [f"{k / 100:g},{100 + k}.000,{k % 2},X" for k in range(32)]
        ),
    ),
    "saleae": (
        lambda: (
            b"<SALEAE>"
            + struct.pack("<iiIddQ", 0, 0, 0, -0.001, 0.1, 60)
            + (np.arange(60, dtype="<f8") * 1e-3).tobytes()
        ),
    ),
    "saleae-csv": (lambda: join_lines("Time [s],Channel 0", [f"{k * 1e-3:.9f},{k % 2}" for k in range(80)]),),
    "sigrok-csv": (
        lambda: join_lines(
            "; CSV generated by libsigrok 0.5.2\n; Channels (2/2): D0, A0\n; Samplerate: 10 kHz\nA0: 0.1 V DC\n"
            "microseconds,logic,V DC",
            [f"{100 * k + 100},{k // 8 % 2},{k / 64:.6g}" for k in range(99)],
        ),
    ),
    "scope-csv": (
        lambda: join_lines(
            "X,1,2,Start,Increment,\nSequence,Volt,Ampere,-6e-06,1e-06",
            [f"{k},3.30e+00,{0.01 + k / 8192:.6E}," for k in range(24)],
        ),
        lambda: join_lines("Time,1,2\n(ms),(V),(mA)\n", [f"{-0.1 + k / 1000:.8f},3.3,{12 + k / 8}" for k in range(24)]),
        lambda: join_lines(
            "Record Length,Analog:60,\nSample Interval,Analog:1E-06,\nVertical Units,1:V,2:A,\nSource,1,2,\nSecond,Value,Value",  # noqa: E501
            [f"{k * 1e-6:.4E},+3.3E+00,{0.01 + k / 8192:.6E}" for k in range(24)],
        ),
    ),
    "csv": (lambda: join_lines("t (ms);p (mW)", [f"{k};{10 + k},5" for k in range(39)], "\r\n"),),
    "powertool-csv": (
        lambda: join_lines(
            "Time (s),Main Avg Current (A),Main Avg Power (W),Main Avg Voltage (V),USB Avg Current (mA)",
            [f"{k * 0.0002:.4f},0.0123,{0.045 + k / 8192:.6f},3.70," for k in range(24)],
        ),
    ),
    "pymonsoon-csv": (
        lambda: join_lines(
            "Time(ms),Main(mA),Main Voltage(V),",
            [f"np.float64({k // 8 * 0.0016:.4f}),np.float64({10 + k / 8}),np.float64(3.7)," for k in range(80)],
        ),
    ),
    "rocm-smi": (
        lambda: json.dumps(
            {
                **{
                    f"card{k}": {"Device ID": "0x738c", "Average Graphics Package Power (W)": f"{30 + k}.0"}
                    for k in range(8)
                },
                "system": {"Driver version": "6.0.5"},
            }
        ).encode(),
    ),
    "tegrastats": (
        lambda: join_lines(
            "",
            [
                f"RAM 2462/3964MB CPU [5%@729,off] GR3D_FREQ 4%@76 PLL@40C POM_5V_IN {2100 + k}/2132 NC 3/3 NC 4/4"
                for k in range(16)
            ],
        ),
    ),
    "perf-stat": (
        lambda: join_lines("# started on Sun Nov 29 15:35:32 2026\n", _perf_json()),
        lambda: join_lines(
            "# started on Sun Nov 29 15:35:33 2026\n\n#           time             counts unit events",
            [f"     {k}.100159556              12,{100 + k}.58 Joules power/energy-pkg/" for k in range(16)],
        ),
        lambda: join_lines(
            "\n Performance counter stats for 'system wide':\n",
            [f"             {k},990.{k:02d} Joules power/energy-cores{k}/     ( +- 1.24% )" for k in range(1, 30)]
            + ["", "       1.001057 seconds time elapsed"],
        ),
    ),
    "carbontracker": (
        lambda: join_lines(
            "2026-11-29 15:39:40 - CarbonTracker: The following components were found: GPU with device(s) Y.",
            [
                "2026-11-29 15:39:41 - CarbonTracker: ",
                "Predicted consumption for 3 epoch(s):",
                "\tTime:\t0:00:04",
                "\tEnergy:\t0.000367419570 kWh",
                "\tCO2eq:\t0.163501708716 g",
                "2026-11-29 15:39:43 - CarbonTracker: ",
                "Actual consumption for 3 epoch(s):",
                "\tTime:\t0:00:04",
                "\tEnergy:\t0.000367419570 kWh",
                "\tCO2eq:\t0.163501708716 g",
            ],
        ),
    ),
    "otlp": (lambda: join_lines("", _otlp_rows()), _otlp_message),
    "ftrace": (
        lambda: join_lines(
            "", [f"[000]  4352.{226160314 + k * 1000:09d}: power:cpu_idle: state={k % 2} cpu_id=0" for k in range(24)]
        ),
        lambda: join_lines(
            "# tracer: nop\n#",
            [
                f" kworker/0:1-7       [000] d..1.   100.{k:06d}: cpu_frequency: state={1000000 + k} cpu_id=0"
                for k in range(24)
            ],
        ),
    ),
    "markers": (
        lambda: join_lines(
            "",
            [json.dumps({"start_us": k * 10.5, "end_us": k * 10.5 + 8.25, "name": f"op{k % 5}"}) for k in range(24)],
        ),
    ),
    "codecarbon": (
        lambda: join_lines(
            "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,"
            "cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name",
            [
                f"2026-01-02T03:{k:02d}:30,p,r{k},e,20.5,1e-5,1e-6,42.5,{90 + k}.5,5.9,0.0001,0.00005,0.00002,0.00017,Österreich"  # noqa: E501  # as its tool writes it
                for k in range(30)
            ],
        ),
    ),
    "triton-trace": (
        lambda: json.dumps(
            [
                {
                    "id": k,
                    "model_name": "m",
                    "model_version": 1,
                    "timestamps": [
                        {"name": name, "ns": 10**9 + 1000 * k + n}
                        for n, name in enumerate(
                            ("request start", "queue start", "compute start", "compute end", "request end")
                        )
                    ],
                }
                for k in range(12)
            ]
        ).encode(),
    ),
}
"""Other forms of single files; the options of the main form apply."""
