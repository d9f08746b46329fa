"""Slices that we export come back as they are: same slices, names, tracks, kinds and clock, and energies of the map."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from joulemap.analysis.clocks.solve import AlignRequest
from joulemap.analysis.mapping.energy_map import MapRequest
from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import FormatError
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import sniff
from joulemap.trace import ClockKind
from joulemap.workflow.recordings.export_bundle import ExportFormat, export_bundle
from joulemap.workflow.recordings.import_recording import import_recordings
from joulemap.workflow.recordings.import_request import ImportRequest
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle
from recording_files import read_bytes

SAME = BundleMapRequest(align=AlignRequest(offset_s=0.0))


def bundle(folder: Path, *files: Path, name: str = "run.jm") -> Path:
    import_recordings(ImportRequest(paths=files, options=ReadOptions()), folder / name)
    return folder / name


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trip")
    rng = np.random.default_rng(2)
    edges = np.cumsum(rng.uniform(0.015, 0.04, 300))
    names = rng.choice(["conv", "dense", "pool"], 150)
    watts = {"conv": 5.0, "dense": 3.0, "pool": 2.0}
    power = np.full(9000, 1.0)
    at = (np.arange(9000) + 0.5) * 1e-3
    lines = ["start_ns,end_ns,name,track,kind"]
    for begin, end, name in zip(edges[::2], edges[1::2], names, strict=True):
        power[(at > begin) & (at < end)] = watts[name]
        lines.append(f"{round(begin * 1e9)},{round(end * 1e9)},{name},core,operator")
        lines.append(f"{round((begin + end) / 2 * 1e9)},{round(end * 1e9)},inner {name},core,part")
    (folder / "work.csv").write_text("\n".join(lines) + "\n")
    rows = (f"{(k + 1) * 1e-3:.3f},{value + 0.02 * rng.standard_normal():.4f}\n" for k, value in enumerate(power))
    (folder / "power.csv").write_text("time [s],power [W]\n" + "".join(rows))
    return bundle(folder, folder / "power.csv", folder / "work.csv")


def rows_of(folder: Path) -> Sequence[dict[str, Any]]:
    rows = map_bundle(folder, SAME)["rows"]
    assert isinstance(rows, Sequence)
    return rows


def energies(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    with path.open(newline="") as file:
        read = csv.DictReader(file)
        return [row | {key: float(row[key]) for key in ("energy_j", "self_j")} for row in read]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_slices_come_back_with_their_names_and_their_clock(recorded: Path, form: str) -> None:
    output = recorded.parent / f"slices.{form}"
    export_bundle(recorded, output, ExportFormat(form), SAME, force=True)
    (back,) = sniff(output).read(output, ReadOptions()).timelines
    assert (back.clock.name, back.clock.kind) == ("table", ClockKind.MONOTONIC)
    (first,) = sniff(recorded.parent / "work.csv").read(recorded.parent / "work.csv", ReadOptions()).timelines
    assert len(back) == len(first) == 300

    def rows(timeline: Any) -> set[tuple[int, int, str, str, str]]:
        columns = ("start_ns", "end_ns", "name_index", "track_index", "kind_index")
        numbers = zip(*(getattr(timeline, column).tolist() for column in columns), strict=True)
        return {(a, b, timeline.names[n], timeline.tracks[t], timeline.kinds[k]) for a, b, n, t, k in numbers}

    assert rows(back) == rows(first)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_energies_of_slices_add_up_to_the_rows_and_survive_the_trip(recorded: Path, form: str) -> None:
    output = recorded.parent / f"energies.{form}"
    by_op = BundleMapRequest(align=SAME.align, map=MapRequest(key=MapKey.KERNEL))
    export_bundle(recorded, output, ExportFormat(form), by_op, force=True)  # slices go by their names in any case
    rows = {row["key"]: row for row in rows_of(recorded)}
    told = energies(output)
    for key, row in rows.items():
        assert row["resolution"] in {"overlap", "least_squares"}
        own = [slice_ for slice_ in told if slice_["name"] == key]
        assert sum(slice_["energy_j"] for slice_ in own) == pytest.approx(row["energy_j"]["value"], rel=1e-12)
        assert sum(slice_["self_j"] for slice_ in own) == pytest.approx(row["self_j"]["value"], rel=1e-12)
    again = bundle(recorded.parent, recorded.parent / "power.csv", output, name=f"again-{form}.jm")
    for row in rows_of(again):
        assert row["energy_j"]["value"] == pytest.approx(rows[row["key"]]["energy_j"]["value"], rel=1e-12)


def test_a_damaged_table_of_slices_is_refused(recorded: Path, tmp_path: Path) -> None:
    output = recorded.parent / "damaged.parquet"
    export_bundle(recorded, output, ExportFormat.PARQUET, SAME, force=True)
    body = bytearray(output.read_bytes())
    body[4:900] = b"\xff" * 896
    (tmp_path / "cut.parquet").write_bytes(bytes(body))
    with pytest.raises(FormatError):
        sniff(tmp_path / "cut.parquet").read(tmp_path / "cut.parquet", ReadOptions())


def test_a_clock_is_taken_where_a_row_names_one_with_its_kind(tmp_path: Path) -> None:
    def clock_of(body: str) -> tuple[str, str]:
        clock = read_bytes("markers", body, tmp_path).timelines[0].clock
        return clock.name, str(clock.kind)

    assert clock_of("start_ns,end_ns,name,clock\n1,2,a,board/counter\n") == ("board", "counter")
    assert clock_of('{"start_ns": 1, "end_ns": 2, "name": "a", "clock": "host/utc"}\n') == ("host", "utc")
    assert clock_of("start_ns,end_ns,name,clock\n1,2,a,noon\n") == ("markers", "monotonic")
