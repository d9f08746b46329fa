"""What every reader promises, over the formats of computers, boards, trackers and runtimes."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from host_files import HOST_OPTIONS, HOST_SEEDS, HOST_VALUES
from joulemap.errors import InputError
from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader, sniff, sniff_scores
from reader_fuzz import change_one_value, different_values, fuzz_reader
from recording_files import SHARED, shared_file

# Whose recordings the shared files are.
KNOWN = {
    "android/perfetto_energy_breakdown.textproto": "perfetto",
    "chrome_trace/instance_counters.json": "chrome-trace",
    "chrome_trace/main_thread_has_unclosed_slices.json": "chrome-trace",
    "chrome_trace/nanoseconds.json": "chrome-trace",
    "codecarbon/emissions.csv": "codecarbon",
    "codecarbon/emissions_invalid_headers.csv": "codecarbon",
    "codecarbon/emissions_valid_headers.csv": "codecarbon",
    "generated/carbontracker/logs/32578.444528_2026-11-29T153940Z_carbontracker.log": "carbontracker",
    "generated/carbontracker/logs/32578.444528_2026-11-29T153940Z_carbontracker_output.log": "carbontracker",
    "generated/executorch/inspector.csv": "executorch-inspector",
    "generated/ftrace/ftrace_cpu_idle.txt": "ftrace",
    "generated/ftrace/ftrace_cpu_idle_clock_boot.txt": "ftrace",
    "generated/ftrace/ftrace_cpu_idle_clock_mono.txt": "ftrace",
    "generated/ftrace/perf_script_cpu_idle.txt": "ftrace",
    "generated/ftrace/perf_script_ns.txt": "ftrace",
    "generated/openvino/average_counters/benchmark_average_counters_report.csv": "openvino",
    "generated/openvino/average_counters/benchmark_report.csv": "openvino",
    "generated/openvino/detailed_counters/benchmark_detailed_counters_report.csv": "openvino",
    "generated/openvino/detailed_counters/benchmark_report.csv": "openvino",
    "generated/openvino/json/benchmark_detailed_counters_report.json": "openvino",
    "generated/openvino/json/benchmark_report.json": "openvino",
    "generated/openvino/no_counters/benchmark_report.csv": "openvino",
    "generated/ort/ort_2026-11-29_15-37-15_468.json": "onnxruntime-profile",
    "generated/otlp/otlp_protobuf_json_base64ids.json": "otlp",
    "generated/otlp/otlp_spec_hexids.json": "otlp",
    "generated/otlp/sdk_console_to_json.jsonl": "otlp",
    "generated/perf_stat/stat_human_I100.txt": "perf-stat",
    "generated/perf_stat/stat_json.txt": "perf-stat",
    "generated/perf_stat/stat_json_I100.txt": "perf-stat",
    "generated/perf_stat/stat_semicolon_I_summary.csv": "perf-stat",
    "generated/perf_stat/stat_x.csv": "perf-stat",
    "generated/perf_stat/stat_x_A_I200.csv": "perf-stat",
    "generated/perf_stat/stat_x_I100.csv": "perf-stat",
    "generated/perf_stat/stat_x_r3.csv": "perf-stat",
    "generated/perfetto/power_battery.pftrace": "perfetto",
    "generated/powertop/powertop.csv": "powertop",
    "generated/torch/torch_cpu_trace.json": "torch-profiler",
    "generated/zeus/zeus_energy.csv": "zeus-energy",
    "generated/zeus/zeus_power.csv": "zeus-power",
    "gpu_json/beszel_nvtop.json": "nvtop",
    "handmade/alumet/alumet-output.csv": "alumet",
    "handmade/amd/amdsmi_metric_power.csv": "amd-smi",
    "handmade/amd/amdsmi_monitor.csv": "amd-smi",
    "handmade/amd/rocmsmi_showpower.csv": "rocm-smi",
    "handmade/android/batterystats_checkin.txt": "batterystats",
    "handmade/ftrace/cpu_frequency.txt": "ftrace",
    "handmade/gmt/cpu_energy_rapl_msr.log": "green-metrics",
    "handmade/intel_power_gadget/log.csv": "intel-power-gadget",
    "handmade/jetson/jtop.csv": "jtop",
    "handmade/nsys/demo.sqlite": "nsight-sqlite",
    "handmade/nvidia/dcgmi_dmon.txt": "dcgmi-dmon",
    "handmade/nvidia/dmon_oDT.txt": "nvidia-dmon",
    "handmade/nvidia/pmon.txt": "nvidia-pmon",
    "handmade/plugs/homeassistant_history.csv": "home-assistant",
    "handmade/plugs/shelly_emdata.csv": "shelly",
    "handmade/plugs/tasmota_sensor.jsonl": "tasmota",
    "handmade/powerjoular/powerjoular.csv": "powerjoular",
    "handmade/prometheus/mixed.prom": "prometheus",
    "handmade/scaphandre/report.json": "scaphandre",
    "handmade/tflite/op_profile.csv": "tflite-profile",
    "handmade/triton/trace.json": "triton-trace",
    "handmade/trtexec/profile.json": "trtexec",
    "handmade/trtexec/times.json": "trtexec",
    "handmade/tvm/_tvmdbg_execution_trace.json": "chrome-trace",
    "handmade/uprof/timechart.csv": "uprof",
    "handmade/windows/e3_xperf_dumper.csv": "etw-e3",
    "handmade/windows/srumutil.csv": "srum",
    "intel_power_gadget/mock_intel_power_gadget_data.csv": "intel-power-gadget",
    "macos_powermetrics/mock_powermetrics_log.txt": "powermetrics-text",
    "macos_powermetrics/powermetrics_output.output": "powermetrics-plist",
    "macos_powermetrics/powermetrics_output_unsupported_hardware.output": "powermetrics-plist",
    "nvidia_smi/a100-sxm4-v12.xml": "nvidia-smi-xml",
    "nvidia_smi/gtx-1070-ti.xml": "nvidia-smi-xml",
    "nvidia_smi/rtx-3080-v13.xml": "nvidia-smi-xml",
    "prometheus/node_exporter_e2e-output.txt": "prometheus",
    "redfish/dell_power.json": "redfish",
    "rocm_smi/mi100_rocm571.json": "rocm-smi",
    "rocm_smi/mi100_rocm602.json": "rocm-smi",
    "rocm_smi/rx6700xt_rocm612.json": "rocm-smi",
    "torch_trace/cuda_event_sync_trace.json.gz": "torch-profiler",
    "torch_trace/kineto_resnet50_worker0.1623143089861.pt.trace.json.gz": "torch-profiler",
    "torch_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz": "torch-profiler",
    "torch_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": "torch-profiler",
}

# Shared files of these rooms that are no recording of a format that is read, with the reason.
NOT_READ = {
    "codecarbon/cpu_load_vs_rapl_1950X.csv": "a study's own table, for the mapped CSV",
    "codecarbon/cpu_load_vs_rapl_8024P.csv": "a study's own table, for the mapped CSV",
    "generated/carbontracker/logs/32578.444528_2026-11-29T153940Z_carbontracker_err.log": "warnings only",
    "generated/executorch/etdump.etdp": "a flatbuffer; the Inspector's table is read",
    "generated/openvino/average_counters/stdout.txt": "the console",
    "generated/openvino/detailed_counters/stdout.txt": "the console",
    "generated/openvino/no_counters/stdout.txt": "the console",
    "generated/ort/ort_unfinished.json": "empty",
    "generated/otlp/otlp.pb": "the binary form; the JSON form is read",
    "generated/torch/key_averages.txt": "a table of means without instants",
    "handmade/xctrace/system_power.xml": "percent of battery: no grounded energy",
    "sysfs_fixtures/kepler_testdata_tree.txt": "a tree of sysfs",
    "sysfs_fixtures/node_exporter_sys.ttar": "a tree of sysfs",
}
COUNTERS = {"energibridge", "scaphandre", "prometheus", "dcgmi-dmon", "codecarbon"}


def options_of(name: str) -> ReadOptions:
    return ReadOptions(**HOST_OPTIONS.get(name, {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(HOST_SEEDS))
def test_a_seed_is_sniffed_as_its_own_and_read(name: str, tmp_path: Path) -> None:
    body = HOST_SEEDS[name]()
    assert len(body) <= 8192
    path = tmp_path / "seed.dat"
    path.write_bytes(body)
    found = sniff(path)
    assert found.name == name
    recording = found.read(path, options_of(name))
    assert recording.format == name
    assert recording.traces or recording.timelines or recording.totals or recording.lanes
    assert recording.sources[0].sha256 == hashlib.sha256(body).hexdigest()
    assert path.read_bytes() == body
    for trace in recording.traces:
        assert all(float(trace.power_w[a:b].sum()) == 0.0 for a, b in trace.gaps.tolist())


@pytest.mark.parametrize("name", sorted(HOST_SEEDS))
@pytest.mark.parametrize("ends", ["\r\n", "blank"])
def test_line_ends_and_blank_lines_change_nothing(name: str, ends: str, tmp_path: Path) -> None:
    body = HOST_SEEDS[name]()
    if b"\0" in body or name in ("turbostat", "powermetrics-plist") or not body.isascii():
        pytest.skip("binary, or a form whose blank lines mean something")
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(body)
    plain = body.replace(b"\r\n", b"\n")
    changed = plain.replace(b"\n", b"\r\n") if ends == "\r\n" else b"\xef\xbb\xbf" + plain.replace(b"\n", b"\n\n")
    second.write_bytes(changed)
    one, two = (reader(name).read(path, options_of(name)) for path in (first, second))
    assert [t.power_w.tolist() for t in one.traces] == [t.power_w.tolist() for t in two.traces]
    assert [t.edges_ns is not None and t.edges_ns.tolist() for t in one.traces] == [
        t.edges_ns is not None and t.edges_ns.tolist() for t in two.traces
    ]
    assert [s.value for s in one.totals] == [s.value for s in two.totals]
    assert [list(t) for t in one.timelines] == [list(t) for t in two.timelines]


@pytest.mark.parametrize("name", sorted(HOST_SEEDS))
def test_every_cut_of_a_seed_gives_a_recording_or_a_typed_error(name: str, tmp_path: Path) -> None:
    body = HOST_SEEDS[name]()
    found = reader(name)
    path = tmp_path / "cut"
    for cut in sorted({round(len(body) * k / 16) for k in range(16)}):
        path.write_bytes(body[:cut])
        try:
            outcome = found.read(path, options_of(name)).format
        except InputError as error:
            outcome = error.slug
        assert outcome
        assert outcome != "internal-fault"
        assert path.read_bytes() == body[:cut]


@pytest.mark.parametrize("name", sorted(HOST_SEEDS))
def test_mutants_give_recordings_or_typed_errors(name: str, tmp_path: Path) -> None:
    report = fuzz_reader(reader(name), HOST_SEEDS[name](), options_of(name), mutants=200, folder=tmp_path, draw=11)
    assert not [why for _, why in report.failures]
    assert report.reached >= 0.3, report.outcomes
    assert report.largest_b <= 0


@pytest.mark.parametrize("name", sorted(HOST_VALUES))
def test_one_changed_value_changes_one_sample_or_is_said(name: str, tmp_path: Path) -> None:
    body = HOST_SEEDS[name]()
    found = reader(name)
    path = tmp_path / "one"
    path.write_bytes(body)
    before = found.read(path, options_of(name))
    rng = random.Random(5)
    for _ in range(20):
        path.write_bytes(change_one_value(body, HOST_VALUES[name], rng))
        after = found.read(path, options_of(name))
        said = after.findings != before.findings
        differing = different_values(before, after)
        allowed = {1, 2} if name in COUNTERS else {1}
        assert said or differing in allowed, (differing, after.findings)


@pytest.mark.parametrize("relative", sorted(KNOWN))
def test_a_shared_recording_has_exactly_one_reader(relative: str) -> None:
    path = shared_file(*relative.split("/"))
    claims = [(score, found.name) for score, found in sniff_scores(path)]
    assert claims[0][1] == KNOWN[relative]
    assert all(score < claims[0][0] - 0.05 for score, _ in claims[1:])


def test_every_shared_recording_of_these_formats_is_listed_here() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared recordings are not here")
    rooms = {Path(name).parts[: 2 if name.startswith(("generated", "handmade")) else 1] for name in (*KNOWN, *NOT_READ)}
    there = {
        path.relative_to(SHARED).as_posix()
        for room in rooms
        for path in SHARED.joinpath(*room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".md")
    }
    there -= {"generated/tflite/litert_benchmark.json", "generated/tflite/stdout.txt"}
    assert there <= set(KNOWN) | set(NOT_READ)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(HOST_SEEDS))
def test_many_mutants(name: str, tmp_path: Path) -> None:
    report = fuzz_reader(reader(name), HOST_SEEDS[name](), options_of(name), mutants=20_000, folder=tmp_path, draw=101)
    assert not [why for _, why in report.failures]
    assert report.reached >= 0.3, report.outcomes
    assert report.slowest_s <= 0.0
    assert report.largest_b <= 0
