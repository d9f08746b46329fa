"""Specifications of instruments, each figure with its source. Nothing from memory: what was not read is not here.

A limit is rectangular unless its source says typical; a figure that holds for one range is used in that range alone.

References:
    docs/instruments.md and INSTRUMENTS (the collected facts); each entry names its own source.
"""

from __future__ import annotations

from typing import Final

from joulemap.errors import UsageError
from joulemap.records.mapping.calibration import AccuracyRange, Evidence, InstrumentAccuracy

__all__ = ["LIBRARY", "find_instrument", "instrument_for_format"]

_READ, _DERIVED = Evidence.READ, Evidence.DERIVED
_PPK2: Final = "ppk2lab docs/calibration.md (transcribes Nordic's measurement resolution and accuracy table)"
_TI: Final = "Texas Instruments, EnergyTrace documentation (emu_energytrace)"
_ST: Final = "STMicroelectronics UM2243 Rev 2, p. 23-24"
_WT: Final = "Yokogawa IM WT310-02EN, p. 7-7 (12 months, 45-66 Hz; the range term is for a range of 500 W)"

LIBRARY: Final[dict[str, InstrumentAccuracy]] = {
    entry.name: entry
    for entry in (
        InstrumentAccuracy(
            name="joulescope-js220",
            title="Joulescope JS220",
            ranges=(
                AccuracyRange(
                    min_a=0.18,
                    max_a=10.0,
                    gain=0.0025,
                    offset_a=0.0015,
                    evidence=_READ,
                    source="pyjoulescope_ui issue 182 (maintainer)",
                ),
            ),
            note="only the 10 A range is published; below 0.18 A nothing is known here",
        ),
        InstrumentAccuracy(
            name="ppk2",
            title="Nordic Power Profiler Kit II",
            ranges=(
                AccuracyRange(max_a=0.05, gain=0.10, typical=True, evidence=_READ, source=_PPK2),
                AccuracyRange(min_a=0.05, max_a=1.0, gain=0.15, typical=True, evidence=_READ, source=_PPK2),
            ),
            formats=("ppk2", "ppk2-csv"),
            note="typical figures, not guaranteed",
        ),
        InstrumentAccuracy(
            name="otii-arc",
            title="Qoitech Otii Arc",
            ranges=(
                AccuracyRange(
                    max_a=0.02, gain=0.001, offset_a=50e-9, evidence=_READ, source="Qoitech product page (low range)"
                ),
            ),
            note="the offset of the higher ranges is not published",
        ),
        InstrumentAccuracy(
            name="otii-ace",
            title="Qoitech Otii Ace",
            ranges=(
                AccuracyRange(
                    max_a=0.02, gain=0.0005, offset_a=25e-9, evidence=_READ, source="Qoitech product page (low range)"
                ),
            ),
        ),
        InstrumentAccuracy(
            name="lpm01a",
            title="ST X-NUCLEO-LPM01A",
            ranges=(AccuracyRange(max_a=0.2, gain=0.02, evidence=_READ, source=_ST),),
            formats=("lpm01a", "lpm01a-binary", "energyrunner", "energyrunner-json"),
            note="2 % in the static mode with a load that varies by less than 10 %, about 2 % in the dynamic mode",
        ),
        InstrumentAccuracy(
            name="energytrace",
            title="TI EnergyTrace",
            ranges=(
                AccuracyRange(max_a=0.025, gain=0.02, offset_a=500e-9, evidence=_READ, source=_TI),
                AccuracyRange(min_a=0.025, max_a=0.075, gain=0.05, offset_a=500e-9, evidence=_READ, source=_TI),
            ),
            formats=("energytrace",),
        ),
        InstrumentAccuracy(
            name="ina3221-orin",
            title="INA3221 of a Jetson AGX Orin (2 mOhm)",
            ranges=(
                AccuracyRange(
                    max_a=81.9,
                    gain=0.0025,
                    offset_a=0.04,
                    evidence=_DERIVED,
                    source="Linux tegra234-p3701.dtsi with the TI INA3221 data sheet; without the shunt's tolerance",
                ),
            ),
            note="without the tolerance of the shunt",
        ),
        InstrumentAccuracy(
            name="nvml-kepler",
            title="NVML on Fermi and Kepler",
            ranges=(AccuracyRange(gain=0.05, evidence=_READ, source="NVML reference, nvmlDeviceGetPowerUsage"),),
            note="newer cards: nothing is published",
        ),
        InstrumentAccuracy(
            name="ptdaemon",
            title="Power analyser accepted by PTDaemon",
            ranges=(
                AccuracyRange(
                    gain=0.01,
                    evidence=_READ,
                    source="mlcommons/power-dev check.py: a sample whose stated uncertainty is above 1 % is an error",
                ),
            ),
            formats=("mlperf-inference",),
            note="the limit that a submission must keep; the analyser itself is usually better",
        ),
        InstrumentAccuracy(
            name="yokogawa-wt310",
            title="Yokogawa WT310, WT332, WT333",
            ranges=(AccuracyRange(gain=0.001, offset_w=0.5, evidence=_READ, source=_WT),),
        ),
        InstrumentAccuracy(
            name="shepherd",
            title="Shepherd recorder",
            ranges=(
                AccuracyRange(
                    max_a=0.05,
                    gain=0.0007,
                    offset_a=190e-9,
                    evidence=_READ,
                    source="shepherd docs/user/performance.rst",
                ),
            ),
        ),
        InstrumentAccuracy(
            name="hlw8012",
            title="Smart plug with HLW8012",
            ranges=(
                AccuracyRange(
                    gain=0.015,
                    typical=True,
                    evidence=_READ,
                    source="ESPHome devices, Shelly Plug S: 1710 W for 1685 W before calibration",
                ),
            ),
        ),
    )
}
"""Name -> what is known of the model."""


def find_instrument(name: str) -> InstrumentAccuracy:
    """Returns an instrument of the library.

    Raises:
        UsageError: it has none of that name.
    """
    if name not in LIBRARY:
        raise UsageError(
            f"no instrument is called {name!r}", hint=f"one of: {', '.join(sorted(LIBRARY))}", slug="instrument-name"
        )
    return LIBRARY[name]


def instrument_for_format(format_name: str) -> InstrumentAccuracy | None:
    """Returns the only instrument whose files have that format; None where a file does not tell."""
    return next((entry for entry in LIBRARY.values() if format_name in entry.formats), None)
