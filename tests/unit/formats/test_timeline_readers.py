"""Timelines: every phase and every base of time, unfinished files, exact nanoseconds, and the shared recordings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from host_reading import lane, read, slugs
from joulemap.errors import FormatError, InputError
from joulemap.records.recording import Recording
from joulemap.trace import ClockKind
from recording_files import shared_file
from timeline_files import nsight_database
from wire_fields import wire


def pieces(recording: Recording) -> list[tuple[str, int, int]]:
    return [(piece.name, piece.start_ns, piece.end_ns) for piece in recording.timelines[0]]


def chrome(*events: dict[str, object], tmp_path: Path, **head: object) -> Recording:
    return read("chrome-trace", json.dumps({**head, "traceEvents": list(events)}), tmp_path)


def test_chrome_nanoseconds_are_decimals_of_microseconds_whatever_the_display_unit() -> None:
    found = read("chrome-trace", shared_file("chrome_trace", "nanoseconds.json"), Path())
    assert pieces(found) == [
        ("us1", 0, 1100), ("us2", 1100, 1300), ("us3", 1300, 1600), ("us4", 1700, 2100),
        ("ns1", 3000, 3011), ("ns2", 3011, 3013), ("ns3", 3013, 3016), ("ns4", 3017, 3021),
    ]  # fmt: skip


def test_chrome_slices_without_an_end_are_said_and_left_out() -> None:
    found = read("chrome-trace", shared_file("chrome_trace", "main_thread_has_unclosed_slices.json"), Path())
    assert "slice_unclosed" in slugs(found)
    assert len(found.timelines[0]) == 1680
    assert "process 12308 / NetworkChangeNotifier" in found.timelines[0].tracks


def test_chrome_counters_with_ids_are_lanes() -> None:
    found = read("chrome-trace", shared_file("chrome_trace", "instance_counters.json"), Path())
    assert lane(found, "52 counter[123] value").value.tolist() == [2.0, 10.0, 5.0, 8.0, 4.0, 10.0]
    assert lane(found, "52 counter[123] value").time_ns[0] == 9_524_000


def test_chrome_every_phase(tmp_path: Path) -> None:
    base: dict[str, object] = {"pid": 1, "tid": 2}
    found = chrome(
        {**base, "ph": "M", "name": "process_name", "args": {"name": "app"}},
        {**base, "ph": "M", "name": "thread_name", "args": {"name": "gpu"}},
        {**base, "ph": "X", "ts": 1, "dur": 2, "name": "complete", "cat": "k"},
        {**base, "ph": "B", "ts": 10, "name": "outer"}, {**base, "ph": "B", "ts": 11, "name": "inner"},
        {**base, "ph": "E", "ts": 12}, {**base, "ph": "E", "ts": 13, "name": "outer"},
        {**base, "ph": "b", "ts": 20, "name": "async", "cat": "c", "id": "0x1"},
        {**base, "ph": "b", "ts": 21, "name": "async", "cat": "c", "id": "0x2"},
        {**base, "ph": "e", "ts": 24, "name": "async", "cat": "c", "id": "0x1"},
        {**base, "ph": "e", "ts": 25, "name": "async", "cat": "c", "id": "0x2"},
        {**base, "ph": "S", "ts": 30, "name": "old", "cat": "c", "id": 3}, {**base, "ph": "F", "ts": 31, "name": "old", "cat": "c", "id": 3},  # noqa: E501  # as its tool writes it
        *({**base, "ph": phase, "ts": 40, "name": phase} for phase in ("i", "I", "R", "n")),
        {**base, "ph": "C", "ts": 41, "name": "load", "args": {"cpu": 0.5, "gpu": "0.25"}},
        *({**base, "ph": phase, "ts": 50, "name": "f", "id": 1} for phase in "stfNODvVcp(),"),
        tmp_path=tmp_path,
    )  # fmt: skip
    assert pieces(found) == [
        ("complete", 1000, 3000), ("outer", 10_000, 13_000), ("inner", 11_000, 12_000), ("async", 20_000, 24_000),
        ("async", 21_000, 25_000), ("old", 30_000, 31_000),
    ]  # fmt: skip
    assert found.timelines[0].tracks[0] == "app / gpu"
    assert [mark.name for mark in found.markers[0].markers] == ["i", "I", "R", "n"]
    assert lane(found, "1 load gpu").value.tolist() == [0.25]
    assert found.metadata["flow_events"] == "3"
    assert found.metadata["object_events"] == "3"


def test_chrome_stamps_as_text_keep_every_digit_of_an_epoch(tmp_path: Path) -> None:
    text = '[{"ph":"X","pid":1,"tid":1,"name":"a","ts":"1712195495519689.123","dur":"0.004"},{"ph":"X","pid":1,"tid":1,"name":"b","ts":1712195495519690.007,"dur":1}]'  # noqa: E501  # as its tool writes it
    assert pieces(read("chrome-trace", text, tmp_path)) == [
        ("a", 1712195495519689123, 1712195495519689127), ("b", 1712195495519690007, 1712195495519691007),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["", ",", ',\n{"ph":"X","pi', "\n]", ",\n]", ",]\n\n"])
def test_chrome_files_that_were_not_closed_give_their_whole_events(end: str, tmp_path: Path) -> None:
    text = (
        '[{"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":2},\n{"ph":"X","pid":1,"tid":1,"name":"b","ts":3,"dur":2}'
        + end
    )
    found = read("chrome-trace", text, tmp_path)
    assert pieces(found) == [("a", 1000, 3000), ("b", 3000, 5000)]
    assert ("recording_unfinished" in slugs(found)) == ("]" not in end)


def test_chrome_ends_that_do_not_nest_are_said(tmp_path: Path) -> None:
    base: dict[str, object] = {"pid": 1, "tid": 2}
    found = chrome(
        {**base, "ph": "E", "ts": 1, "name": "x"}, {**base, "ph": "B", "ts": 2, "name": "a"},
        {**base, "ph": "B", "ts": 3, "name": "b"}, {**base, "ph": "E", "ts": 4, "name": "a"},
        {**base, "ph": "X", "ts": 9, "dur": -4, "name": "back"},
        tmp_path=tmp_path,
    )  # fmt: skip
    assert pieces(found) == [("a", 2000, 4000)]
    assert {"slice_unopened", "slice_misnested", "backward_stamp"} <= slugs(found)


def test_chrome_base_of_a_proton_trace_makes_it_utc(tmp_path: Path) -> None:
    event: dict[str, object] = {"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": 1.5, "dur": 2}
    found = chrome(event, tmp_path=tmp_path, baseTimeNanoseconds=1735632360 * 10**9)
    assert pieces(found) == [("a", 1735632360 * 10**9 + 1500, 1735632360 * 10**9 + 3500)]
    assert found.timelines[0].clock.kind is ClockKind.UTC
    odd = chrome(event, tmp_path=tmp_path, baseTimeNanoseconds=17)
    assert pieces(odd) == [("a", 1500, 3500)]
    assert odd.timelines[0].clock.kind is ClockKind.MONOTONIC
    assert "base_unused" in slugs(odd)


def test_tvm_means_laid_end_to_end_are_a_profile() -> None:
    found = read("chrome-trace", shared_file("handmade", "tvm", "_tvmdbg_execution_trace.json"), Path())
    assert ("dense", 0, 12500) in pieces(found)
    assert "profile_of_means" in slugs(found)


@pytest.mark.parametrize(
    ("name", "kernels", "first_ns"),
    [
        ("mi250_minitoy_train_ROCm6_2_kineto.json.gz", 14, 1735632360 * 10**9 + 4203669603018756),
        ("kineto_resnet50_worker0.1623143089861.pt.trace.json.gz", 8772, 1623142623460016000),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 4350, None),
        ("cuda_event_sync_trace.json.gz", 4, 1707417525509335000),
    ],
)
def test_torch_recordings_of_both_time_bases(name: str, kernels: int, first_ns: int | None) -> None:
    found = read("torch-profiler", shared_file("torch_trace", name), Path())
    line = found.timelines[0]
    assert line.clock.kind is ClockKind.UTC
    assert int((line.kind_index == line.kinds.index("kernel")).sum()) == kernels
    if first_ns is not None:
        assert int(line.start_ns[0]) == first_ns


def test_torch_file_written_here_is_epoch_time() -> None:
    found = read("torch-profiler", shared_file("generated", "torch", "torch_cpu_trace.json"), Path())
    assert pieces(found)[0] == ("PyTorch Profiler (0)", 1795967080588101062, 1795967080594739444)
    assert [mark.name for mark in found.markers[0].markers] == [
        "Iteration Start: PyTorch Profiler",
        "Record Window End",
    ]


def torch(events: list[dict[str, object]], tmp_path: Path, **head: object) -> Recording:
    body = json.dumps({"schemaVersion": 1, **head, "traceEvents": events, "baseTimeNanoseconds": 1735632360 * 10**9})
    return read("torch-profiler", gzip.compress(body.encode()), tmp_path)


def test_torch_base_that_stands_at_the_end_counts(tmp_path: Path) -> None:
    found = torch([{"ph": "X", "pid": 1, "tid": 1, "name": "a", "cat": "Kernel", "ts": 5.001, "dur": 2}], tmp_path)
    assert pieces(found) == [("a", 1735632360 * 10**9 + 5001, 1735632360 * 10**9 + 7001)]
    assert found.timelines[0].kinds == ("kernel",)


def test_torch_rows_at_0_are_ignored(tmp_path: Path) -> None:
    rows = [{"ph": "X", "pid": 1, "tid": 1, "name": n, "ts": t, "dur": 2} for n, t in (("zero", 0), ("real", 10**6))]
    found = torch(rows, tmp_path)
    assert [name for name, _, _ in pieces(found)] == ["real"]
    assert "stamp_zero" in slugs(found)


def test_ort_profile_nests_and_has_no_wall_clock() -> None:
    found = read("onnxruntime-profile", shared_file("generated", "ort", "ort_2026-11-29_15-37-15_468.json"), Path())
    names = [name for name, _, _ in pieces(found)]
    assert names.count("MatMul mm") == 3
    assert ("MatMul mm", 2651_000, 2705_000) in pieces(found)
    assert ("model_loading_uri", 2_000, 256_000) in pieces(found)
    assert found.timelines[0].clock.kind is ClockKind.MONOTONIC
    assert set(found.timelines[0].kinds) == {"session", "operator"}


def test_ort_unfinished_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read("onnxruntime-profile", shared_file("generated", "ort", "ort_unfinished.json"), Path())
    assert caught.value.slug == "recording-empty"
    row = '{"cat" : "Node","pid" :7,"tid" :7,"dur" :40,"ts" :100,"ph" : "X","name" :"mm_kernel_time","args" : {"op_name" : "MatMul"}}'  # noqa: E501  # as its tool writes it
    assert pieces(read("onnxruntime-profile", "[\n" + row + ",\n]", tmp_path)) == [("MatMul mm", 100_000, 140_000)]
    cut = read("onnxruntime-profile", "[\n" + row + ",\n" + row[:40], tmp_path)
    assert pieces(cut) == [("MatMul mm", 100_000, 140_000)]
    assert "recording_unfinished" in slugs(cut)


NSYS = "Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,GreenCtx,Strm,Name\n"


def test_nsight_csv_names_may_hold_commas(tmp_path: Path) -> None:
    text = (
        NSYS
        + '4113,46,12,1,A100 (0),1,,7,void gemm<float, 4>(float*, int)\n4200,10,13,1,A100 (0),1,,7,"quoted, name"\n'
    )
    found = read("nsight-csv", text + "4300,5,14,,A100 (0),1,,8,[CUDA memcpy Host-to-Device]\n", tmp_path)
    assert pieces(found) == [
        ("void gemm<float, 4>(float*, int)", 4113, 4159), ("quoted, name", 4200, 4210), ("[CUDA memcpy Host-to-Device]", 4300, 4305),  # noqa: E501  # as its tool writes it
    ]  # fmt: skip
    assert found.timelines[0].tracks == ("A100 (0) stream 7", "A100 (0) stream 8")
    assert set(found.timelines[0].kinds) == {"kernel", "transfer"}


def test_nsight_csv_in_other_units_of_time(tmp_path: Path) -> None:
    text = (
        NSYS.replace("Start (ns)", "Start (us)").replace("Duration (ns)", "Duration (us)") + "4.113,46,12,1,A,1,,7,k\n"
    )
    assert pieces(read("nsight-csv", text, tmp_path)) == [("k", 4113, 50113)]


def test_nsight_sqlite_demo() -> None:
    found = read("nsight-sqlite", shared_file("handmade", "nsys", "demo.sqlite"), Path())
    base = 1767323045 * 10**9
    assert ("gemm_kernel", base + 1_000_000, base + 1_046_000) in pieces(found)
    assert ("inference", base + 980_000, base + 1_110_000) in pieces(found)
    assert [(mark.name, mark.time_ns) for mark in found.markers[0].markers] == [("mark", base + 985_000)]
    assert lane(found, "gpu0 SMs Active [Throughput %]").value.tolist() == [0.87]
    assert found.timelines[0].clock.kind is ClockKind.UTC
    assert "process 123 thread 1" in found.timelines[0].tracks


def test_nsight_sqlite_tables_with_a_version_and_without_a_wall_clock(tmp_path: Path) -> None:
    body = nsight_database((
        'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL_V3(start INT, "end" INT, deviceId INT, streamId INT)',
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL_V3 VALUES (5, 9, 0, 7)",
        'CREATE TABLE NVTX_EVENTS(start INT, "end" INT, eventType INT, text TEXT)',
        "INSERT INTO NVTX_EVENTS VALUES (1, NULL, 59, 'open'), (2, 8, 60, 'range')",
        'CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, "end" INT, deviceId INT, streamId INT, copyKind INT)',
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (3, 4, 0, 7, 1)",
    ))  # fmt: skip
    found = read("nsight-sqlite", body, tmp_path)
    assert pieces(found) == [("range", 2, 8), ("memcpy 1", 3, 4), ("kernel", 5, 9)]
    assert found.timelines[0].clock.kind is ClockKind.MONOTONIC
    assert "slice_unclosed" in slugs(found)
    assert not list(tmp_path.glob("*-wal")) + list(tmp_path.glob("*-journal"))


def test_a_database_of_something_else_is_not_claimed(tmp_path: Path) -> None:
    from joulemap.formats.readers import sniff_scores

    path = tmp_path / "x"
    path.write_bytes(nsight_database(("CREATE TABLE a(b INT)",)))
    assert "nsight-sqlite" not in {found.name for _, found in sniff_scores(path)}


def test_triton_stamps_out_of_order_and_objects_joined_by_id() -> None:
    found = read("triton-trace", shared_file("handmade", "triton", "trace.json"), Path())
    spans = {name: (start, end) for name, start, end in pieces(found)}
    assert spans["m request"] == (2356425054785863, 2356425057643164)
    assert spans["m queue"] == (2356425054791517, 2356425054887198)
    assert spans["m compute infer"] == (2356425054990000, 2356425057497763)
    assert [mark.name for mark in found.markers[0].markers] == ["1 INFER_RESPONSE_COMPLETE"] if found.markers else True


def test_triton_files_of_2019_have_lower_case_names(tmp_path: Path) -> None:
    text = '[{"model_name":"m","timestamps":[{"name":"request start","ns":5},{"name":"request end","ns":9}]}]'
    assert pieces(read("triton-trace", text, tmp_path)) == [("m request", 5, 9)]


def test_otlp_ids_in_hex_and_base64_are_the_same_track() -> None:
    hexa = read("otlp", shared_file("generated", "otlp", "otlp_spec_hexids.json"), Path())
    base64 = read("otlp", shared_file("generated", "otlp", "otlp_protobuf_json_base64ids.json"), Path())
    assert pieces(hexa) == pieces(base64)
    assert hexa.timelines[0].tracks == base64.timelines[0].tracks == ("bench a840391e289aea79f67decbd14c17bbb",)
    assert hexa.timelines[0].kinds == base64.timelines[0].kinds == ("internal",)
    assert pieces(hexa)[0] == ("run", 1795966714719440893, 1795966714739922326)


def test_otlp_binary_message_holds_the_same_spans_and_a_cut_one_is_said(tmp_path: Path) -> None:
    hexa = read("otlp", shared_file("generated", "otlp", "otlp_spec_hexids.json"), Path())
    path = shared_file("generated", "otlp", "otlp.pb")
    binary = read("otlp", path, Path())
    assert pieces(binary) == pieces(hexa)
    assert binary.timelines[0].tracks == hexa.timelines[0].tracks
    assert binary.timelines[0].kinds == hexa.timelines[0].kinds
    assert binary.markers[0].markers == hexa.markers[0].markers
    twice = read("otlp", path.read_bytes() * 2 + path.read_bytes()[:40], tmp_path)
    assert len(pieces(twice)) == 2 * len(pieces(hexa))
    assert "tail_cut" in slugs(twice)
    packed = wire(1, wire(2, wire(2, wire(7, b"") + wire(8, b""))))  # numbers as packed fields that hold none
    assert "stamp_unreadable" in slugs(read("otlp", path.read_bytes() + packed, tmp_path))
    with pytest.raises(FormatError) as caught:
        read("otlp", path.read_bytes()[:40], tmp_path)
    assert caught.value.slug == "protobuf-damaged"


def test_otlp_lines_of_the_sdk_have_iso_times() -> None:
    found = read("otlp", shared_file("generated", "otlp", "sdk_console_to_json.jsonl"), Path())
    assert pieces(found)[0] == ("run", 1795966714719441000, 1795966714739923000)
    assert len(found.markers[0].markers) == 2


def test_ftrace_idle_states_and_what_users_wrote() -> None:
    found = read("ftrace", shared_file("generated", "ftrace", "ftrace_cpu_idle.txt"), Path())
    assert pieces(found)[0] == ("idle 1", 4351933553000, 4351934255000)
    assert lane(found, "cpu0 idle state").value[:3].tolist() == [1.0, -1.0, 1.0]
    assert lane(found, "my_counter").value.tolist() == [42.0]
    assert [mark.name for mark in found.markers[0].markers] == ["marker_begin"]
    assert "trace_clock_unknown" in slugs(found)


def test_ftrace_frequency_and_task_names_with_dashes() -> None:
    found = read("ftrace", shared_file("handmade", "ftrace", "cpu_frequency.txt"), Path())
    assert lane(found, "cpu1 clock").value.tolist() == [2.4e9]
    assert pieces(found) == [("idle 1", 100_000_100_000, 100_001_200_000)]


def test_perf_script_in_microseconds_and_in_nanoseconds() -> None:
    micro = read("ftrace", shared_file("generated", "ftrace", "perf_script_cpu_idle.txt"), Path())
    nano = read("ftrace", shared_file("generated", "ftrace", "perf_script_ns.txt"), Path())
    assert pieces(micro)[0] == ("idle 1", 4352226160000, 4352226326000)
    assert pieces(nano)[0] == ("idle 1", 4352226160314, 4352226326884)


@pytest.mark.parametrize("name", ["ftrace_cpu_idle_clock_boot.txt", "ftrace_cpu_idle_clock_mono.txt"])
def test_ftrace_on_other_clocks(name: str) -> None:
    found = read("ftrace", shared_file("generated", "ftrace", name), Path())
    assert found.timelines[0].clock.kind is ClockKind.MONOTONIC
    assert all(end >= start for _, start, end in pieces(found))


def test_markers_of_any_unit_exact_to_the_nanosecond(tmp_path: Path) -> None:
    for head, row in (("start_ns,end_ns,name", "1500,2750,a"), ("start (us),end (us),name", "1.5,2.75,a"),
                      ("begin_ms;stop_ms;name", "0,0015;0,00275;a"), ("start_s,duration_s,name", "0.0000015,0.00000125,a"),  # noqa: E501  # as its tool writes it
                      ("start [us],dur [us],op", "1.5,1.25,a")):  # fmt: skip
        assert pieces(read("markers", f"{head}\n{row}\n", tmp_path)) == [("a", 1500, 2750)]


def test_markers_tracks_kinds_quotes_and_rows_that_are_none(tmp_path: Path) -> None:
    text = 'start_ns,end_ns,name,track,kind\n1,5,"a,b",gpu,layer\n7,6,back,gpu,layer\n8,9,c,cpu,transfer\n'
    found = read("markers", text, tmp_path)
    assert pieces(found) == [("a,b", 1, 5), ("c", 8, 9)]
    assert found.timelines[0].tracks == ("gpu", "cpu")
    assert found.timelines[0].kinds == ("layer", "transfer")
    assert "backward_stamp" in slugs(found)
    broken = read("markers", text + "x,10,d,cpu,\n,,,,\n11,12,e,cpu,\n", tmp_path)
    assert [name for name, _, _ in pieces(broken)] == ["a,b", "c", "e"]
    assert "row_unreadable" in slugs(broken)


def test_markers_with_one_time_are_instants_and_json_lines_work_alike(tmp_path: Path) -> None:
    found = read("markers", "time_us,name\n1.5,go\n2.5,stop\n", tmp_path)
    assert [(mark.time_ns, mark.name) for mark in found.markers[0].markers] == [(1500, "go"), (2500, "stop")]
    text = '{"start_us": 1.5, "end_us": 2.75, "name": "a", "track": "t"}\n\nnonsense\n'
    lines = read("markers", text, tmp_path)
    assert pieces(lines) == [("a", 1500, 2750)]
    assert "line_unreadable" in slugs(lines)


def test_markers_without_a_unit_must_be_told_it(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read("markers", "start,end,name\n1,2,a\n", tmp_path)
    assert caught.value.slug == "unit-needed"
    assert pieces(read("markers", "start,end,name\n1,2,a\n", tmp_path, units={"time": "ms"})) == [
        ("a", 10**6, 2 * 10**6)
    ]


def test_markers_are_utc_only_when_the_user_says_so(tmp_path: Path) -> None:
    text = "start_ns,end_ns,name\n1767323045000000000,1767323045000000005,a\n"
    assert read("markers", text, tmp_path).timelines[0].clock.kind is ClockKind.MONOTONIC
    utc = read("markers", text, tmp_path, utc_offset_s=3600.0).timelines[0]
    assert utc.clock.kind is ClockKind.UTC
    assert int(utc.start_ns[0]) == 1767323045000000000 - 3600 * 10**9
