"""Small recordings of the formats of graphics cards, boards and computers, written by the tests themselves."""

from __future__ import annotations

import json
import plistlib
from collections.abc import Callable
from datetime import datetime, timedelta

from text_lines import join_lines

__all__ = ["HOST_OPTIONS", "HOST_SEEDS", "HOST_VALUES"]


def _nvidia_xml() -> bytes:
    return b"".join(
        b'<?xml version="1.0" ?>\n<nvidia_smi_log>\n<timestamp>Fri Aug  4 11:44:%02d 2023</timestamp>\n'
        b'<gpu id="0">\n<uuid>GPU-1</uuid>\n<gpu_power_readings>\n<power_draw>%d.25 W</power_draw>\n'
        b"</gpu_power_readings>\n</gpu>\n</nvidia_smi_log>\n" % (k, 60 + k)
        for k in range(8)
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


def _turbostat() -> bytes:
    rows = []
    for k in range(5):
        rows.append("usec\tTime_Of_Day_Seconds\tCore\tCPU\tAvg_MHz\tBusy%\tCPUGFX%Pkg%pc2\tPkgWatt\tGFXWattRAMWatt")
        rows.append(f"12\t{1767323045 + k}.500000\t-\t-\t100\t5.25\t1.0\t2.0\t{9 + k}.25\t0.50\t1.25")
        rows.append("12\t1767323045.5\t0\t0\t100\t5.25\t1.0\t2.0\t9.25\t0.50\t1.25")
        rows.append("12\t1767323045.5\t0\t1\t100\t5.25")
    return join_lines("", rows)


HOST_SEEDS: dict[str, Callable[[], bytes]] = {
    "nvidia-smi-csv": lambda: join_lines(
        "timestamp, index, power.draw [W], utilization.gpu [%]",
        [f"2026/01/02 03:04:{k:02d}.125, 0, {61 + k}.25 W, {k} %" for k in range(20)],
    ),
    "nvidia-smi-xml": _nvidia_xml,
    "nvidia-dmon": lambda: join_lines(
        "#Date       Time        gpu    pwr  gtemp     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      C      %",
        [f" 20260102   03:04:{k:02d}      0    {61 + k}     40     12" for k in range(20)],
    ),
    "nvidia-pmon": lambda: join_lines(
        "# gpu         pid   type     sm    mem    enc    dec    command\n# Idx           #    C/G      %      %      %      %    name",  # noqa: E501  # as its tool writes it
        [f"    0       4321     C     {10 + k}     70      -      -    python3" for k in range(20)],
    ),
    "dcgmi-dmon": lambda: join_lines(
        "#Entity         POWER             TOTEC                   SMCLK\nID              W                 mJ                      MHz",  # noqa: E501  # as its tool writes it
        [f"GPU 0           {61 + k}.250            {100000 + 61000 * k:<24}{210}" for k in range(16)],
    ),
    "rocm-smi": lambda: join_lines(
        "device,Average Graphics Package Power (W)", [f"card0,{140 + k}.0" for k in range(24)]
    ),
    "amd-smi": lambda: join_lines(
        "timestamp,gpu,socket_power,gfx_voltage", [f"{1767323045 + k},0,{142 + k},N/A" for k in range(24)], "\r\n"
    ),
    "nvtop": lambda: json.dumps(
        [{"device_name": f"GPU {k}", "temp": "48C", "power_draw": f"{13 + k}W", "gpu_util": "5%"} for k in range(12)],
        indent=1,
    ).encode(),
    "tegrastats": lambda: join_lines(
        "",
        [
            f"01-02-2026 03:04:{k:02d} RAM 2462/7620MB (lfb 4x2MB) CPU [5%@729,off] EMC_FREQ 0%@2133 GR3D_FREQ 4%@[305,0] "  # noqa: E501  # as its tool writes it
            f"cpu@48.5C VDD_IN {5000 + k}mW/5000mW VDD_SOC 1405mW/1400mW"
            for k in range(20)
        ],
    ),
    "jtop": lambda: join_lines(
        "time,uptime,CPU1,CPU2,RAM,GPU,Temp cpu,Power VDD_SOC,Power TOT,jetson_clocks,nvpmodel",
        [
            f'2026-01-02 03:04:{k:02d}.123456,"1 day, 0:00:10",12,OFF,0.41,55,48.5,1405,{6350 + k},inactive,MAXN'
            for k in range(20)
        ],
    ),
    "powermetrics-text": lambda: join_lines(
        "Machine model: Mac14,2",
        [
            line
            for k in range(16)
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
    "intel-power-gadget": lambda: join_lines(
        "System Time,RDTSC,Elapsed Time (sec),Processor Power_0(Watt),Cumulative Processor Energy_0(Joules)",
        [f"12:00:{k:02d}:100,1000,   {k + 1}.000,  {10 + k}.000,  {10 * (k + 1)}.000" for k in range(20)],
    ),
    "uprof": lambda: join_lines(
        "AMD uProf timechart\nProfile Start Time:,Jan-02-2026_03-04-05\nPROFILE COUNTERS\n"
        "48.,socket0-package-power,Power,W,Socket0-Average Package Power\nPROFILE RECORDS,\n"
        "RecordId,Timestamp,socket0-package-power,core0-power",
        [f"{k + 1},03:04:{k + 5:02d}:100,   {9 + k}.27,1.10" for k in range(20)],
    ),
    "etw-e3": lambda: join_lines(
        "",
        [
            "Microsoft-Windows-Energy-Estimation-Engine/QueryStats/EnergyEstimate,  "
            f'{(k + 1) * 60_000_000},   System (   4), 88, 1, , , , , "bench.exe", 0, {1200 + k}, 0, 0, 0, 0, 0, 0, 0, 0, 0, '  # noqa: E501  # as its tool writes it
            "60000, 0, 1, 2, 1"
            for k in range(30)
        ],
    ),
    "srum": lambda: join_lines(
        "AppId, UserId, TimeStamp, TimeInMSec, CPUEnergyConsumption, TotalEnergyConsumption",
        [
            f"\\Device\\Tools, Inc\\bench.exe, S-1-5-18, 2026-01-02:03:{k:02d}:00.0000, 60000, 1200, {2415 + k}"
            for k in range(20)
        ],
        "\r\n",
    ),
    "powertop": lambda: join_lines(
        "_" * 68,
        [
            "\t\t\tP o w e r T O P",
            "",
            " *  *  *   System Information   *  *  *",
            "PowerTOP Version;2.14 ran at Sun Nov 29 15:35:35 2026",
            "CPU Information;2 AMD EPYC",
            "Target: 1 units/s;System:  118.7 wakeup/s;CPU:  94.1% usage;GPU: 0 ops/s;",
            *[f" {k}.3%; 11.5;Process;[PID {k}] demo" for k in range(24)],
        ],
    ),
    "turbostat": _turbostat,
    "perf-stat": lambda: join_lines(
        "# started on Sun Nov 29 15:35:31 2026\n",
        [f"     {k + 1}.000100000,{12 + k}.74,Joules,power/energy-pkg/,1000164,100.00,," for k in range(24)],
    ),
}
"""A small, whole recording of each format, at most 8 kB."""

HOST_OPTIONS: dict[str, dict[str, object]] = {
    "dcgmi-dmon": {"rate_hz": 1.0},
    "rocm-smi": {"rate_hz": 1.0},
    "turbostat": {"rate_hz": 0.2},
    "nvidia-pmon": {"rate_hz": 1.0},
    "nvidia-dmon": {"rate_hz": 1.0},
    "tegrastats": {"rate_hz": 1.0},
}
"""What must be said to read a seed or its mutants."""

HOST_VALUES: dict[str, str] = {
    "nvidia-smi-csv": r"0, (\d+\.25) W",
    "nvidia-smi-xml": r"<power_draw>(\d+\.\d+) W",
    "nvidia-pmon": r"C\s+(\d+)     70",
    "nvtop": r'"power_draw": "(\d+)W',
    "powermetrics-plist": r"<key>combined_power</key>\s*<real>([\d.]+)<",
    "powertop": r"CPU:  ([\d.]+)%",
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
}
"""Where the values of a seed stand: a pattern of the text."""
