"""Small recordings of the formats of computers, boards, trackers and runtimes, written by the tests themselves."""

from __future__ import annotations

import json
import plistlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

__all__ = ["HOST_OPTIONS", "HOST_SEEDS", "HOST_VALUES", "nsight_database", "varint", "wire"]


def _lines(head: str, rows: Iterable[str], end: str = "\n") -> bytes:
    return (end.join(([head] if head else []) + list(rows)) + end).encode()


def varint(value: int) -> bytes:
    """Returns a protocol buffer's varint."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def wire(number: int, value: int | bytes | str) -> bytes:
    """Returns one field in wire form: an integer as varint, bytes and text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def _nvidia_xml() -> bytes:
    return b"".join(
        b'<?xml version="1.0" ?>\n<nvidia_smi_log>\n<timestamp>Fri Aug  4 11:44:%02d 2023</timestamp>\n'
        b'<gpu id="0">\n<uuid>GPU-1</uuid>\n<gpu_power_readings>\n<power_draw>%d.25 W</power_draw>\n'
        b"</gpu_power_readings>\n</gpu>\n</nvidia_smi_log>\n" % (k, 60 + k)
        for k in range(20)
    )


def _powermetrics_plist() -> bytes:
    start = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  # a property list has no zone
    pieces = []
    for k in range(8):
        sample = {
            "elapsed_ns": 1_000_000_000,
            "hw_model": "Mac14,2",
            "timestamp": start + timedelta(seconds=k),
            "processor": {"cpu_power": 100.5 + k, "gpu_power": 20.25, "ane_power": 0.0, "combined_power": 120.75 + k},
        }
        pieces.append(plistlib.dumps(sample))
    return b"\0".join(pieces)


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
    kernels = ", ".join(f"({k * 1000}, {k * 1000 + 460}, 0, 7, {k}, 1)" for k in range(60))
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
            for k in range(40)
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


def _scaphandre() -> bytes:
    steps = [
        json.dumps(
            {
                "host": {"consumption": 12_500_000.0 + k * 1000, "timestamp": 1767323045.123 + k},
                "consumers": [],
                "sockets": [{"id": 0, "consumption": 9_800_000.0, "timestamp": 1767323045.12 + k, "domains": []}],
            }
        )
        for k in range(25)
    ]
    return ("[" + ",\n".join(steps) + ",\n").encode()


def _turbostat() -> bytes:
    rows = []
    for k in range(20):
        rows.append("usec\tTime_Of_Day_Seconds\tCore\tCPU\tAvg_MHz\tBusy%\tCPUGFX%Pkg%pc2\tPkgWatt\tGFXWattRAMWatt")
        rows.append(f"12\t{1767323045 + k}.500000\t-\t-\t100\t5.25\t1.0\t2.0\t{9 + k}.25\t0.50\t1.25")
        rows.append("12\t1767323045.5\t0\t0\t100\t5.25\t1.0\t2.0\t9.25\t0.50\t1.25")
        rows.append("12\t1767323045.5\t0\t1\t100\t5.25")
    return _lines("", rows)


def _batterystats() -> bytes:
    return _lines(
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
        for k in range(40)
    ]
    head = '{"cat" : "Session","pid" :7,"tid" :7,"dur" :254,"ts" :2,"ph" : "X","name" :"model_run","args" : {}}'
    return ("[\n" + ",\n".join([head, *rows]) + "\n]\n").encode()


def _codecarbon() -> bytes:
    return _lines(
        "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,energy_consumed",
        [
            f"2026-01-02T03:{k:02d}:30,p,r{k},20.5,1e-5,{(100 + k) / 1e6},0.00005,0.00002,{(170 + k) / 1e6}"
            for k in range(40)
        ],
    )


def _prometheus() -> bytes:
    rows = ["# HELP node_rapl_package_joules_total x", "# TYPE node_rapl_package_joules_total counter"]
    for k in range(30):
        stamp = 1767323045000 + 1000 * k
        rows.append(
            f'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {100 + 9.5 * k} {stamp}'  # noqa: E501  # as its tool writes it
        )
        rows.append(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-x"}} {61.25 + k} {stamp}')
    return _lines("", rows)


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
            for k in range(60)
        )
        + "]\n"
    ).encode()


HOST_SEEDS: dict[str, Callable[[], bytes]] = {
    "nvidia-smi-csv": lambda: _lines(
        "timestamp, index, power.draw [W], utilization.gpu [%]",
        [f"2026/01/02 03:04:{k:02d}.125, 0, {61 + k}.25 W, {k} %" for k in range(50)],
    ),
    "nvidia-smi-xml": _nvidia_xml,
    "nvidia-dmon": lambda: _lines(
        "#Date       Time        gpu    pwr  gtemp     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      C      %",
        [f" 20260102   03:04:{k:02d}      0    {61 + k}     40     12" for k in range(50)],
    ),
    "nvidia-pmon": lambda: _lines(
        "# gpu         pid   type     sm    mem    enc    dec    command\n# Idx           #    C/G      %      %      %      %    name",  # noqa: E501  # as its tool writes it
        [f"    0       4321     C     {10 + k}     70      -      -    python3" for k in range(50)],
    ),
    "dcgmi-dmon": lambda: _lines(
        "#Entity         POWER             TOTEC                   SMCLK\nID              W                 mJ                      MHz",  # noqa: E501  # as its tool writes it
        [f"GPU 0           {61 + k}.250            {100000 + 61000 * k:<24}{210}" for k in range(40)],
    ),
    "rocm-smi": lambda: _lines("device,Average Graphics Package Power (W)", [f"card0,{140 + k}.0" for k in range(60)]),
    "amd-smi": lambda: _lines(
        "timestamp,gpu,socket_power,gfx_voltage", [f"{1767323045 + k},0,{142 + k},N/A" for k in range(60)], "\r\n"
    ),
    "nvtop": lambda: json.dumps(
        [{"device_name": f"GPU {k}", "temp": "48C", "power_draw": f"{13 + k}W", "gpu_util": "5%"} for k in range(12)],
        indent=1,
    ).encode(),
    "tegrastats": lambda: _lines(
        "",
        [
            f"01-02-2026 03:04:{k:02d} RAM 2462/7620MB (lfb 4x2MB) CPU [5%@729,off] EMC_FREQ 0%@2133 GR3D_FREQ 4%@[305,0] "  # noqa: E501  # as its tool writes it
            f"cpu@48.5C VDD_IN {5000 + k}mW/5000mW VDD_SOC 1405mW/1400mW"
            for k in range(40)
        ],
    ),
    "jtop": lambda: _lines(
        "time,uptime,CPU1,CPU2,RAM,GPU,Temp cpu,Power VDD_SOC,Power TOT,jetson_clocks,nvpmodel",
        [
            f'2026-01-02 03:04:{k:02d}.123456,"1 day, 0:00:10",12,OFF,0.41,55,48.5,1405,{6350 + k},inactive,MAXN'
            for k in range(40)
        ],
    ),
    "powermetrics-text": lambda: _lines(
        "Machine model: Mac14,2",
        [
            line
            for k in range(30)
            for line in (
                f"*** Sampled system activity (Fri Nov 10 12:37:{k:02d} 2023 +0100) (1000.51ms elapsed) ***",
                "",
                f"CPU Power: {947 + k} mW",
                "GPU Power: 153 mW",
                "Combined Power (CPU + GPU + ANE): 1100 mW",
                "GPU HW active residency:  12.50%",
            )
        ],
    ),
    "powermetrics-plist": _powermetrics_plist,
    "intel-power-gadget": lambda: _lines(
        "System Time,RDTSC,Elapsed Time (sec),Processor Power_0(Watt),Cumulative Processor Energy_0(Joules)",
        [f"12:00:{k:02d}:100,1000,   {k + 1}.000,  {10 + k}.000,  {10 * (k + 1)}.000" for k in range(50)],
    ),
    "uprof": lambda: _lines(
        "AMD uProf timechart\nProfile Start Time:,Jan-02-2026_03-04-05\nPROFILE COUNTERS\n"
        "48.,socket0-package-power,Power,W,Socket0-Average Package Power\nPROFILE RECORDS,\n"
        "RecordId,Timestamp,socket0-package-power,core0-power",
        [f"{k + 1},03:04:{k + 5:02d}:100,   {9 + k}.27,1.10" for k in range(50)],
    ),
    "etw-e3": lambda: _lines(
        "",
        [
            "Microsoft-Windows-Energy-Estimation-Engine/QueryStats/EnergyEstimate,  "
            f'{(k + 1) * 60_000_000},   System (   4), 88, 1, , , , , "bench.exe", 0, {1200 + k}, 0, 0, 0, 0, 0, 0, 0, 0, 0, '  # noqa: E501  # as its tool writes it
            "60000, 0, 1, 2, 1"
            for k in range(30)
        ],
    ),
    "srum": lambda: _lines(
        "AppId, UserId, TimeStamp, TimeInMSec, CPUEnergyConsumption, TotalEnergyConsumption",
        [
            f"\\Device\\Tools, Inc\\bench.exe, S-1-5-18, 2026-01-02:03:{k:02d}:00.0000, 60000, 1200, {2415 + k}"
            for k in range(50)
        ],
        "\r\n",
    ),
    "powertop": lambda: _lines(
        "_" * 68,
        [
            "\t\t\tP o w e r T O P",
            "",
            " *  *  *   System Information   *  *  *",
            "PowerTOP Version;2.14 ran at Sun Nov 29 15:35:35 2026",
            "CPU Information;2 AMD EPYC",
            "Target: 1 units/s;System:  118.7 wakeup/s;CPU:  94.1% usage;GPU: 0 ops/s;",
            *[f" {k}.3%; 11.5;Process;[PID {k}] demo" for k in range(60)],
        ],
    ),
    "turbostat": _turbostat,
    "perf-stat": lambda: _lines(
        "# started on Sun Nov 29 15:35:31 2026\n",
        [f"     {k + 1}.000100000,{12 + k}.74,Joules,power/energy-pkg/,1000164,100.00,," for k in range(60)],
    ),
    "energibridge": lambda: _lines(
        "Delta,Time,CORE0_ENERGY (J),CPU_USAGE_0,PACKAGE_ENERGY (J)",
        [f"200,{1767323045000 + 200 * k},{10 + 0.5 * k},5.5,{100 + 2.5 * k}" for k in range(60)],
    ),
    "codecarbon": _codecarbon,
    "powerjoular": lambda: _lines(
        "Date,CPU Utilization,Total Power,CPU Power,GPU Power",
        [f" 2026- 1- 2  3: 4:{k:2d}. 43,0.125,{18 + k}.5,{12 + k}.5,6.0" for k in range(50)],
    ),
    "scaphandre": _scaphandre,
    "alumet": lambda: _lines(
        "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;__late_attributes",
        [
            f"rapl_consumed_energy_J;2026-01-02T03:04:{k:02d}.123456789Z;{1 + k / 8};local_machine;;local_machine;;package;"  # noqa: E501  # as its tool writes it
            for k in range(50)
        ],
    ),
    "green-metrics": lambda: _lines("", [f"{1767323045000000 + 99000 * k} {118000 + k} Package_0" for k in range(99)]),
    "zeus-energy": lambda: _lines(
        "start_time,window_name,elapsed_time,gpu0_energy",
        [f"{1767323045 + k}.125,step,0.875,{61 + k}.5" for k in range(60)],
    ),
    "zeus-power": lambda: _lines("", [f"{1767323045 + k}.125,{61 + k}.5,62.5" for k in range(80)]),
    "carbontracker": lambda: _lines(
        "2026-11-29 15:39:40 - carbontracker version 2.4.7",
        [
            line
            for k in range(1, 20)
            for line in (
                f"2026-11-29 15:39:{40 + k} - Epoch {k}:",
                f"2026-11-29 15:39:{40 + k} - Duration: 0:00:01.00",
                f"2026-11-29 15:39:{40 + k} - Average power usage (W) for gpu: {200 + k}.5",
            )
        ],
    ),
    "shelly": lambda: _lines(
        "timestamp,a_total_act_energy,a_max_act_power,a_min_act_power,a_avg_voltage,a_avg_current",
        [f"{1767323040 + 60 * k},0.5{100 + k},40.2,20.1,230.1,0.172" for k in range(60)],
    ),
    "tasmota": lambda: _lines(
        "",
        [
            f'{{"Time":"2026-01-02T03:04:{k:02d}","ENERGY":{{"Total":{2.813 + k / 1000:.3f},"Power":{52 + k},"Voltage":235}}}}'  # noqa: E501  # as its tool writes it
            for k in range(50)
        ],
    ),
    "home-assistant": lambda: _lines(
        "entity_id,state,last_changed",
        [f"sensor.plug_power,{52 + k}.1,2026-01-02T03:04:{k:02d}.123Z" for k in range(55)],
    ),
    "prometheus": _prometheus,
    "redfish": lambda: json.dumps(
        {
            "@odata.type": "#Power.v1_5_0.Power",
            "PowerControl": [{"Name": "c", "PowerConsumedWatts": 429 + k} for k in range(9)],
        },
        indent=1,
    ).encode(),
    "perfetto": _perfetto,
    "batterystats": _batterystats,
    "chrome-trace": _chrome,
    "torch-profiler": lambda: _chrome(
        {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1735632360000000000}, 4203669603018.75
    ),
    "onnxruntime-profile": _ort,
    "nsight-csv": lambda: _lines(
        "Start (ns),Duration (ns),CorrId,Device,Strm,Name",
        [f"{4113000000 + 50_000 * k},46000,{k},NVIDIA A100 (0),7,void gemm<float, 4>(float*)" for k in range(60)],
    ),
    "nsight-sqlite": _nsight,
    "triton-trace": _triton,
    "otlp": _otlp,
    "ftrace": lambda: _lines(
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
    "markers": lambda: _lines(
        "start_us,end_us,name,track", [f"{k * 10}.5,{k * 10 + 8}.25,op{k % 5},worker" for k in range(99)]
    ),
    "tflite-profile": lambda: _lines(
        "============================== Run Order ==============================\n"
        "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name",
        [f"CONV_2D, {k}.001, 0.512, 0.{401 + k}, 1.0%, 80.2%, 0, 1, [model/conv]:{k}" for k in range(60)],
    ),
    "trtexec": _trtexec,
    "openvino": lambda: _lines(
        "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)",
        [*[f"conv{k};Status.EXECUTED;Convolution;jit;0.{620 + k};0.620" for k in range(60)], "Total;;;;40.000;40.000"],
    ),
    "executorch-inspector": lambda: _lines(
        ",event_block_name,event_name,raw,p50 (ms),start_time",
        [
            f'{k},Execute,op{k},"[0.0713, 0.00093, 0.00033]",0.00093,"[{556703208 + k}, {557166503 + k}, 557178190]"'
            for k in range(40)
        ],
    ),
}
"""A small, whole recording of each format, at most 8 kB."""

HOST_OPTIONS: dict[str, dict[str, object]] = {
    "dcgmi-dmon": {"rate_hz": 1.0},
    "rocm-smi": {"rate_hz": 1.0},
    "turbostat": {"rate_hz": 0.2},
    "nvidia-pmon": {"rate_hz": 1.0},
    "green-metrics": {"units": {"energy": "uJ"}},
    "home-assistant": {"units": {"power": "W", "energy": "kWh"}},
    "prometheus": {"rate_hz": 1.0},
    "nvidia-dmon": {"rate_hz": 1.0},
    "tegrastats": {"rate_hz": 1.0},
    "batterystats": {"voltage_v": 3.85},
    "markers": {"units": {"time": "us"}},
}
"""What must be said to read a seed or its mutants."""

HOST_VALUES: dict[str, str] = {
    "nvidia-smi-csv": r"0, (\d+\.25) W",
    "nvidia-smi-xml": r"<power_draw>(\d+\.\d+) W",
    "nvidia-dmon": r"\d\d      0    (\d+)     40",
    "dcgmi-dmon": r"GPU 0\s+(\d+\.250)",
    "rocm-smi": r"card0,(\d+\.0)",
    "amd-smi": r"^\d+,0,(\d+),N/A",
    "tegrastats": r"VDD_IN (\d+)mW/",
    "jtop": r"1405,(\d+),inactive",
    "powermetrics-text": r"CPU Power: (\d+) mW",
    "intel-power-gadget": r":100,1000,\s+\d+\.000,\s+(\d+\.000)",
    "uprof": r":100,\s+(\d+\.27),1.10",
    "etw-e3": r'"bench\.exe", 0, (\d+),',
    "srum": r"60000, 1200, (\d+)",
    "turbostat": r"-\t-\t100\t5.25\t1.0\t2.0\t(\d+\.25)\t",
    "perf-stat": r"\.000100000,(\d+\.74),",
    "energibridge": r"5\.5,([\d.]+)$",
    "codecarbon": r"20\.5,1e-5,([\d.]+),",
    "powerjoular": r"0\.125,[\d.]+,([\d.]+),6\.0",
    "scaphandre": r'"consumption": (12\d+\.0)',
    "alumet": r"Z;([\d.]+);local",
    "green-metrics": r"^\d{16} (\d+) Package_0",
    "zeus-energy": r"0\.875,([\d.]+)$",
    "zeus-power": r"\.125,([\d.]+),62\.5",
    "carbontracker": r"for gpu: ([\d.]+)$",
    "shelly": r"^\d+,(0\.\d+),",
    "tasmota": r'"Power":(\d+),',
    "home-assistant": r"plug_power,([\d.]+),",
    "prometheus": r'UUID="GPU-x"\} ([\d.]+) \d+',
}
"""Where the values of a seed stand."""
