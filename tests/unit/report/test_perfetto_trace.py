"""The Perfetto trace against Perfetto's own definitions, and its numbers against what went in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from joulemap.report.perfetto.wire import Stamped, fixed_varint, varint
from program import call


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    power = np.ones(2000)
    power[500:1500] = 5.0
    rows = "".join(f"{(k + 1) / 1000:.6f},{value!r}\n" for k, value in enumerate(power.tolist()))
    (tmp_path / "p.csv").write_text("moment (s),power (W)\n" + rows)
    events = [
        {"ph": "X", "name": name, "cat": "operator", "pid": 1, "tid": 1, "ts": start, "dur": end - start}
        for name, start, end in (
            ("run", 400_000, 1_400_000),
            ("<script>", 900_000, 1_400_000),
            ("mark", 950_000, 950_000),
        )
    ]
    (tmp_path / "t.json").write_text(json.dumps(events))
    made = call("import", tmp_path / "p.csv", tmp_path / "t.json", "--column", "time=moment (s)",
                "--column", "power=power (W)", "-o", tmp_path / "run.jm")  # fmt: skip
    assert made.code == 0, made.err
    return tmp_path / "run.jm"


def exported(bundle: Path, to: str) -> Path:
    path = bundle.with_name(f"out.{to}")
    called = call("export", bundle, "--to", to, "-o", path, "--offset", "0.1", "--json")
    assert called.code == 0, called.err
    assert called.json["size_b"] == path.stat().st_size
    return path


def test_perfetto_reads_counters_slices_and_clocks(bundle: Path) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    trace = proto.Trace()
    trace.ParseFromString(exported(bundle, "perfetto").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    events = [p for p in trace.packet if p.HasField("track_event")]
    watts = [p for p in events if tracks[p.track_event.track_uuid].counter.unit_name == "W"]
    joules = [p for p in events if tracks[p.track_event.track_uuid].counter.unit_name == "J"]
    assert sum(p.track_event.double_counter_value for p in watts) * 1e-3 == pytest.approx(6.0)
    assert joules[-1].track_event.double_counter_value == pytest.approx(6.0)
    interned = next(p.interned_data for p in trace.packet if p.HasField("interned_data"))
    names = {n.iid: n.name for n in interned.event_names}
    keys = {n.iid: n.name for n in interned.debug_annotation_names}
    begun = [p for p in events if p.track_event.type == 1]
    assert [names[p.track_event.name_iid] for p in begun] == ["run", "<script>"]
    facts = {keys[a.name_iid]: a.double_value for a in begun[0].track_event.debug_annotations}
    assert facts["energy_j"] == pytest.approx(5.0)
    assert facts["self_j"] == pytest.approx(2.5)
    assert sum(p.track_event.type == 2 for p in events) == 2
    snapshot = next(p.clock_snapshot for p in trace.packet if p.HasField("clock_snapshot"))
    stamps = {c.clock_id: c.timestamp for c in snapshot.clocks}
    assert stamps[6] - stamps[128] == 100_000_000
    clock = next(p for p in events if p.track_event.name == "clock trace")
    said = {a.name: a.double_value or a.string_value for a in clock.track_event.debug_annotations}
    assert said["method"] == "stated"
    assert said["offset_s"] == pytest.approx(0.1)
    assert all(p.timestamp >= 0 for p in events)


def test_chrome_csv_and_parquet_say_the_same(bundle: Path) -> None:
    document = json.loads(exported(bundle, "chrome").read_text())
    slices = {e["name"]: e for e in document["traceEvents"] if e["ph"] == "X"}
    assert slices["run"]["args"]["energy_j"] == pytest.approx(5.0)
    assert slices["run"]["ts"] == 500_000
    table = exported(bundle, "csv").read_text().splitlines()
    assert table[0].startswith("start_ns,end_ns,name")
    assert float(table[1].split(",")[5]) == pytest.approx(5.0)
    import pyarrow.parquet as pq

    columns = pq.read_table(exported(bundle, "parquet")).to_pydict()
    assert columns["name"] == ["run", "<script>", "mark"]
    assert columns["energy_j"][:2] == pytest.approx([5.0, 2.5])
    assert columns["energy_j"][2] is None


def test_an_existing_file_is_kept_unless_forced(bundle: Path) -> None:
    path = exported(bundle, "csv")
    called = call("export", bundle, "--to", "csv", "-o", path, "--offset", "0.1")
    assert (called.code, "output-exists" in called.err) == (2, True)
    assert call("export", bundle, "--to", "csv", "-o", path, "--offset", "0.1", "--force").code == 0


def test_padded_varints_are_the_same_numbers() -> None:
    values = np.array([0, 1, 127, 128, 2**62], np.int64)
    for value, padded in zip(values.tolist(), fixed_varint(values, 9).tolist(), strict=True):
        number = sum((byte & 0x7F) << (7 * k) for k, byte in enumerate(padded))
        assert number == value
        assert [byte >> 7 for byte in padded] == [1] * 8 + [0]
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    with pytest.raises(ValueError, match="cannot hold"):
        fixed_varint(np.array([-1]), 9)
    with pytest.raises(ValueError, match="columns"):
        Stamped().number(1, 2).fill([])
