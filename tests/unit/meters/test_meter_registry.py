"""Instrument declarations: the shipped ones, and files that must be refused with their key and path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from joulemap.errors import InputError, UsageError
from joulemap.estimate import Provenance
from joulemap.meters.registry import DEFAULT_INSTRUMENT, instrument, instrument_names, open_simulated_meter
from joulemap.records.instrument import ErrorDistribution
from joulemap.records.rail import RailActivity

GOOD = """
name = "bench-7"
rate_hz = 100000
gain_std = 0.001
offset_std_w = 0.0
noise_std_w = 5e-6
quantum_w = 0.0
clock_std_ppm = 20
edge_rate_hz = 100e3
edge_skew_std_s = 0.0
distribution = "rectangular"
source = "data sheet rev. 2, table 4"
"""


def test_the_default_is_the_meter_of_the_contract() -> None:
    spec = instrument(DEFAULT_INSTRUMENT)
    assert (spec.rate_hz, spec.gain_std, spec.offset_std_w) == (1e6, 5e-4, 1e-6)
    assert (spec.noise_std_w, spec.clock_std_ppm, spec.edge_rate_hz) == (20e-6, 10.0, 1e6)
    assert spec.distribution is ErrorDistribution.NORMAL


@pytest.mark.parametrize("name", instrument_names())
def test_every_shipped_instrument_reads_and_says_where_its_figures_come_from(name: str) -> None:
    spec = instrument(name)
    assert spec.name == name
    assert spec.source
    assert spec.provenance is Provenance.SIMULATED


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        instrument("virtual-hunt")
    assert caught.value.slug == "instrument-unknown"
    assert DEFAULT_INSTRUMENT in caught.value.hint


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "bench.toml"
    path.write_text(GOOD)
    spec = instrument(str(path))
    assert spec.name == "bench-7"
    assert spec.rate_hz == 100e3
    assert spec.distribution is ErrorDistribution.RECTANGULAR


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate_hz = 100000\n", "rate_khz = 100\n", ["rate_khz", "rate_hz"]),
        ("clock_std_ppm = 20", "clock_std_ppm = 20\ncolour = 1", ["colour"]),
        ("gain_std = 0.001", 'gain_std = "0.1 %"', ["gain_std", "0.1 %"]),
        ("gain_std = 0.001", "gain_std = -0.001", ["gain_std", "at least 0"]),
        ("gain_std = 0.001", "gain_std = true", ["gain_std", "number"]),
        ("gain_std = 0.001", "gain_std = nan", ["gain_std", "finite"]),
        ("rate_hz = 100000", "rate_hz = 0", ["rate_hz", "greater than 0"]),
        ("rate_hz = 100000", "rate_hz = 1e300", ["rate_hz", "between 0.001 and 1e+08"]),
        ("rate_hz = 100000", "rate_hz = 1e-300", ["rate_hz", "between"]),
        ("rate_hz = 100000", f"rate_hz = 1{400 * '0'}", ["rate_hz", "between"]),
        ("rate_hz = 100000", f"rate_hz = 1{5000 * '0'}", ["cannot be read as TOML"]),
        ("clock_std_ppm = 20", "clock_std_ppm = 1e6", ["clock_std_ppm", "between"]),
        ("gain_std = 0.001", "gain_std = 1e300", ["gain_std", "between"]),
        ("gain_std = 0.001", f"gain_std = {5000 * '['}", ["nested too deeply"]),
        ("gain_std = 0.001", f"gain_std = 0.001 # {70000 * 'x'}", ["more than 65536 bytes"]),
        ("gain_std = 0.001\n", "", ["gain_std", "missing"]),
        ('distribution = "rectangular"', 'distribution = "flat"', ["distribution", "flat", "normal"]),
        ('source = "data sheet rev. 2, table 4"', 'source = " "', ["source", "non-empty"]),
        ('name = "bench-7"', "name = 7", ["name", "non-empty string"]),
        ("rate_hz = 100000", "rate_hz = ", ["cannot be read as TOML"]),
        ('source = "data', 'provenance = "measured_sampled"\nsource = "data', ["provenance"]),
    ],
)
def test_a_bad_file_is_refused_naming_key_and_file(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    path = tmp_path / "bad.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        instrument(str(path))
    assert caught.value.slug == "instrument-file-invalid"
    for word in [*words, str(path)]:
        assert word in caught.value.message


def test_a_missing_file_and_a_folder_are_told_apart_from_bad_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        instrument(str(tmp_path / "none.toml"))
    assert caught.value.slug == "instrument-file-missing"
    with pytest.raises(InputError) as caught:
        instrument(f"{tmp_path}/")
    assert caught.value.slug == "instrument-file-invalid"


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    """A pipe that nobody writes to, a device without end."""
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero")):
        with pytest.raises(InputError, match="no regular file") as caught:
            instrument(str(path))
        assert caught.value.slug == "instrument-file-invalid"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(InputError) as caught:
        instrument(str(path))
    assert caught.value.slug == "instrument-file-invalid"


def test_the_registry_opens_a_meter_on_a_rail() -> None:
    import numpy as np

    rail = RailActivity(row_s=1e-6, energy_fj=np.full(2000, 2_000_000, np.uint32), edges=())
    meter = open_simulated_meter(instrument("virtual-10k"), lambda: rail, 1)
    meter.arm(repeat=1)
    assert meter.collect().trace.n in {20, 21}
    meter.close()
