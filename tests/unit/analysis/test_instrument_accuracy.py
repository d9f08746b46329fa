"""Specifications as data: sources, ranges, typical figures, calibrations, and what is not known."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from joulemap.analysis.instruments.accuracy import errors_of
from joulemap.analysis.instruments.library import LIBRARY, find_instrument, instrument_for_format
from joulemap.errors import FormatError, InputError, UsageError
from joulemap.meters.calibration import read_calibration
from joulemap.records.mapping.calibration import AccuracyRange, Calibration, Evidence, InstrumentAccuracy

RECORD = """
instrument = "ppk2"
serial = "A1"
calibrated = 2026-01-10
expires = 2027-01-10
gain = 1.02
gain_std = 0.001
offset_w = 2e-6
offset_std_w = 5e-7
reference = "Keithley 6430"
"""


def test_every_figure_has_a_source_that_was_read() -> None:
    for entry in LIBRARY.values():
        assert entry.ranges
        for figure in entry.ranges:
            assert figure.source
            assert figure.evidence in (Evidence.READ, Evidence.DERIVED)


def test_a_limit_is_rectangular_and_a_typical_figure_one_sd() -> None:
    trace = find_instrument("energytrace")
    small = errors_of(trace, None, mean_power_w=0.03, voltage_v=3.0, day=None)
    assert small.gain_std == pytest.approx(0.02 / math.sqrt(3))
    assert small.offset_std_w == pytest.approx(500e-9 * 3 / math.sqrt(3))
    large = errors_of(trace, None, mean_power_w=0.15, voltage_v=3.0, day=None)
    assert large.gain_std == pytest.approx(0.05 / math.sqrt(3))
    typical = errors_of(find_instrument("ppk2"), None, mean_power_w=0.01, voltage_v=3.0, day=None)
    assert (typical.gain_std, typical.rectangular) == (0.10, False)


def test_outside_its_ranges_nothing_is_known() -> None:
    low = errors_of(find_instrument("joulescope-js220"), None, mean_power_w=0.01, voltage_v=3.0, day=None)
    assert (low.gain_std, [f.slug for f in low.findings]) == (0.0, ["instrument_unknown"])
    none = errors_of(None, None, mean_power_w=1.0, voltage_v=None, day=None)
    assert [f.slug for f in none.findings] == ["instrument_unknown"]


def test_an_offset_in_amperes_needs_a_supply() -> None:
    found = errors_of(find_instrument("energytrace"), None, mean_power_w=0.03, voltage_v=None, day=None)
    assert [f.slug for f in found.findings] == ["offset_not_budgeted"]


def test_figures_from_memory_are_left_out() -> None:
    entry = find_instrument("lpm01a")
    remembered = InstrumentAccuracy(name="x", title="X", ranges=tuple(_remember(figure) for figure in entry.ranges))
    found = errors_of(remembered, None, mean_power_w=0.01, voltage_v=None, day=None)
    assert found.gain_std == 0.0


def _remember(figure: AccuracyRange) -> AccuracyRange:
    return replace(figure, evidence=Evidence.MEMORY)


def test_a_calibration_replaces_the_specification_while_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "unit.toml"
    path.write_text(RECORD)
    record = read_calibration(path)
    known = find_instrument("ppk2")
    held = errors_of(known, record, mean_power_w=1.0, voltage_v=3.0, day=date(2026, 6, 1))
    assert (held.corrects, held.gain, held.rectangular) == (True, 1.02, False)
    assert held.gain_std == pytest.approx(0.001 / 1.02)
    for day in (date(2027, 2, 1), None):
        late = errors_of(known, record, mean_power_w=0.01, voltage_v=3.0, day=day)
        assert late.gain_std == 0.10
        assert "calibration_expired" in [f.slug for f in late.findings]


@pytest.mark.parametrize(
    "change",
    [("gain_std = 0.001", ""), ("2026-01-10", '"2026-01-10"'), ("gain = 1.02", "gain = -1"), ("serial", "seriel"),
     ("2027", "2020"), ("gain = 1.02", "gain = [")],
)  # fmt: skip
def test_a_damaged_calibration_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    path = tmp_path / "unit.toml"
    path.write_text(RECORD.replace(*change))
    with pytest.raises(FormatError) as caught:
        read_calibration(path)
    assert caught.value.slug == "calibration-damaged"
    with pytest.raises(InputError):
        read_calibration(tmp_path / "none.toml")


def test_names_and_formats_lead_to_instruments() -> None:
    found = instrument_for_format("mlperf-inference")
    assert found is not None
    assert found.name == "ptdaemon"
    assert instrument_for_format("csv") is None
    with pytest.raises(UsageError):
        find_instrument("thermometer")
    with pytest.raises(ValueError, match="gain"):
        Calibration(instrument="x", serial="", calibrated=date(2026, 1, 1), expires=date(2027, 1, 1), gain=0.0,
                    gain_std=0.1, offset_std_w=0.0, reference="r")  # fmt: skip
