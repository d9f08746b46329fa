"""A recording that a bundle refers to is streamed: its map is that of the embedded one, and a changed file is told."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyjls
import pytest

from joulemap.analysis.clocks.solve import Align, AlignRequest
from joulemap.analysis.mapping.energy_map import MapRequest
from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import InputError, JoulemapError
from joulemap.formats import trace_parquet
from joulemap.formats.base import ReadOptions
from joulemap.formats.joulescope import jls, jls_link
from joulemap.trace.streamed import StreamedTrace
from joulemap.trace.sweep import Split
from joulemap.workflow.recordings.export_bundle import ExportFormat, export_bundle
from joulemap.workflow.recordings.import_recording import ImportRequest, import_recordings
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle, map_recording
from joulemap.workflow.recordings.placed_slices import bin_power
from joulemap.workflow.recordings.recording_bundle import open_recordings

RATE_HZ = 100_000
START_S = 1_700_000_000
SAMPLES = 60_000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many parts in a small file."""
    monkeypatch.setattr(jls_link, "_CHUNK", 1 << 12)


def write_recording(
    path: Path, *, devices: int = 1, close: bool = True, lost: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Writes current and voltage with lost runs, on UTC; returns both."""
    rng = np.random.default_rng(4)
    current = (0.5 + 0.3 * (np.arange(SAMPLES) // 700 % 2) + 0.01 * rng.standard_normal(SAMPLES)).astype(np.float32)
    voltage = (3.3 + 0.01 * rng.standard_normal(SAMPLES)).astype(np.float32)
    if lost:
        current[20_000:20_040] = np.nan
        voltage[41_000:41_003] = np.nan
    writer = pyjls.Writer(str(path))
    ticks = (START_S - 1_514_764_800) << 30
    for device in range(1, devices + 1):
        writer.source_def(
            source_id=device, name=f"js{device}", vendor="v", model="m", version="1", serial_number=f"{device}"
        )
        for number, (name, units, values) in enumerate(
            (("current", "A", current), ("voltage", "V", voltage)), 2 * device - 1
        ):
            writer.signal_def(
                signal_id=number, source_id=device, signal_type=pyjls.SignalType.FSR, data_type=pyjls.DataType.F32,
                sample_rate=RATE_HZ, samples_per_data=1000, sample_decimate_factor=10, entries_per_summary=100,
                summary_decimate_factor=10, name=name, units=units,
            )  # fmt: skip
            for at in range(0, SAMPLES, 1000):
                writer.fsr(number, at, values[at : at + 1000])
            writer.utc(number, 0, ticks)
    if close:
        writer.close()
    return current, voltage


def write_timeline(path: Path, *, beyond: bool = False) -> None:
    """Writes nested slices out of order, on UTC."""
    rng = np.random.default_rng(5)
    rows = []
    for k in range(50):
        begin = START_S * 10**9 + 3_000_000 + k * 11_000_000
        rows.append((begin, begin + 9_000_000, "inference", "main"))
        for layer in range(4):
            a = begin + layer * 2_000_000 + int(rng.integers(0, 100_000))
            rows += [(a, a + 1_700_000, f"layer {layer}", "main"), (a + 100_001, a + 900_007, "kernel", "main")]
            rows.append((a + 5_000, a + 1_000_000, "copy", "dma"))
    rows.append((rows[0][0], rows[0][0], "instant", "main"))
    if beyond:
        rows.append((START_S * 10**9 + 599_000_000, START_S * 10**9 + 601_000_000, "late", "main"))
    order = rng.permutation(len(rows))
    lines = [",".join(str(field) for field in rows[k]) for k in order]
    path.write_text("start_ns,end_ns,name,track\n" + "\n".join(lines) + "\n")


def bundle_of(folder: Path, power: Path, timeline: Path | None, *, refer: bool, name: str = "") -> Path:
    output = folder / (name or ("referred.jm" if refer else "held.jm"))
    paths = (power, timeline) if timeline else (power,)
    options = ReadOptions(utc_offset_s=0.0)
    request = ImportRequest(paths=paths, options=options, copy=not refer, embed_limit_b=0)
    import_recordings(request, output, now=datetime(2024, 1, 1, tzinfo=UTC))
    return output


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two bundles of one recording: referred to, and embedded."""
    write_recording(tmp_path / "power.jls")
    write_timeline(tmp_path / "slices.csv", beyond=True)
    made = [
        bundle_of(tmp_path, tmp_path / "power.jls", tmp_path / "slices.csv", refer=refer) for refer in (True, False)
    ]
    assert isinstance(open_recordings(made[0]).open_trace("power"), StreamedTrace)
    assert not isinstance(open_recordings(made[1]).open_trace("power"), StreamedTrace)
    return made[0], made[1]


def assert_alike(found: Any, wanted: Any, place: str = "") -> None:
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), place
        for key in wanted:
            if key not in ("run_id", "bundle"):
                assert_alike(found[key], wanted[key], f"{place}.{key}")
    elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
        assert len(found) == len(wanted), place
        for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_alike(one, other, f"{place}[{k}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-15), place
    else:
        assert found == wanted, place


REQUESTS: dict[str, BundleMapRequest] = {
    "name": BundleMapRequest(),
    "path": BundleMapRequest(map=MapRequest(key=MapKey.PATH)),
    "none": BundleMapRequest(map=MapRequest(split=Split.NONE)),
    "unit": BundleMapRequest(per="inference"),
    "stated": BundleMapRequest(align=AlignRequest(offset_s=0.0)),
    "moved": BundleMapRequest(align=AlignRequest(offset_s=0.0013)),
    "correlated": BundleMapRequest(align=AlignRequest(method=Align.CORRELATE)),
}


@pytest.mark.parametrize("wanted", sorted(REQUESTS))
def test_the_map_is_that_of_the_embedded_recording(pair: tuple[Path, Path], wanted: str) -> None:
    def answer(bundle: Path) -> object:
        try:
            return map_bundle(bundle, REQUESTS[wanted])
        except JoulemapError as error:
            return {"slug": error.slug, "message": error.message}

    found, expected = (answer(bundle) for bundle in pair)
    assert_alike(found, expected)
    if wanted == "name":
        assert isinstance(found, dict)
        late = next(row for row in found["rows"] if row["key"] == "late")
        assert (late["outside"], late["energy_j"]["value"]) == (1, None)
        assert "samples_lost" in {finding["slug"] for finding in found["findings"]}


def test_the_energies_are_those_of_the_samples(pair: tuple[Path, Path], tmp_path: Path) -> None:
    current, voltage = write_recording(tmp_path / "again.jls")
    power_w = np.nan_to_num(current.astype(float) * voltage.astype(float))
    document = map_bundle(pair[0], BundleMapRequest())
    assert document["total_j"]["value"] == pytest.approx(float(power_w.sum()) / RATE_HZ, rel=1e-12)  # type: ignore[index]
    assert document["power_w"]["value"] == pytest.approx(float(power_w.sum()) / (SAMPLES - 43), rel=1e-12)  # type: ignore[index]


def test_without_a_timeline_there_is_the_total(tmp_path: Path) -> None:
    write_recording(tmp_path / "power.jls")
    maps = [
        map_bundle(bundle_of(tmp_path, tmp_path / "power.jls", None, refer=refer), BundleMapRequest())
        for refer in (True, False)
    ]
    assert_alike(maps[0], maps[1])


def test_instruments_of_one_file_are_mapped_together(tmp_path: Path) -> None:
    write_recording(tmp_path / "power.jls", devices=2)
    write_timeline(tmp_path / "slices.csv")
    maps = []
    for refer in (True, False):
        bundle = bundle_of(tmp_path, tmp_path / "power.jls", tmp_path / "slices.csv", refer=refer)
        names = open_recordings(bundle).traces
        assert len(names) == 2
        maps.append(map_bundle(bundle, BundleMapRequest(traces=names[:1])))
    assert_alike(maps[0], maps[1])


def test_a_calibration_is_taken_out_of_streamed_samples(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "unit.toml").write_text(
        'instrument = "js220"\nserial = "1"\ncalibrated = 2023-01-01\nexpires = 2030-01-01\n'
        'gain = 1.01\ngain_std = 0.001\noffset_w = 0.002\noffset_std_w = 0.0001\nreference = "a bench meter"\n'
    )
    request = BundleMapRequest(calibration=tmp_path / "unit.toml")
    found, expected = (map_bundle(bundle, request) for bundle in pair)
    assert_alike(found, expected)
    assert found["total_j"]["value"] < map_bundle(pair[0], BundleMapRequest())["total_j"]["value"]  # type: ignore[index]


@pytest.mark.parametrize("wanted", [ExportFormat.CSV, ExportFormat.PARQUET, ExportFormat.CHROME, ExportFormat.PERFETTO])
def test_exports_are_those_of_the_embedded_recording(
    pair: tuple[Path, Path], wanted: ExportFormat, tmp_path: Path
) -> None:
    made = [export_bundle(bundle, tmp_path / f"{bundle.stem}.out", wanted, BundleMapRequest()) for bundle in pair]
    assert (made[0].slices, made[0].points, made[0].bin_s) == (made[1].slices, made[1].points, made[1].bin_s)
    if wanted is ExportFormat.CHROME:
        assert_alike(*(json.loads((tmp_path / f"{bundle.stem}.out").read_text()) for bundle in pair))
    else:
        assert made[0].size_b == pytest.approx(made[1].size_b, rel=0.02)


def test_bins_of_a_streamed_trace_hold_its_energy(pair: tuple[Path, Path]) -> None:
    mapped = map_recording(open_recordings(pair[0]), BundleMapRequest())[0]
    (_, power_w, energy_j), bin_s = bin_power(mapped.traces)
    assert energy_j[-1] == pytest.approx(mapped.map.total_j.value, rel=1e-12)  # type: ignore[union-attr]
    assert power_w.size == SAMPLES
    assert bin_s == pytest.approx(1 / RATE_HZ)


def test_long_traces_stay_in_the_file_and_in_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jls, "_LOAD_MAX", 1000)
    monkeypatch.setattr(trace_parquet, "_STREAMED_FROM", 1000)
    write_recording(tmp_path / "power.jls")
    write_timeline(tmp_path / "slices.csv")
    referred, held = (
        bundle_of(tmp_path, tmp_path / "power.jls", tmp_path / "slices.csv", refer=refer) for refer in (True, False)
    )
    assert isinstance(open_recordings(held).open_trace("power"), StreamedTrace)
    summary = json.loads((held / "result.json").read_text())["recordings"][0]["traces"][0]
    assert (summary["samples"], summary["lost_samples"]) == (SAMPLES, 43)
    assert open_recordings(held).load_trace("power").lost_samples == 43
    assert_alike(map_bundle(referred, BundleMapRequest()), map_bundle(held, BundleMapRequest()))


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def keep_time(path: Path, change: Callable[[], object]) -> None:
    state = path.stat()
    change()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_a_changed_file_is_told_and_a_touched_one_is_taken(pair: tuple[Path, Path], tmp_path: Path) -> None:
    power = tmp_path / "power.jls"
    before = map_bundle(pair[0], BundleMapRequest())
    os.utime(power)
    assert_alike(map_bundle(pair[0], BundleMapRequest()), before)
    flip(power, power.stat().st_size // 3 + 1)  # its time says so, wherever it is
    with pytest.raises(InputError) as caught:
        map_bundle(pair[0], BundleMapRequest())
    assert caught.value.slug == "recording-changed"
    flip(power, power.stat().st_size // 3 + 1)
    assert_alike(map_bundle(pair[0], BundleMapRequest()), before)
    power.rename(tmp_path / "elsewhere.jls")
    with pytest.raises(InputError) as caught:
        map_bundle(pair[0], BundleMapRequest())
    assert caught.value.slug == "recording-missing"


@pytest.mark.parametrize("place", ["first", "last", "longer"])
def test_a_change_that_sets_the_time_back_is_told_by_its_bytes(
    pair: tuple[Path, Path], tmp_path: Path, place: str
) -> None:
    power = tmp_path / "power.jls"
    size_b = power.stat().st_size
    if place == "longer":
        keep_time(power, lambda: power.write_bytes(power.read_bytes() + b"x"))
    else:
        keep_time(power, lambda: flip(power, 40 if place == "first" else size_b - 1))
    with pytest.raises(InputError) as caught:
        map_bundle(pair[0], BundleMapRequest())
    assert caught.value.slug == "recording-changed"


def test_a_file_that_was_never_closed_is_streamed_as_far_as_it_goes(tmp_path: Path) -> None:
    write_recording(tmp_path / "whole.jls", lost=False)
    whole = (tmp_path / "whole.jls").read_bytes()
    cut = tmp_path / "cut.jls"
    cut.write_bytes(whole[: int(len(whole) * 0.8)])
    write_timeline(tmp_path / "slices.csv")
    maps = [
        map_bundle(bundle_of(tmp_path, cut, tmp_path / "slices.csv", refer=refer), BundleMapRequest())
        for refer in (True, False)
    ]
    assert_alike(maps[0], maps[1])
    slugs = {finding["slug"] for finding in maps[0]["findings"]}  # type: ignore[attr-defined]
    assert {"recording_salvaged", "slices_outside_trace"} <= slugs
    assert cut.read_bytes() == whole[: int(len(whole) * 0.8)]


def test_a_damaged_block_is_a_gap_of_the_stream(tmp_path: Path) -> None:
    power = tmp_path / "power.jls"
    write_recording(power, lost=False)
    body, at, blocks = power.read_bytes(), 32, []
    while at + 32 <= len(body):
        tag, (payload,) = body[at + 16], struct.unpack_from("<I", body, at + 20)
        blocks += [at + 32 + payload // 2] if tag == 0x22 else []
        at += 32 + (0 if payload == 0 else (payload + 4 + 7) // 8 * 8)
    flip(power, blocks[len(blocks) // 4])  # its checksum now fails
    write_timeline(tmp_path / "slices.csv")
    maps = [
        map_bundle(bundle_of(tmp_path, power, tmp_path / "slices.csv", refer=refer), BundleMapRequest())
        for refer in (True, False)
    ]
    assert_alike(maps[0], maps[1])
    assert maps[0]["validity"] == "degraded"
    assert {"samples_unreadable", "samples_lost"} <= {f["slug"] for f in maps[0]["findings"]}  # type: ignore[attr-defined]
