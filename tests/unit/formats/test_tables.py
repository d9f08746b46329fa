"""Tables that nobody described: CSV, Parquet, Arrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.estimate import Provenance
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader, sniff
from joulemap.formats.tables.mapping import suggest_map
from joulemap.trace import ClockKind
from recording_files import read_bytes, slugs

MAPPED: dict[str, object] = {"columns": {"time": "t", "power": "p"}, "units": {"time": "ms", "power": "mW"}}


def test_a_guess_is_shown_and_never_applied(tmp_path: Path) -> None:
    body = "Timestamp (ms),Rail Power (mW),Note\n0,10,a\n1,11,b\n"
    with pytest.raises(InputError) as caught:
        read_bytes("csv", body, tmp_path)
    assert caught.value.slug == "columns-unmapped"
    assert "--column power='Rail Power (mW)'" in caught.value.hint
    assert "--column time='Timestamp (ms)'" in caught.value.hint
    assert "unchecked" in caught.value.hint


def test_a_suggestion_names_units_only_where_the_header_has_none() -> None:
    assert (
        suggest_map(["elapsed", "watts"])
        == "--column time='elapsed' --unit time=s --column power='watts' --unit power=W"
    )
    assert suggest_map(["x", "y"]) == ""


@pytest.mark.parametrize(
    "body",
    ["t,p\n0,10\n1,20\n2,30\n", "t;p\r\n0;10,0\r\n1;20,0\r\n2;30,0\r\n", "\ufefft\tp\n0\t10\n1\t20\n2\t30\n",
     "\n\nt,p,\n0,10,\n\n1,20,\n2,30,\n"],
)  # fmt: skip
def test_a_mapped_table_is_read_in_every_dress(body: str, tmp_path: Path) -> None:
    (trace,) = read_bytes("csv", body, tmp_path, **MAPPED).traces
    assert trace.power_w.tolist() == pytest.approx([0.01, 0.02, 0.03])
    assert trace.edges_ns is not None
    assert trace.edges_ns.tolist() == [-1_000_000, 0, 1_000_000, 2_000_000]
    assert trace.clock.kind is ClockKind.MONOTONIC


def test_units_in_the_header_need_not_be_said_again(tmp_path: Path) -> None:
    body = "t (us),i (mA),u [V]\n0,10,3\n10,20,3\n"
    recording = read_bytes("csv", body, tmp_path, columns={"time": "t (us)", "current": "i (mA)", "voltage": "u [V]"})
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.03, 0.06])


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"columns": {"time": "t", "power": "nope"}}, "column-missing"),
        ({"columns": {"time": "t", "power": "p"}, "units": {"time": "s"}}, "unit-needed"),
        ({"columns": {"time": "t", "power": "p"}, "units": {"time": "s", "power": "mA"}}, "unit-unknown"),
        ({"columns": {"time": "t", "power": "p"}, "units": {"time": "W", "power": "W"}}, "unit-unknown"),
        ({"columns": {"time": "t", "power": "p"}, "units": {"time": "s", "power": "zorg"}}, "unit-unknown"),
        ({"columns": {"power": "p"}, "units": {"power": "W"}}, "rate-needed"),
        ({"columns": {"time": "t", "current": "p"}, "units": {"time": "s", "current": "A"}}, "voltage-needed"),
        ({"columns": {"time": "t"}}, "columns-unmapped"),
    ],
)
def test_a_map_that_does_not_fit_is_said(options: dict[str, object], slug: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError if slug == "unit-unknown" else InputError) as caught:
        read_bytes("csv", "t,p\n0,10\n1,20\n", tmp_path, **options)
    assert caught.value.slug == slug


def test_stamps_without_a_zone_are_local_and_never_utc(tmp_path: Path) -> None:
    body = "t,p\n2026-01-02 03:04:05.250,1\n2026-01-02 03:04:05.500,2\n"
    said: dict[str, object] = {"columns": {"time": "t", "power": "p"}, "units": {"power": "W"}}
    local = read_bytes("csv", body, tmp_path, **said).traces[0]
    assert local.clock.kind is ClockKind.LOCAL
    stated = read_bytes("csv", body, tmp_path, utc_offset_s=3600.0, **said).traces[0]
    assert stated.clock.kind is ClockKind.UTC
    assert local.start_ns - stated.start_ns == 3600 * 10**9
    zoned = read_bytes("csv", body.replace("250,", "250+01:00,").replace("500,", "500+01:00,"), tmp_path, **said)
    assert zoned.traces[0].clock.kind is ClockKind.UTC
    assert zoned.traces[0].start_ns == stated.start_ns
    with pytest.raises(FormatError, match="zone"):
        read_bytes("csv", body.replace("250,", "250Z,"), tmp_path, **said)


def test_epoch_seconds_are_utc_when_the_user_says_so(tmp_path: Path) -> None:
    body = "t,p\n1767323045.123456789,1\n1767323046.123456789,2\n"
    said: dict[str, object] = {"columns": {"time": "t", "power": "p"}, "units": {"time": "epoch s", "power": "W"}}
    trace = read_bytes("csv", body, tmp_path, **said).traces[0]
    assert trace.clock.kind is ClockKind.UTC
    assert trace.end_ns == 1767323046123456789


def test_rails_are_named_after_a_colon(tmp_path: Path) -> None:
    body = "t,a,b\n0,1,10\n1,2,20\n"
    recording = read_bytes(
        "csv",
        body,
        tmp_path,
        columns={"time": "t", "power:cpu": "a", "power:gpu": "b"},
        units={"time": "s", "power": "W"},
    )
    assert {trace.channel.name: trace.power_w.tolist() for trace in recording.traces} == {
        "cpu": [1, 2],
        "gpu": [10, 20],
    }


def test_an_energy_counter_is_differenced_and_a_fall_is_lost(tmp_path: Path) -> None:
    body = "t,e\n0,100\n1,150\n2,120\n3,170\n"
    recording = read_bytes(
        "csv", body, tmp_path, columns={"time": "t", "energy": "e"}, units={"time": "s", "energy": "J"}
    )
    (trace,) = recording.traces
    assert trace.power_w.tolist() == [50.0, 0.0, 50.0]
    assert trace.gaps.tolist() == [[1, 2]]
    assert trace.channel.provenance is Provenance.MEASURED_COUNTER
    assert "counter_fell" in slugs(recording)


def test_missing_cells_ragged_rows_and_bad_rows(tmp_path: Path) -> None:
    body = "t,p,x\n0,10,a\n1,N/A,b\n2\n3,oops,c\n4,50,d\n5,60,e\n"
    recording = read_bytes("csv", body, tmp_path, **MAPPED)
    assert {"samples_lost", "row_ragged", "line_unreadable"} <= slugs(recording)
    spans = {finding.slug: finding.span for finding in recording.findings}
    assert spans["line_unreadable"] == "line 5"
    assert spans["row_ragged"] == "line 4"


def test_even_rows_at_a_stated_rate(tmp_path: Path) -> None:
    recording = read_bytes(
        "csv", "p,x\n1,0\n2,0\n3,0\n", tmp_path, columns={"power": "p"}, units={"power": "W"}, rate_hz=50.0
    )
    assert recording.traces[0].period_s == 0.02


def write_table(path: Path, table: pa.Table, form: str) -> Path:
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with path.open("wb") as handle:
            make = ipc.new_file if form == "arrow" else ipc.new_stream
            with make(handle, table.schema) as writer:
                writer.write_table(table)
    return path


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_columnar_tables_are_read_by_the_same_map(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [0.0, 1.0, 2.0], "p": [1.0, None, 3.0], "note": ["a", "b", "c"]})
    path = write_table(tmp_path / "x", table, form)
    found = sniff(path)
    assert found.name == ("parquet" if form == "parquet" else "arrow")
    recording = found.read(path, ReadOptions(**MAPPED))  # type: ignore[arg-type]
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.001, 0.0, 0.003])
    assert recording.traces[0].gaps.tolist() == [[1, 2]]


def test_a_timestamp_column_says_its_unit_and_zone(tmp_path: Path) -> None:
    ns = [1767323045123456789, 1767323045223456789]
    said = ReadOptions(columns={"time": "t", "power": "p"}, units={"power": "W"})
    zoned = write_table(
        tmp_path / "z", pa.table({"t": pa.array(ns, pa.timestamp("ns", "UTC")), "p": [1, 2]}), "parquet"
    )
    trace = reader("parquet").read(zoned, said).traces[0]
    assert (trace.clock.kind, trace.end_ns) == (ClockKind.UTC, ns[1])
    bare = write_table(tmp_path / "b", pa.table({"t": pa.array(ns, pa.timestamp("ns")), "p": [1, 2]}), "arrow")
    assert reader("arrow").read(bare, said).traces[0].clock.kind is ClockKind.LOCAL
    number = write_table(tmp_path / "n", pa.table({"t": [0, 1], "p": [1, 2]}), "arrow")
    with pytest.raises(InputError) as caught:
        reader("arrow").read(number, said)
    assert caught.value.slug == "unit-needed"


@pytest.mark.parametrize("column", [["a", "b"], [None, None], [[1], [2]]])
def test_a_column_without_numbers_is_refused(column: list[object], tmp_path: Path) -> None:
    path = write_table(tmp_path / "x", pa.table({"t": [0.0, 1.0], "p": column}), "parquet")
    with pytest.raises(FormatError) as caught:
        reader("parquet").read(path, ReadOptions(**MAPPED))  # type: ignore[arg-type]
    assert caught.value.slug in {"column-missing", "table-damaged"}


def test_times_out_of_range_or_missing_are_refused(tmp_path: Path) -> None:
    for times, slug in (
        ([0.0, 1e300], "time-out-of-range"),
        ([0, 2**62], "time-out-of-range"),
        ([0.0, None], "table-damaged"),
    ):
        path = write_table(tmp_path / "x", pa.table({"t": times, "p": [1.0, 2.0]}), "parquet")
        with pytest.raises(FormatError) as caught:
            reader("parquet").read(path, ReadOptions(**MAPPED))  # type: ignore[arg-type]
        assert caught.value.slug == slug


def test_a_damaged_arrow_file_is_validated_before_it_is_used(tmp_path: Path) -> None:
    """Runs the mutants in a process of its own: without validation a third of them crash it."""
    table = pa.table({"t": np.arange(200) * 1.0, "p": np.arange(200) * 1.0, "s": [f"a{k % 7}" for k in range(200)]})
    path = write_table(tmp_path / "x.arrow", table, "arrow")
    script = (
        "import random, sys, pathlib\n"
        "from joulemap.errors import InputError\n"
        "from joulemap.formats.base import ReadOptions\n"
        "from joulemap.formats.readers import reader\n"
        "source = pathlib.Path(sys.argv[1]); whole = source.read_bytes(); rng = random.Random(3)\n"
        "said = ReadOptions(columns={'time': 't', 'power': 'p'}, units={'time': 's', 'power': 'W'})\n"
        "for _ in range(200):\n"
        "    body = bytearray(whole)\n"
        "    for _ in range(rng.choice((1, 4, 16))): body[rng.randrange(len(body))] = rng.randrange(256)\n"
        "    source.write_bytes(body)\n"
        "    try: reader('arrow').read(source, said)\n"
        "    except InputError: pass\n"
        "print('whole')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "whole"), done.stderr[-500:]


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ("(", ")")])
@pytest.mark.parametrize(("time", "step_ns"), [("s", 10**9), ("ms", 10**6), ("us", 10**3), ("µs", 10**3), ("ns", 1)])
@pytest.mark.parametrize(
    ("labels", "cells", "power_w"),
    [
        ("power|W", "2", 2.0), ("Power|mW", "2", 2e-3), ("P|uW", "2", 2e-6), ("power|µW", "2", 2e-6),
        ("current|A,voltage|V", "2,3", 6.0), ("I|mA,U|mV", "2,3", 6e-6), ("Current|uA,V|V", "2,3", 6e-6),
        ("voltage|V,current|A,power|W,note", "2,3,7,x", 7.0),
    ],
)  # fmt: skip
def test_a_heading_that_leaves_no_doubt_is_the_map_and_is_shown(
    left: str, right: str, time: str, step_ns: int, labels: str, cells: str, power_w: float, tmp_path: Path
) -> None:
    names = [
        f"{name} {left}{unit}{right}" if unit else name
        for name, _, unit in (x.partition("|") for x in labels.split(","))
    ]
    rows = [f"{k},{cells}" for k in range(4)]
    path = tmp_path / "table"
    path.write_text("\n".join([f"time {left}{time}{right}," + ",".join(names), *rows, ""]))
    found = sniff(path)
    assert found.name == "csv"
    recording = found.read(path, ReadOptions())
    (trace,) = recording.traces
    assert trace.power_w.tolist() == pytest.approx([power_w] * 4, rel=1e-12)
    assert trace.edges_ns is not None
    assert np.diff(trace.edges_ns).tolist() == [step_ns] * 4
    (said,) = [finding for finding in recording.findings if finding.slug == "columns_from_heading"]
    assert f"--column time='time {left}{time}{right}'" in said.message


@pytest.mark.parametrize(
    "heading",
    ["time [s],power", "time,power [W]", "time [s],power [A]", "time [s],power [W],p [W]", "time [s],rail power [W]",
     "time [s],voltage [V]", "time [s],current [A],gpu [W]", "t [s],t (ms),p [W]"],
)  # fmt: skip
def test_a_heading_that_leaves_a_doubt_is_only_suggested(heading: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    width = heading.count(",")
    path.write_text(heading + "\n" + "".join(f"{k}{',1' * width}\n" for k in range(4)))
    with pytest.raises(InputError) as caught:
        reader("csv").read(path, ReadOptions())
    assert caught.value.slug == "columns-unmapped"


def test_a_current_alone_needs_the_supply_and_a_stated_map_overrules_the_heading(tmp_path: Path) -> None:
    body = "time [s],current [mA],other [mA]\n0,10,20\n1,10,20\n"
    with pytest.raises(InputError) as caught:
        read_bytes("csv", body.replace(",other [mA]", "").replace(",20", ""), tmp_path)
    assert caught.value.slug == "voltage-needed"
    recording = read_bytes("csv", body, tmp_path, columns={"time": "time [s]", "current": "other [mA]"}, voltage_v=2.0)
    assert recording.traces[0].power_w.tolist() == pytest.approx([0.04, 0.04])
    assert "columns_from_heading" not in slugs(recording)
