"""Whose recordings the shared files are: each has exactly one reader, or is listed here with the reason for none."""

from __future__ import annotations

import pytest

from joulemap.errors import FormatError
from joulemap.formats.readers import sniff, sniff_scores
from recording_files import SHARED, shared_file

# A folder is one import.
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
    "generated/energytrace_recording/ledblink.etlog": "energytrace",
    "generated/executorch/inspector.csv": "executorch-inspector",
    "generated/ftrace/ftrace_cpu_idle.txt": "ftrace",
    "generated/ftrace/ftrace_cpu_idle_clock_boot.txt": "ftrace",
    "generated/ftrace/ftrace_cpu_idle_clock_mono.txt": "ftrace",
    "generated/ftrace/perf_script_cpu_idle.txt": "ftrace",
    "generated/ftrace/perf_script_ns.txt": "ftrace",
    "generated/jls/v1.jls": "jls-v1",
    "generated/jls/v2_closed.jls": "jls",
    "generated/jls/v2_unclosed.jls": "jls",
    "generated/monsoon/pymonsoon.csv": "pymonsoon-csv",
    "generated/openvino/average_counters/benchmark_average_counters_report.csv": "openvino",
    "generated/openvino/average_counters/benchmark_report.csv": "openvino",
    "generated/openvino/detailed_counters/benchmark_detailed_counters_report.csv": "openvino",
    "generated/openvino/detailed_counters/benchmark_report.csv": "openvino",
    "generated/openvino/json/benchmark_detailed_counters_report.json": "openvino",
    "generated/openvino/json/benchmark_report.json": "openvino",
    "generated/openvino/no_counters/benchmark_report.csv": "openvino",
    "generated/ort/ort_2026-11-29_15-37-15_468.json": "onnxruntime-profile",
    "generated/otii": "otii-csv",
    "generated/otii/Main current - Ace.csv": "otii-csv",
    "generated/otii/Main voltage - Ace.csv": "otii-csv",
    "generated/otii/proj": "otii3",
    "generated/otii/proj/proj.otii3": "otii3",
    "generated/otlp/otlp.pb": "otlp",
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
    "generated/sigrok/analog_only_time.csv": "sigrok-csv",
    "generated/sigrok/csv.csv": "sigrok-csv",
    "generated/sigrok/csv_label_channel.csv": "sigrok-csv",
    "generated/sigrok/csv_time_true.csv": "sigrok-csv",
    "generated/sigrok/csv_time_true_label_channel_dedup_true.csv": "sigrok-csv",
    "generated/sigrok/demo.sr": "sigrok",
    "generated/sigrok/fromsr_time.csv": "sigrok-csv",
    "generated/tflite/litert_benchmark.json": "litert-benchmark",
    "generated/torch/torch_cpu_trace.json": "torch-profiler",
    "generated/zeus/zeus_energy.csv": "zeus-energy",
    "generated/zeus/zeus_power.csv": "zeus-power",
    "gpu_json/beszel_nvtop.json": "nvtop",
    "handmade/alumet/alumet-output.csv": "alumet",
    "handmade/amd/amdsmi_metric_power.csv": "amd-smi",
    "handmade/amd/amdsmi_monitor.csv": "amd-smi",
    "handmade/amd/rocmsmi_showpower.csv": "rocm-smi",
    "handmade/android/batterystats_checkin.txt": "batterystats",
    "handmade/energy_probe/0000000000": "energy-probe",
    "handmade/ftrace/cpu_frequency.txt": "ftrace",
    "handmade/gmt/cpu_energy_rapl_msr.log": "green-metrics",
    "handmade/intel_power_gadget/log.csv": "intel-power-gadget",
    "handmade/jetson/jtop.csv": "jtop",
    "handmade/joulescope/statistics.csv": "joulescope-csv",
    "handmade/joulescope/waveform_visible.csv": "joulescope-csv",
    "handmade/lpm01a/ascii_dec.txt": "lpm01a",
    "handmade/lpm01a/bin_hexa.bin": "lpm01a-binary",
    "handmade/monsoon/demo.pt4": "pt4",
    "handmade/monsoon/powertool5.csv": "powertool-csv",
    "handmade/nsys/demo.sqlite": "nsight-sqlite",
    "handmade/nvidia/dcgmi_dmon.txt": "dcgmi-dmon",
    "handmade/nvidia/dmon_oDT.txt": "nvidia-dmon",
    "handmade/nvidia/pmon.txt": "nvidia-pmon",
    "handmade/otii/Main current - Ace.csv": "otii-csv",
    "handmade/plugs/homeassistant_history.csv": "home-assistant",
    "handmade/plugs/shelly_emdata.csv": "shelly",
    "handmade/plugs/tasmota_sensor.jsonl": "tasmota",
    "handmade/powerjoular/powerjoular.csv": "powerjoular",
    "handmade/otii/tcp_session.jsonl": "otii-tcp",
    "handmade/powersensor3/dump.txt": "powersensor3",
    "handmade/ppk2/both_bit_columns.csv": "ppk2-csv",
    "handmade/ppk2/demo.ppk2": "ppk2",
    "handmade/ppk2/old_bits.csv": "ppk2-csv",
    "handmade/ppk2/plain.csv": "ppk2-csv",
    "handmade/prometheus/mixed.prom": "prometheus",
    "handmade/saleae/analog.csv": "saleae-csv",
    "handmade/saleae/analog_0.bin": "saleae",
    "handmade/saleae/digital.csv": "saleae-csv",
    "handmade/saleae/digital_0.bin": "saleae",
    "handmade/scaphandre/report.json": "scaphandre",
    "handmade/scope/keysight.csv": "scope-csv",
    "handmade/scope/picoscope.csv": "scope-csv",
    "handmade/scope/rigol_ds1000z.csv": "scope-csv",
    "handmade/scope/siglent_new.csv": "scope-csv",
    "handmade/scope/siglent_old.csv": "scope-csv",
    "handmade/tflite/op_profile.csv": "tflite-profile",
    "handmade/triton/trace.json": "triton-trace",
    "handmade/trtexec/profile.json": "trtexec",
    "handmade/trtexec/times.json": "trtexec",
    "handmade/tvm/_tvmdbg_execution_trace.json": "chrome-trace",
    "handmade/uprof/timechart.csv": "uprof",
    "handmade/windows/e3_xperf_dumper.csv": "etw-e3",
    "handmade/windows/srumutil.csv": "srum",
    "intel_power_gadget/mock_intel_power_gadget_data.csv": "intel-power-gadget",
    "joulescope/anno1.anno.jls": "jls",
    "macos_powermetrics/mock_powermetrics_log.txt": "powermetrics-text",
    "macos_powermetrics/powermetrics_output.output": "powermetrics-plist",
    "macos_powermetrics/powermetrics_output_unsupported_hardware.output": "powermetrics-plist",
    "mlperf_inference/v2.0_NVIDIA_DGXA100_MaxQ_resnet50_Server": "mlperf-inference",
    "mlperf_inference/v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream": "mlperf-inference",
    "mlperf_inference/v5.1_GATEOverflow_TRIGKEY_mobilenet128_offline/ranging/spl.txt": "mlperf-inference",
    "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic": "energyrunner",
    "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/trace1-energy.bin": "energyrunner",
    "mlperf_tiny/v1.3_STM_NUCLEO-U575ZI-Q/kws/energy_results.json": "energyrunner-json",
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

# Shared files that are no recording of a format that is read, with the reason.
NOT_READ = {
    "codecarbon/cpu_load_vs_rapl_1950X.csv": "a study's own table, for the mapped CSV",
    "codecarbon/cpu_load_vs_rapl_8024P.csv": "a study's own table, for the mapped CSV",
    "generated/carbontracker/logs/32578.444528_2026-11-29T153940Z_carbontracker_err.log": "warnings only",
    "generated/executorch/etdump.etdp": "a flatbuffer; the Inspector's table is read",
    "generated/openvino/average_counters/stdout.txt": "the console",
    "generated/openvino/detailed_counters/stdout.txt": "the console",
    "generated/openvino/no_counters/stdout.txt": "the console",
    "generated/ort/ort_unfinished.json": "empty",
    "generated/tflite/stdout.txt": "the console",
    "generated/torch/key_averages.txt": "a table of means without instants",
    "handmade/xctrace/system_power.xml": "percent of battery: no grounded energy",
    "sysfs_fixtures/kepler_testdata_tree.txt": "a tree of sysfs",
    "sysfs_fixtures/node_exporter_sys.ttar": "a tree of sysfs",
}


@pytest.mark.parametrize("relative", sorted(KNOWN))
def test_a_shared_recording_has_exactly_one_reader(relative: str) -> None:
    path = shared_file(*relative.split("/"))
    claims = [(score, found.name) for score, found in sniff_scores(path)]
    assert claims[0][1] == KNOWN[relative]
    assert all(score < claims[0][0] - 0.05 for score, _ in claims[1:])
    assert sniff(path).name == KNOWN[relative]


@pytest.mark.parametrize(
    "relative",
    [
        "facts/cells.json",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/trace1-timestamps.json",
        "mlperf_inference/v2.0_NVIDIA_Orin_MaxQ_bert-99_SingleStream/power/client.json",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/log.txt",
        "mlperf_tiny/v1.1_Krai_NUCLEO-H7A3ZI-Q/ic/results.txt",
    ],
)
def test_what_is_no_recording_has_no_reader(relative: str) -> None:
    path = shared_file(*relative.split("/"))
    with pytest.raises(FormatError) as caught:
        sniff(path)
    assert caught.value.slug == "format-unknown"


def test_every_shared_recording_is_listed_here() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared recordings are not here")
    there = {
        path.relative_to(SHARED).as_posix()
        for room in SHARED.iterdir()
        if room.is_dir() and not room.name.startswith(("facts", "mlperf"))
        for path in room.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".md")
    }
    folders = tuple(f"{name}/" for name in KNOWN if (SHARED / name).is_dir() and "otii/proj" in name)
    assert sorted(name for name in there - set(KNOWN) - set(NOT_READ) if not name.startswith(folders)) == []
