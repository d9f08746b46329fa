"""Small recordings of the formats of phones, timelines and profiles, written by the tests themselves."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from text_lines import join_lines
from wire_fields import wire

__all__ = ["TIMELINE_OPTIONS", "TIMELINE_SEEDS", "TIMELINE_VALUES", "nsight_database"]


def _perfetto() -> bytes:
    def packet(*fields: bytes, sequence: int = 1) -> bytes:
        return wire(1, b"".join(fields) + wire(10, sequence))

    clocks = b"".join(wire(1, wire(1, n) + wire(2, t)) for n, t in ((6, 10**10), (1, 17 * 10**17), (3, 9 * 10**9)))
    out = packet(wire(8, 10**10), wire(6, clocks))
    rail = wire(1, wire(1, 0) + wire(2, "VDD_TPU") + wire(3, "TPU"))
    out += packet(wire(8, 10**10 + 1), wire(40, rail))
    for k in range(40):
        data = wire(2, wire(1, 0) + wire(2, 10_000 + 250 * k) + wire(3, 10**9 + 375_000 * k))
        out += packet(wire(8, 10**10 + 250_000_000 * k), wire(40, data))
    for k in range(12):
        begin = wire(9, 1) + wire(23, f"op {k}") + wire(11, 5)
        out += packet(wire(8, 10**10 + 10**7 * k), wire(11, begin))
        out += packet(wire(8, 10**10 + 10**7 * k + 5_000_000), wire(11, wire(9, 2) + wire(11, 5)))
    return out


def nsight_database(statements: Iterable[str]) -> bytes:
    """Returns the bytes of a SQLite database that the statements make."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        base = sqlite3.connect(path)
        base.execute("PRAGMA page_size = 512")
        for statement in statements:
            base.execute(statement)
        base.commit()
        base.close()
        return path.read_bytes()


def _nsight() -> bytes:
    columns = ("start INT", '"end" INT', "deviceId INT", "streamId INT", "correlationId INT", "shortName INT")
    kernels = ", ".join(f"({k * 1000}, {k * 1000 + 460}, 0, 7, {k}, 1)" for k in range(24))
    return nsight_database(
        (
            "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL)",
            "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'void gemm<float>(float*, int)'), (3, 'inference')",
            f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({', '.join(columns)})",
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {kernels}",
            'CREATE TABLE NVTX_EVENTS(start INT, "end" INT, eventType INT, text TEXT, globalTid INT, textId INT)',
            "INSERT INTO NVTX_EVENTS VALUES (0, 60000, 59, NULL, 2063597569, 3)",
        )
    )


def _chrome(extra: dict[str, object] | None = None, base_us: float = 0.0) -> bytes:
    events = [
        {"ph": "M", "pid": 1, "tid": 2, "ts": base_us, "name": "thread_name", "args": {"name": "worker"}},
        *(
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": f"op{k % 5}",
                "pid": 1,
                "tid": 2,
                "ts": base_us + k * 10.5,
                "dur": 8.25,
            }
            for k in range(16)
        ),
        {"ph": "C", "pid": 1, "name": "load", "ts": base_us + 1.5, "args": {"cpu": 0.5}},
    ]
    head = {**(extra or {}), "displayTimeUnit": "ms", "traceEvents": []}
    text = json.dumps(head)[:-2]
    return (text + "\n" + ",\n".join(json.dumps(event) for event in events) + "\n]}\n").encode()


def _otlp() -> bytes:
    spans = [
        {
            "traceId": "a840391e289aea79f67decbd14c17bbb",
            "spanId": f"{k:016x}",
            "name": f"step {k}",
            "kind": 1,
            "startTimeUnixNano": str(17 * 10**17 + k * 1000),
            "endTimeUnixNano": str(17 * 10**17 + k * 1000 + 900),
        }
        for k in range(20)
    ]
    resource = {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "bench"}}]}}
    return json.dumps({"resourceSpans": [{**resource, "scopeSpans": [{"spans": spans}]}]}, indent=0).encode()


def _batterystats() -> bytes:
    return join_lines(
        "9,0,i,vers,36,200,BUILDA,BUILDB",
        [
            "9,0,i,uid,10123,com.example.bench",
            "9,0,l,bt,0,600000,580000,600000,580000,1767322445000,300000,290000,3000000,2950000,3050000,0",
            "9,0,l,dc,3,4,2,1,95,10",
            "9,0,l,pws,3000,120.5,90,150",
            *[f"9,{10000 + k},l,pwi,uid,{k}.2,0,12.0,1.1" for k in range(1, 60)],
        ],
    )


def _ort() -> bytes:
    rows = [
        f'{{"cat" : "Node","pid" :7,"tid" :7,"dur" :{40 + k},"ts" :{100 * k},"ph" : "X","name" :"mm{k}_kernel_time",'
        '"args" : {"op_name" : "MatMul","provider" : "CPU"}}'
        for k in range(16)
    ]
    head = '{"cat" : "Session","pid" :7,"tid" :7,"dur" :254,"ts" :2,"ph" : "X","name" :"model_run","args" : {}}'
    return ("[\n" + ",\n".join([head, *rows]) + "\n]\n").encode()


def _triton() -> bytes:
    return (
        "[\n"
        + ",\n".join(
            f'{{"id":{k},"model_name":"m","timestamps":[{{"name":"REQUEST_START","ns":{10**15 + k * 1000}}},'
            f'{{"name":"REQUEST_END","ns":{10**15 + k * 1000 + 900}}}]}}'
            for k in range(30)
        )
        + "\n]\n"
    ).encode()


def _trtexec() -> bytes:
    return (
        '[\n  { "count" : 100 }\n'
        + "".join(
            f', {{ "name" : "conv{k} + relu", "timeMs" : 60.0, "averageMs" : 0.{600 + k}, "percentage" : 1.0 }}\n'
            for k in range(24)
        )
        + "]\n"
    ).encode()


TIMELINE_SEEDS: dict[str, Callable[[], bytes]] = {
    "perfetto": _perfetto,
    "batterystats": _batterystats,
    "chrome-trace": _chrome,
    "torch-profiler": lambda: _chrome(
        {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1735632360000000000}, 4203669603018.75
    ),
    "onnxruntime-profile": _ort,
    "nsight-csv": lambda: join_lines(
        "Start (ns),Duration (ns),CorrId,Device,Strm,Name",
        [f"{4113000000 + 50_000 * k},46000,{k},NVIDIA A100 (0),7,void gemm<float, 4>(float*)" for k in range(24)],
    ),
    "nsight-sqlite": _nsight,
    "triton-trace": _triton,
    "otlp": _otlp,
    "ftrace": lambda: join_lines(
        "# tracer: nop\n#",
        [
            line
            for k in range(30)
            for line in (
                f"          <idle>-0       [000] d..1.   100.{k:03d}100: cpu_idle: state=1 cpu_id=0",
                f"          <idle>-0       [000] d..1.   100.{k:03d}900: cpu_idle: state=4294967295 cpu_id=0",
            )
        ],
    ),
    "markers": lambda: join_lines(
        "start_us,end_us,name,track", [f"{k * 10}.5,{k * 10 + 8}.25,op{k % 5},worker" for k in range(39)]
    ),
    "tflite-profile": lambda: join_lines(
        "============================== Run Order ==============================\n"
        "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name",
        [f"CONV_2D, {k}.001, 0.512, 0.{401 + k}, 1.0%, 80.2%, 0, 1, [model/conv]:{k}" for k in range(24)],
    ),
    "litert-benchmark": lambda: json.dumps(
        {
            "model": "m.tflite",
            "accelerators": ["CPU"],
            "latency": {"warmup_avg_ms": 0.52, "avg_ms": 1.25, "min_ms": 1.01, "p95_ms": 2.02, "num_runs": 50},
        },
        indent=1,
    ).encode(),
    "trtexec": _trtexec,
    "openvino": lambda: join_lines(
        "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)",
        [*[f"conv{k};Status.EXECUTED;Convolution;jit;0.{620 + k};0.620" for k in range(24)], "Total;;;;40.000;40.000"],
    ),
    "executorch-inspector": lambda: join_lines(
        ",event_block_name,event_name,raw,p50 (ms),start_time",
        [
            f'{k},Execute,op{k},"[0.0713, 0.00093, 0.00033]",0.00093,"[{556703208 + k}, {557166503 + k}, 557178190]"'
            for k in range(16)
        ],
    ),
}
"""A small, whole recording of each format, at most 8 kB."""

TIMELINE_OPTIONS: dict[str, dict[str, object]] = {
    "batterystats": {"voltage_v": 3.85},
    "markers": {"units": {"time": "us"}},
}
"""What must be said to read a seed or its mutants."""

TIMELINE_VALUES: dict[str, str] = {
    "batterystats": r"pwi,uid,(\d+\.2)",
    "chrome-trace": r'"dur": ([\d.]+)',
    "torch-profiler": r'"dur": ([\d.]+)',
    "onnxruntime-profile": r'"dur" :(\d+),"ts" :\d+,"ph" : "X","name" :"mm',
    "nsight-csv": r"^\d+,(\d+),",
    "triton-trace": r'"REQUEST_END","ns":\d{12}(\d+)',
    "otlp": r'"endTimeUnixNano": "\d{15}(\d+)"',
    "ftrace": r"100\.\d{3}(9)00",
    "markers": r",(\d+)\.25,op",
    "tflite-profile": r"0\.512, (0\.\d+),",
    "litert-benchmark": r'"avg_ms": ([\d.]+)',
    "trtexec": r'"averageMs" : (0\.\d+)',
    "openvino": r"jit;(0\.\d+);",
    "executorch-inspector": r'"\[(0\.\d+)',
}
"""Where the values of a seed stand: a pattern of the text."""
