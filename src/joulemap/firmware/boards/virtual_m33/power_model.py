"""Coefficients of the virtual rail: read from a data file with sources, scaled to an operating point.

P = static(V_core) + f * [clock + sum of classes and bytes per cycle] * (V_core / V_ref)^2 + peripherals.

The supply voltage itself does not enter: behind a switching regulator of constant efficiency the power at the rail
follows the core's, not the supply. Must not know how a core executes.

References:
    Weste and Harris, CMOS VLSI Design, 4th ed., 5.2 (dynamic power, alpha C V^2 f) and 5.3 (static power).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CLASSES", "PERIPHERALS", "TRAFFIC", "PowerModel", "read_power_model"]

CLASSES = ("alu", "multiply", "divide", "load", "store", "branch", "float", "float_divide", "system", "other")
TRAFFIC = ("flash_read", "ram_read", "ram_write", "mmio")
PERIPHERALS = ("uart", "debug", "swo", "usb")
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """A rail's coefficients at its reference point, as the data file states them.

    Args:
        name: of the model.
        core_hz: reference core clock, Hz.
        core_v: reference core voltage, V.
        static_uw: regulator and leakage of a running core, uW.
        leakage_factor_per_volt: factor on static power per volt of core voltage.
        clock_fj_per_cycle: clock tree, fJ per cycle.
        sleep_static_uw: as static_uw in WFI, uW.
        sleep_clock_fj_per_cycle: as clock_fj_per_cycle in WFI, fJ.
        wake_cycles: cycles from a wake-up to the next instruction.
        class_cycles: modelled cycles per instruction class, in the order of CLASSES.
        class_fj: fJ per instruction, in the order of CLASSES.
        traffic_fj_per_b: fJ per byte, in the order of TRAFFIC.
        peripheral_uw: draw while enabled, uW, in the order of PERIPHERALS.
        throttle_divider: what a clamp divides the core clock by.
    """

    name: str
    core_hz: float
    core_v: float
    static_uw: float
    leakage_factor_per_volt: float
    clock_fj_per_cycle: float
    sleep_static_uw: float
    sleep_clock_fj_per_cycle: float
    wake_cycles: int
    class_cycles: tuple[int, ...]
    class_fj: tuple[float, ...]
    traffic_fj_per_b: tuple[float, ...]
    peripheral_uw: tuple[float, ...]
    throttle_divider: int

    def coefficients(self, *, core_hz: float | None = None, core_v: float | None = None) -> dict[str, int | list[int]]:
        """Returns the integers that the board core counts with, at an operating point.

        Args:
            core_hz: core clock, Hz; None for the reference. A cycle must last a whole number of ns.
            core_v: core voltage, V; None for the reference.

        Raises:
            ValueError: the clock period is no whole number of ns.
        """
        clock_hz = self.core_hz if core_hz is None else core_hz
        volts = self.core_v if core_v is None else core_v
        period_ns = round(_NS_PER_S / clock_hz)
        if period_ns < 1 or abs(period_ns * clock_hz - _NS_PER_S) > 1e-6 * _NS_PER_S:
            raise ValueError(f"core clock {clock_hz} Hz: a cycle must last a whole number of ns")
        dynamic = (volts / self.core_v) ** 2
        leakage = self.leakage_factor_per_volt ** (volts - self.core_v)
        return {
            "class_cycles": list(self.class_cycles),
            "class_fj": [round(value * dynamic) for value in self.class_fj],
            "traffic_fj_per_b": [round(value * dynamic) for value in self.traffic_fj_per_b],
            "peripheral_uw": [round(value) for value in self.peripheral_uw],
            "static_uw": round(self.static_uw * leakage),
            "clock_fj_per_cycle": round(self.clock_fj_per_cycle * dynamic),
            "sleep_static_uw": round(self.sleep_static_uw * leakage),
            "sleep_clock_fj_per_cycle": round(self.sleep_clock_fj_per_cycle * dynamic),
            "wake_cycles": self.wake_cycles,
            "period_ns": period_ns,
            "throttled_period_ns": period_ns * self.throttle_divider,
        }


def read_power_model(path: Path | None = None) -> PowerModel:
    """Returns the model of a data file; None for the one of this board.

    Raises:
        ValueError: another schema, or a coefficient without value, tag and source.
    """
    document = json.loads((path or Path(__file__).with_name("power_model.json")).read_text(encoding="utf-8"))
    if document.get("schema") != "joulemap.power_model" or document.get("schema_version") != 1:
        raise ValueError("not a joulemap.power_model of version 1")
    tags = frozenset(document["tags"])
    sleep = document["sleep"]
    classes = [_sourced(document["classes"][name], tags, "energy_fj") for name in CLASSES]
    return PowerModel(
        name=document["name"],
        core_hz=document["reference"]["core_hz"],
        core_v=document["reference"]["core_v"],
        static_uw=_value(document["static_uw"], tags),
        leakage_factor_per_volt=_value(document["leakage_factor_per_volt"], tags),
        clock_fj_per_cycle=_value(document["clock_fj_per_cycle"], tags),
        sleep_static_uw=_value(sleep["static_uw"], tags),
        sleep_clock_fj_per_cycle=_value(sleep["clock_fj_per_cycle"], tags),
        wake_cycles=int(_value(sleep["wake_cycles"], tags)),
        class_cycles=tuple(int(entry["cycles"]) for entry in classes),
        class_fj=tuple(float(entry["energy_fj"]) for entry in classes),
        traffic_fj_per_b=tuple(_value(document["traffic_fj_per_b"][name], tags) for name in TRAFFIC),
        peripheral_uw=tuple(_value(document["peripherals_uw"][name], tags) for name in PERIPHERALS),
        throttle_divider=int(_value(document["throttle"]["clock_divider"], tags)),
    )


def _sourced(entry: Mapping[str, Any], tags: frozenset[str], key: str) -> Mapping[str, Any]:
    if entry.get("tag") not in tags or not entry.get("source") or not entry.get(key, -1) >= 0:
        raise ValueError(f"a coefficient needs {key}, a known tag and a source, got {dict(entry)}")
    return entry


def _value(entry: Mapping[str, Any], tags: frozenset[str]) -> float:
    return float(_sourced(entry, tags, "value")["value"])
