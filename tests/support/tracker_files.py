"""Small recordings of the formats of energy tools, smart plugs and scraped metrics, written by the tests themselves."""

from __future__ import annotations

import json
from collections.abc import Callable

from text_lines import join_lines

__all__ = ["TRACKER_OPTIONS", "TRACKER_SEEDS", "TRACKER_VALUES"]


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


def _codecarbon() -> bytes:
    return join_lines(
        "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,energy_consumed",
        [
            f"2026-01-02T03:{k:02d}:30,p,r{k},20.5,1e-5,{(100 + k) / 1e6},0.00005,0.00002,{(170 + k) / 1e6}"
            for k in range(20)
        ],
    )


def _prometheus() -> bytes:
    rows = ["# HELP node_rapl_package_joules_total x", "# TYPE node_rapl_package_joules_total counter"]
    for k in range(16):
        stamp = 1767323045000 + 1000 * k
        rows.append(
            f'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {100 + 9.5 * k} {stamp}'  # noqa: E501  # as its tool writes it
        )
        rows.append(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-x"}} {61.25 + k} {stamp}')
    return join_lines("", rows)


TRACKER_SEEDS: dict[str, Callable[[], bytes]] = {
    "energibridge": lambda: join_lines(
        "Delta,Time,CORE0_ENERGY (J),CPU_USAGE_0,PACKAGE_ENERGY (J)",
        [f"200,{1767323045000 + 200 * k},{10 + 0.5 * k},5.5,{100 + 2.5 * k}" for k in range(24)],
    ),
    "codecarbon": _codecarbon,
    "powerjoular": lambda: join_lines(
        "Date,CPU Utilization,Total Power,CPU Power,GPU Power",
        [f" 2026- 1- 2  3: 4:{k:2d}. 43,0.125,{18 + k}.5,{12 + k}.5,6.0" for k in range(24)],
    ),
    "scaphandre": _scaphandre,
    "alumet": lambda: join_lines(
        "metric;timestamp;value;resource_kind;resource_id;consumer_kind;consumer_id;domain;__late_attributes",
        [
            f"rapl_consumed_energy_J;2026-01-02T03:04:{k:02d}.123456789Z;{1 + k / 8};local_machine;;local_machine;;package;"  # noqa: E501  # as its tool writes it
            for k in range(20)
        ],
    ),
    "green-metrics": lambda: join_lines(
        "", [f"{1767323045000000 + 99000 * k} {118000 + k} Package_0" for k in range(39)]
    ),
    "zeus-energy": lambda: join_lines(
        "start_time,window_name,elapsed_time,gpu0_energy",
        [f"{1767323045 + k}.125,step,0.875,{61 + k}.5" for k in range(24)],
    ),
    "zeus-power": lambda: join_lines("", [f"{1767323045 + k}.125,{61 + k}.5,62.5" for k in range(32)]),
    "carbontracker": lambda: join_lines(
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
    "shelly": lambda: join_lines(
        "timestamp,a_total_act_energy,a_max_act_power,a_min_act_power,a_avg_voltage,a_avg_current",
        [f"{1767323040 + 60 * k},0.5{100 + k},40.2,20.1,230.1,0.172" for k in range(24)],
    ),
    "tasmota": lambda: join_lines(
        "",
        [
            f'{{"Time":"2026-01-02T03:04:{k:02d}","ENERGY":{{"Total":{2.813 + k / 1000:.3f},"Power":{52 + k},"Voltage":235}}}}'  # noqa: E501  # as its tool writes it
            for k in range(20)
        ],
    ),
    "home-assistant": lambda: join_lines(
        "entity_id,state,last_changed",
        [f"sensor.plug_power,{52 + k}.1,2026-01-02T03:04:{k:02d}.123Z" for k in range(22)],
    ),
    "prometheus": _prometheus,
    "redfish": lambda: json.dumps(
        {
            "@odata.type": "#Power.v1_5_0.Power",
            "PowerControl": [{"Name": "c", "PowerConsumedWatts": 429 + k} for k in range(9)],
        },
        indent=1,
    ).encode(),
}
"""A small, whole recording of each format, at most 8 kB."""

TRACKER_OPTIONS: dict[str, dict[str, object]] = {
    "green-metrics": {"units": {"energy": "uJ"}},
    "home-assistant": {"units": {"power": "W", "energy": "kWh"}},
    "prometheus": {"rate_hz": 1.0},
}
"""What must be said to read a seed or its mutants."""

TRACKER_VALUES: dict[str, str] = {
    "redfish": r'"PowerConsumedWatts": (\d+)',
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
"""Where the values of a seed stand: a pattern of the text."""
