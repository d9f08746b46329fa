"""What the last written digit of a table says of its resolution, and that the map knows no better."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host_reading import read, trace
from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.estimate import Estimate
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.text import last_digit
from joulemap.formats.readers import reader
from joulemap.trace.streamed import Trace
from recording_files import read_bytes


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("5.20", 0.01), ("-5", 1.0), ("+1.25e-3", 1e-5), ("1E3", 1e3), (" 7.000 ", 1e-3), (".5", 0.1), ("5.", 1.0),
        ("", None), ("N/A", None), ("nan", None), ("0x10", None), ("1.2.3", None), ("e5", None), ("1e999", None),
    ],
)  # fmt: skip
def test_the_last_digit_of_a_number(text: str, unit: float | None) -> None:
    assert last_digit(text) == (None if unit is None else pytest.approx(unit))


def test_a_decimal_comma_has_digits_too() -> None:
    assert last_digit("1.234,50", ",") == pytest.approx(0.01)


def constant(unit: str, cell: str, *, rows: int = 50) -> str:
    return f"time [s],power [{unit}]\n" + "".join(f"{k / 10},{cell}\n" for k in range(rows))


@pytest.mark.parametrize(
    ("unit", "cell", "quantum_w"), [("W", "5.20", 0.01), ("mW", "5200.0", 1e-4), ("W", "5", 1.0), ("W", "5.2e0", 0.1)]
)
def test_the_resolution_of_a_column_is_kept_in_watts(unit: str, cell: str, quantum_w: float, tmp_path: Path) -> None:
    (found,) = read_bytes("csv", constant(unit, cell), tmp_path).traces
    assert found.channel.kernel.quantum_w == pytest.approx(quantum_w)


def total_of(found: Trace) -> tuple[Estimate, list[str]]:
    mapped = map_energy([found], None, None, MeterErrors(), request=MapRequest())
    assert isinstance(mapped.total_j, Estimate)
    return mapped.total_j, [finding.slug for finding in mapped.findings]


def test_where_nothing_says_the_resolution_it_is_said_that_noise_does_not_show(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time [s]": np.arange(50) / 10, "power [W]": np.full(50, 5.2)}), tmp_path / "t.parquet")
    (found,) = reader("parquet").read(tmp_path / "t.parquet", ReadOptions()).traces
    assert found.channel.kernel.quantum_w == 0.0
    assert "noise_not_seen" in total_of(found)[1]


def test_a_constant_trace_of_an_unknown_meter_has_the_interval_of_its_last_digit(tmp_path: Path) -> None:
    (found,) = read_bytes("csv", constant("W", "5.20"), tmp_path).traces
    total, findings = total_of(found)
    assert total.value == pytest.approx(5.2 * 5.0)
    assert total.std == pytest.approx(0.01 / math.sqrt(12) * 5.0, rel=0.02)
    assert "noise_not_seen" not in findings


def test_trailing_zeros_that_a_writer_drops_are_seen_in_another_row(tmp_path: Path) -> None:
    body = "time [s],power [W]\n" + "".join(f"{k / 10},{5 + k % 4 / 4}\n" for k in range(50))
    (found,) = read_bytes("csv", body, tmp_path).traces
    assert found.channel.kernel.quantum_w == pytest.approx(0.01)


def test_current_and_voltage_round_on_their_own(tmp_path: Path) -> None:
    body = "time [s],current [A],voltage [V]\n" + "".join(f"{k / 10},0.50,5.0\n" for k in range(50))
    (found,) = read_bytes("csv", body, tmp_path).traces
    assert found.channel.kernel.quantum_w == pytest.approx(math.hypot(0.01 * 5.0, 0.1 * 0.5))
    mapped = {"time": "time [s]", "current": "current [A]"}
    stated = read_bytes("csv", body.replace(",5.0", ",x"), tmp_path, columns=mapped, voltage_v=2.0)
    assert stated.traces[0].channel.kernel.quantum_w == pytest.approx(0.02)


def test_a_counter_of_energy_has_no_resolution_in_watts(tmp_path: Path) -> None:
    body = "time [s],e [J]\n" + "".join(f"{k / 10},{k}\n" for k in range(50))
    (found,) = read_bytes("csv", body, tmp_path, columns={"time": "time [s]", "energy": "e [J]"}).traces
    assert found.channel.kernel.quantum_w == 0.0


def test_formats_whose_digits_are_fixed_state_them(tmp_path: Path) -> None:
    rows = "".join(f"2024/10/30 18:42:3{k}.000, 20.00 W\n" for k in range(9))
    card = trace(read("nvidia-smi-csv", "timestamp, power.draw [W]\n" + rows, tmp_path), "gpu")
    assert card.channel.kernel.quantum_w == 0.01
    total, findings = total_of(card)
    assert total.std == pytest.approx(0.01 / math.sqrt(12) * card.duration_s, rel=0.01)
    assert "noise_not_seen" not in findings
