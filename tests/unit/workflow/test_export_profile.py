"""Exports of a profile: layers where each capture's gate shows them, energies that agree, read back by our readers."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from joulemap.errors import InputError, UsageError
from joulemap.formats.base import ReadOptions
from joulemap.formats.bundle import read_bundle
from joulemap.formats.readers import reader, sniff
from joulemap.formats.registry import load_trace
from joulemap.records.energy import Resolution
from joulemap.records.recording import Recording
from joulemap.trace import integrate_energy
from joulemap.workflow.recordings.export_bundle import ExportFormat, export_bundle
from joulemap.workflow.recordings.map_bundle import BundleMapRequest
from profile_facts import COUNT, LAYER_J, TOTAL_J, account, degraded_facts, facts, profile_only_facts
from report_bundle import shaped_facts, write_report_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report_bundle(tmp_path_factory.mktemp("profile") / "run.jm", shaped_facts())


def exported(bundle: Path, folder: Path, wanted: str, *traces: str, table: bool = False) -> Path:
    output = folder / f"out.{wanted}"
    request = BundleMapRequest(traces=traces)
    export_bundle(bundle, output, ExportFormat(wanted), request, force=True, table=table)
    return output


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def integral_j(recording: Recording, start_ns: NDArray[Any], end_ns: NDArray[Any]) -> NDArray[Any]:
    """Energies of slices from the counter of watts that the recording holds, each value held until the next."""
    lane = next(lane for lane in recording.lanes if lane.name.endswith(("power", "power W")))
    at_ns = np.append(lane.time_ns, 2 * lane.time_ns[-1] - lane.time_ns[-2])
    total = np.concatenate([[0.0], np.cumsum(lane.value * np.diff(at_ns) * 1e-9)])
    return np.asarray(np.interp(end_ns, at_ns, total) - np.interp(start_ns, at_ns, total))


def test_layers_lie_where_the_gate_shows_them(bundle: Path, tmp_path: Path) -> None:
    rows = rows_of(exported(bundle, tmp_path, "csv"))
    document = json.loads((bundle / "result.json").read_text("utf-8"))
    gate = document["captures"][0]["observation"]["result"]["gate"]
    run = next(row for row in rows if row["kind"] == "run")
    assert (int(run["start_ns"]), int(run["end_ns"])) == (gate["rise_ns"], gate["fall_ns"])
    assert float(run["energy_j"]) == pytest.approx(TOTAL_J * COUNT, rel=1e-3)
    inferences = [row for row in rows if row["kind"] == "inference"]
    assert len(inferences) == COUNT
    for row, energy_j in zip([r for r in rows if r["kind"] == "layer"][: len(LAYER_J)], LAYER_J, strict=True):
        assert float(row["energy_j"]) == pytest.approx(energy_j, rel=0.01)
        assert row["resolution"] == "overlap"
        shown = next(layer for layer in document["layers"] if f"{layer['op']} #{layer['index']}" == row["name"])
        ratio = shown["energy_j"]["expanded"] / shown["energy_j"]["value"]
        assert float(row["energy_expanded_j"]) == pytest.approx(ratio * float(row["energy_j"]))


def test_another_capture_has_its_own_gate_and_waveform(bundle: Path, tmp_path: Path) -> None:
    first, third = (rows_of(exported(bundle, tmp_path, "csv", *names)) for names in ((), ("rail-3",)))
    document = json.loads((bundle / "result.json").read_text("utf-8"))
    gate = document["captures"][2]["observation"]["result"]["gate"]
    assert (int(third[0]["start_ns"]), int(third[0]["end_ns"])) == (gate["rise_ns"], gate["fall_ns"])
    trace, _ = load_trace(read_bundle(bundle), "rail-3")
    truth = integrate_energy(trace, np.array([gate["rise_ns"]]), np.array([gate["fall_ns"]]))
    assert float(third[0]["energy_j"]) == pytest.approx(float(truth.energy_j[0]), rel=1e-12)
    assert third[0]["energy_j"] != first[0]["energy_j"]


@pytest.mark.parametrize("wanted", ["perfetto", "chrome"])
def test_our_own_readers_find_slices_and_energies_again(bundle: Path, tmp_path: Path, wanted: str) -> None:
    path = exported(bundle, tmp_path, wanted)
    found = sniff(path)
    recording = found.read(path, ReadOptions())
    assert found.name == ("perfetto" if wanted == "perfetto" else "chrome-trace")
    timeline = recording.timelines[0]
    assert {name for name in timeline.names if not name.startswith("clock ")} >= {"gate", "inference", "CONV_2D #0"}
    truth = {(int(r["start_ns"]), int(r["end_ns"]), r["name"]): r for r in rows_of(exported(bundle, tmp_path, "csv"))}
    names = np.array([timeline.names[k] for k in timeline.name_index])
    keys = list(zip(timeline.start_ns.tolist(), timeline.end_ns.tolist(), names.tolist(), strict=True))
    matched = [key for key in keys if key in truth]
    assert len(matched) == len(truth)  # each slice, to the nanosecond
    start_ns, end_ns = np.array([k[0] for k in matched]), np.array([k[1] for k in matched])
    energies = np.array([float(truth[key]["energy_j"]) for key in matched])
    assert integral_j(recording, start_ns, end_ns) == pytest.approx(energies, rel=1e-9)


def test_the_perfetto_trace_is_valid_and_tells_clock_edges_and_findings(bundle: Path, tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    trace.ParseFromString(exported(bundle, tmp_path, "perfetto").read_bytes())
    events = [p for p in trace.packet if p.HasField("track_event")]
    units = {p.track_descriptor.counter.unit_name for p in trace.packet if p.track_descriptor.HasField("counter")}
    assert units == {"W", "J"}
    document = json.loads((bundle / "result.json").read_text("utf-8"))
    gate = document["captures"][0]["observation"]["result"]["gate"]
    snapshot = next(p.clock_snapshot for p in trace.packet if p.HasField("clock_snapshot"))
    assert sorted(c.timestamp for c in snapshot.clocks) == [0, gate["rise_ns"]]
    said = {p.track_event.name: p for p in events if p.track_event.type == 3}
    clock = said["clock virtual-m33 since GATE"]
    facts_of = {a.name: a.double_value or a.string_value for a in clock.track_event.debug_annotations}
    assert facts_of["std_s"] == pytest.approx(1e-5 / 12**0.5)  # an edge is known to one sample of 100 kS/s
    interned = next(p.interned_data for p in trace.packet if p.HasField("interned_data"))
    keys = {n.iid: n.name for n in interned.debug_annotation_names}
    begun = next(p for p in events if p.track_event.type == 1)
    arguments = {keys[a.name_iid]: a.double_value for a in begun.track_event.debug_annotations}
    assert arguments["energy_j"] == pytest.approx(TOTAL_J * COUNT, rel=1e-3)
    assert arguments["energy_expanded_j"] > 0


def test_what_only_a_sum_can_tell_has_no_energy_of_its_own(tmp_path: Path) -> None:
    run = replace(shaped_facts(), account=account(grouped=True))
    bundle = write_report_bundle(tmp_path / "run.jm", run)
    document = json.loads((bundle / "result.json").read_text("utf-8"))
    grouped = {f"{r['op']} #{r['index']}" for r in document["layers"] if r["energy_j"]["value"] is None}
    assert grouped
    rows = [row for row in rows_of(exported(bundle, tmp_path, "csv")) if row["name"] in grouped]
    assert rows
    assert {(row["energy_j"], row["self_j"], row["resolution"]) for row in rows} == {("", "", "refused")}


def test_least_squares_give_each_slice_the_energy_per_inference(tmp_path: Path) -> None:
    known = account()
    layers = tuple(replace(layer, resolution=Resolution.LEAST_SQUARES) for layer in known.layers)
    run = replace(shaped_facts(), account=replace(known, layers=layers))
    rows = rows_of(exported(write_report_bundle(tmp_path / "run.jm", run), tmp_path, "csv"))
    told = {(row["name"], float(row["energy_j"])) for row in rows if row["kind"] == "layer"}
    assert {energy for _, energy in told} == set(LAYER_J)
    assert len(told) == len(LAYER_J)
    assert {row["resolution"] for row in rows if row["kind"] == "layer"} == {"least_squares"}


def test_a_table_holds_energies_per_inference_that_add_up(bundle: Path, tmp_path: Path) -> None:
    rows = rows_of(exported(bundle, tmp_path, "csv", table=True))
    document = json.loads((bundle / "result.json").read_text("utf-8"))
    assert [row["key"] for row in rows][-1] == "between layers"
    known = [float(row["self_j"]) for row in rows if row["self_j"]]
    assert sum(known) == pytest.approx(document["energy_per_inference_j"]["value"], rel=1e-9)
    by_key = {row["key"]: row for row in rows}
    for layer in document["layers"]:
        row = by_key[f"{layer['op']} #{layer['index']}"]
        assert float(row["energy_j"]) == layer["energy_j"]["value"]  # unrounded
        assert float(row["energy_expanded_j"]) == layer["energy_j"]["expanded"]
    import pyarrow.parquet as pq

    table = pq.read_table(exported(bundle, tmp_path, "parquet", table=True)).to_pylist()
    assert [row["key"] for row in table] == [row["key"] for row in rows]
    assert table[0]["energy_j"] == float(rows[0]["energy_j"])


def test_a_run_without_power_has_a_table_and_no_waveform(tmp_path: Path) -> None:
    bundle = write_report_bundle(tmp_path / "run.jm", profile_only_facts())
    with pytest.raises(InputError) as caught:
        exported(bundle, tmp_path, "perfetto")
    assert caught.value.slug == "no-waveform"
    rows = rows_of(exported(bundle, tmp_path, "csv", table=True))
    assert {row["energy_j"] for row in rows} == {""}
    assert all(row["reason"] for row in rows)
    assert float(rows[0]["duration_s"]) > 0


def test_a_degraded_capture_is_a_waveform_without_slices(tmp_path: Path) -> None:
    bundle = write_report_bundle(tmp_path / "run.jm", degraded_facts())
    rows = rows_of(exported(bundle, tmp_path, "csv"))
    assert set(rows[0]) == {"time_ns", "power_w", "energy_j", "provenance"}


@pytest.mark.parametrize(
    ("request_of", "slug"),
    [
        (BundleMapRequest(traces=("rail-9",)), "trace-unknown"),
        (BundleMapRequest(traces=("rail-1", "rail-2")), "flags-contradict"),
        (BundleMapRequest(rule="mlperf"), "flags-contradict"),
        (BundleMapRequest(per="inference"), "flags-contradict"),
    ],
)
def test_what_a_profile_does_not_have_is_refused(
    bundle: Path, tmp_path: Path, request_of: BundleMapRequest, slug: str
) -> None:
    output = tmp_path / "x.csv"
    with pytest.raises(UsageError) as caught:
        export_bundle(bundle, output, ExportFormat.CSV, request_of)
    assert caught.value.slug == slug
    assert not output.exists()


def test_a_table_is_no_trace(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        exported(bundle, tmp_path, "chrome", table=True)
    assert caught.value.slug == "flags-contradict"


def test_names_that_mean_something_elsewhere_stay_names(tmp_path: Path) -> None:
    run = facts()
    layers = tuple(replace(layer, op='a,"b"\n<c>') for layer in run.model.layers)
    bundle = write_report_bundle(tmp_path / "run.jm", replace(run, model=replace(run.model, layers=layers)))
    names = {row["name"] for row in rows_of(exported(bundle, tmp_path, "csv"))}
    assert 'a,"b"\n<c> #0' in names
    chrome = exported(bundle, tmp_path, "chrome")
    timeline = reader("chrome-trace").read(chrome, ReadOptions()).timelines[0]
    assert 'a,"b"\n<c> #0' in timeline.names
