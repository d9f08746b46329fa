"""Profiles of runtimes: means laid out as a schedule, real runs as slices, and the shared files."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_reading import read, slugs, total
from joulemap.errors import FormatError
from recording_files import shared_file


def test_tflite_run_order_only_and_names_with_commas(tmp_path: Path) -> None:
    found = read("tflite-profile", shared_file("handmade", "tflite", "op_profile.csv"), Path())
    assert [(p.name, p.start_ns, p.end_ns) for p in found.timelines[0]] == [
        ("CONV_2D [model/conv]:0", 1000, 402_000), ("SOFTMAX [out]:1", 402_000, 501_000),
    ]  # fmt: skip
    assert "profile_of_means" in slugs(found)
    head = "==== Run Order ====\nnode type, start, first, avg_ms, %, cdf%, mem KB, times called, name\n"
    text = (
        head
        + "ADD, 0.0, 1.0, 0.5, 100%, 100%, 0, 1, [a, b]:3\n\n"
        + head
        + "INNER, 0.0, 1.0, 0.5, 100%, 100%, 0, 1, [x]:0\n"
    )
    found = read("tflite-profile", text, tmp_path)
    assert [p.name for p in found.timelines[0]] == ["ADD [a, b]:3"]
    assert "section_inside" in slugs(found)


def test_trtexec_times_from_the_start_of_the_run() -> None:
    found = read("trtexec", shared_file("handmade", "trtexec", "times.json"), Path())
    compute = [(p.start_ns, p.end_ns) for p in found.timelines[0] if p.name == "compute"]
    assert compute == [(30_000, 930_000), (980_000, 1_880_000)]


def test_trtexec_profile_takes_means_and_names_with_quotes(tmp_path: Path) -> None:
    found = read("trtexec", shared_file("handmade", "trtexec", "profile.json"), Path())
    assert [(p.name, p.start_ns, p.end_ns) for p in found.timelines[0]] == [
        ("conv1 + relu1", 0, 600_000), ("fc", 600_000, 900_000),
    ]  # fmt: skip
    assert found.metadata["inferences"] == "100"
    text = (
        '[\n  { "count" : 100 }\n, { "name" : "a "b" c", "timeMs" : 60.0, "averageMs" : 0.6, "percentage" : 66.7 }\n]\n'
    )
    assert [p.name for p in read("trtexec", text, tmp_path).timelines[0]] == ['a "b" c']


OPENVINO = ("generated", "openvino")


@pytest.mark.parametrize(
    ("path", "first_ns", "all_ns"),
    [
        (("average_counters", "benchmark_average_counters_report.csv"), 55_000, 2_804_000),
        (("detailed_counters", "benchmark_detailed_counters_report.csv"), 59_000, 2_789_000),
        (("json", "benchmark_detailed_counters_report.json"), 62_000, None),
    ],
)
def test_openvino_counters_of_executed_layers(path: tuple[str, str], first_ns: int, all_ns: int | None) -> None:
    found = read("openvino", shared_file(*OPENVINO, *path), Path())
    line = found.timelines[0]
    assert len(line) == 6
    assert next(iter(line)).end_ns == first_ns
    if all_ns is not None:
        assert int(line.end_ns[-1]) == all_ns
        assert total(found, "request_0_layers_time_s") == pytest.approx(all_ns * 1e-9)


@pytest.mark.parametrize(
    ("path", "mean_s", "rate"),
    [
        (("average_counters", "benchmark_report.csv"), 2.01e-3, 374.61),
        (("detailed_counters", "benchmark_report.csv"), 2.03e-3, 372.63),
        (("no_counters", "benchmark_report.csv"), 2.04e-3, 364.71),
        (("json", "benchmark_report.json"), 2.05e-3, 367.56),
    ],
)
def test_openvino_reports_state_latency_and_rate(path: tuple[str, str], mean_s: float, rate: float) -> None:
    found = read("openvino", shared_file(*OPENVINO, *path), Path())
    assert total(found, "mean_latency_s") == pytest.approx(mean_s)
    assert total(found, "throughput_per_s") == rate
    assert total(found, "inferences_count") == 3.0


def test_openvino_a_blank_line_between_requests(tmp_path: Path) -> None:
    head = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n"
    block = head + "c;Status.EXECUTED;Conv;jit;0.5;0.5\nr;Status.NOT_RUN;Relu;u;0.0;0.0\nTotal;;;;0.5;0.5\n\n"
    found = read("openvino", block + block, tmp_path)
    assert [(p.track, p.start_ns, p.end_ns) for p in found.timelines[0]] == [
        ("request 0", 0, 500_000), ("request 1", 0, 500_000),
    ]  # fmt: skip


def test_executorch_runs_are_slices_of_a_raw_counter_and_the_cold_one_is_said() -> None:
    found = read("executorch-inspector", shared_file("generated", "executorch", "inspector.csv"), Path())
    calls = [(p.start_ns, p.end_ns) for p in found.timelines[0] if p.name == "native_call_permute_copy.out"]
    assert calls[0] == (556703208, 556703208 + 71_337)
    assert calls[1] == (557166503, 557166503 + 931)
    assert "cold_run" in slugs(found)
    assert {p.kind for p in found.timelines[0] if p.name == "Method::execute"} == {"run"}


def test_litert_latencies_are_stated_and_a_rounded_0_is_missing(tmp_path: Path) -> None:
    found = read("litert-benchmark", shared_file("generated", "tflite", "litert_benchmark.json"), Path())
    assert {stated.key: stated.value for stated in found.totals} == {
        "init_s": pytest.approx(0.98e-3), "first_warmup_latency_s": pytest.approx(0.03e-3), "inferences_count": 5.0,
    }  # fmt: skip
    assert {"value_below_resolution", "no_power"} <= slugs(found)
    body = '{"accelerators": [], "latency": {"warmup_avg_ms": 0, "avg_ms": 1.25, "max_ms": "x", "num_runs": 3}}'
    made = read("litert-benchmark", body, tmp_path)
    assert total(made, "mean_latency_s") == pytest.approx(1.25e-3)
    assert "value_unreadable" in slugs(made)
    with pytest.raises(FormatError) as caught:
        read("litert-benchmark", '{"latency": {"avg_ms": 0.0}}', tmp_path)
    assert caught.value.slug == "recording-empty"
