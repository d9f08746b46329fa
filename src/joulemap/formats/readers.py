"""Names of the readers of recordings, and which of them a file belongs to. The only module that names a reader.

An entry is ``name: module:class``; a module is imported when it is asked, and none of them imports anything heavy
before it reads. To add a format: one file, one line here, the contract suite green.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, cast

from joulemap.errors import FormatError, InputError, UsageError
from joulemap.formats.base import Reader
from joulemap.formats.ground.text import read_head

__all__ = ["READERS", "reader", "reader_names", "sniff", "sniff_scores"]

_ROOM: Final = "joulemap.formats"

READERS: Final[dict[str, str]] = {
    # captures of our own live meters
    "joulemap-capture": "live.capture:CaptureReader",
    # submissions to MLPerf and their runners
    "mlperf-inference": "mlperf.inference:MlperfInferenceReader",
    "energyrunner": "mlperf.energyrunner:EnergyRunnerReader",
    "energyrunner-json": "mlperf.energyrunner_json:EnergyRunnerJsonReader",
    # instruments of the bench
    "jls": "joulescope.jls:JlsReader",
    "jls-v1": "joulescope.jls_v1:JlsV1Reader",
    "joulescope-csv": "joulescope.ui_csv:JoulescopeCsvReader",
    "ppk2": "bench.ppk2:Ppk2Reader",
    "ppk2-csv": "bench.ppk2_csv:Ppk2CsvReader",
    "otii-csv": "bench.otii_csv:OtiiCsvReader",
    "otii3": "bench.otii3:Otii3Reader",
    "otii-tcp": "bench.otii_tcp:OtiiTcpReader",
    "powertool-csv": "bench.powertool:PowerToolReader",
    "pymonsoon-csv": "bench.pymonsoon:PyMonsoonReader",
    "pt4": "bench.pt4:Pt4Reader",
    "lpm01a": "bench.lpm01a:Lpm01aReader",
    "lpm01a-binary": "bench.lpm01a_binary:Lpm01aBinaryReader",
    "energytrace": "bench.energytrace:EnergyTraceReader",
    "energy-probe": "bench.energy_probe:EnergyProbeReader",
    "powersensor3": "bench.powersensor3:PowerSensor3Reader",
    # waveforms in volts
    "saleae": "waveforms.saleae:SaleaeReader",
    "saleae-csv": "waveforms.saleae_csv:SaleaeCsvReader",
    "sigrok": "waveforms.sigrok:SigrokReader",
    "sigrok-csv": "waveforms.sigrok_csv:SigrokCsvReader",
    "scope-csv": "waveforms.scope_csv:ScopeCsvReader",
    # tables of any origin
    "csv": "tables.generic_csv:GenericCsvReader",
    "parquet": "tables.parquet:ParquetReader",
    "arrow": "tables.arrow:ArrowReader",
    # gpu: graphics cards
    "nvidia-smi-csv": "gpu.nvidia_csv:NvidiaSmiCsvReader",
    "nvidia-smi-xml": "gpu.nvidia_xml:NvidiaSmiXmlReader",
    "nvidia-dmon": "gpu.nvidia_dmon:NvidiaDmonReader",
    "nvidia-pmon": "gpu.nvidia_pmon:NvidiaPmonReader",
    "dcgmi-dmon": "gpu.dcgmi:DcgmiDmonReader",
    "rocm-smi": "gpu.rocm_smi:RocmSmiReader",
    "amd-smi": "gpu.amd_smi:AmdSmiReader",
    "nvtop": "gpu.nvtop:NvtopReader",
    # jetson
    "tegrastats": "jetson.tegrastats:TegrastatsReader",
    "jtop": "jetson.jtop:JtopReader",
    # host: processors and operating systems
    "powermetrics-text": "host.powermetrics_text:PowermetricsTextReader",
    "powermetrics-plist": "host.powermetrics_plist:PowermetricsPlistReader",
    "intel-power-gadget": "host.intel_power_gadget:IntelPowerGadgetReader",
    "uprof": "host.uprof:UprofReader",
    "etw-e3": "host.e3:EtwE3Reader",
    "srum": "host.srum:SrumReader",
    "powertop": "host.powertop:PowertopReader",
    "turbostat": "host.turbostat:TurbostatReader",
    "perf-stat": "host.perf_stat:PerfStatReader",
    # trackers: energy tools and smart plugs
    "energibridge": "trackers.energibridge:EnergiBridgeReader",
    "codecarbon": "trackers.codecarbon:CodeCarbonReader",
    "powerjoular": "trackers.powerjoular:PowerJoularReader",
    "scaphandre": "trackers.scaphandre:ScaphandreReader",
    "alumet": "trackers.alumet:AlumetReader",
    "green-metrics": "trackers.green_metrics:GreenMetricsReader",
    "zeus-energy": "trackers.zeus_energy:ZeusEnergyReader",
    "zeus-power": "trackers.zeus_power:ZeusPowerReader",
    "carbontracker": "trackers.carbontracker:CarbontrackerReader",
    "shelly": "trackers.shelly:ShellyReader",
    "tasmota": "trackers.tasmota:TasmotaReader",
    "home-assistant": "trackers.home_assistant:HomeAssistantReader",
    # exposition: scraped metrics
    "prometheus": "exposition.prometheus:PrometheusReader",
    "redfish": "exposition.redfish:RedfishReader",
    # android
    "perfetto": "android.perfetto:PerfettoReader",
    "batterystats": "android.batterystats:BatterystatsReader",
    # timelines: what ran when
    "chrome-trace": "timelines.chrome:ChromeTraceReader",
    "torch-profiler": "timelines.torch_profiler:TorchProfilerReader",
    "onnxruntime-profile": "timelines.onnxruntime_profile:OnnxRuntimeProfileReader",
    "nsight-csv": "timelines.nsight_csv:NsightCsvReader",
    "nsight-sqlite": "timelines.nsight_sqlite:NsightSqliteReader",
    "triton-trace": "timelines.triton:TritonTraceReader",
    "otlp": "timelines.otlp:OtlpReader",
    "ftrace": "timelines.ftrace:FtraceReader",
    "markers": "timelines.markers:MarkersReader",
    # profiles: how long operators take
    "tflite-profile": "profiles.tflite_profile:TfliteProfileReader",
    "litert-benchmark": "profiles.litert_benchmark:LitertBenchmarkReader",
    "trtexec": "profiles.trtexec:TrtexecReader",
    "openvino": "profiles.openvino:OpenVinoReader",
    "executorch-inspector": "profiles.executorch:ExecutorchInspectorReader",
}
"""Registry name -> ``module:class`` under this room."""

_MARGIN: Final = 0.05
"""Two readers whose certainty differs by less than this both claim the file: the user decides."""


def reader_names() -> tuple[str, ...]:
    """Returns the names of all readers, sorted."""
    return tuple(sorted(READERS))


def reader(name: str) -> Reader:
    """Returns a reader by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in READERS:
        raise UsageError(
            f"no format is called {name!r}", hint=f"One of: {', '.join(reader_names())}.", slug="format-name-unknown"
        )
    module, _, symbol = READERS[name].partition(":")
    return cast("Reader", getattr(import_module(f"{_ROOM}.{module}"), symbol)())


def sniff_scores(path: Path) -> list[tuple[float, Reader]]:
    """Returns every reader that claims a file or folder, the surest first.

    Raises:
        InputError: the path is missing or unreadable.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist", hint="Check the path of the recording.", slug="recording-unreadable")
    folder = path.is_dir()
    if not folder and not path.is_file():
        raise InputError(
            f"{path} is neither a file nor a folder",
            hint="A pipe or a device can be read once only, and may never end: save it to a file first.",
            slug="recording-unreadable",
        )
    head = read_head(path)
    claims: list[tuple[float, Reader]] = []
    for name in READERS:
        candidate = reader(name)
        if folder and not candidate.folders:
            continue
        score = candidate.sniff(path, head)
        if score > 0:
            claims.append((score, candidate))
    claims.sort(key=lambda claim: (-claim[0], claim[1].name))
    return claims


def sniff(path: Path) -> Reader:
    """Returns the one reader whose format the content is.

    Raises:
        InputError: the path is missing or unreadable.
        FormatError: no reader knows the content, or two claim it alike; the message names them.
    """
    claims = sniff_scores(path)
    if not claims:
        what = "folder" if path.is_dir() else "file"
        raise FormatError(
            f"{path.name}: no reader knows this {what}",
            hint="Name the format with --format, or map its columns with --column and --unit if it is a table.",
            slug="format-unknown",
        )
    best = claims[0][0]
    tied = [candidate.name for score, candidate in claims if score > best - _MARGIN]
    if len(tied) > 1:
        raise FormatError(
            f"{path.name} may be {' or '.join(sorted(tied))}",
            hint=f"Say which with --format {min(tied)}.",
            slug="format-ambiguous",
        )
    return claims[0][1]
