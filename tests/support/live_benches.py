"""For every driver of live meters something that it can read here, and a way to take it away."""

from __future__ import annotations

import errno
import http.server
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from joulemap.meters.live.kit.nvml_stub import NVML_STUB_VARIABLE, build_nvml_stub, write_nvml_devices
from sysfs_trees import chip, write_proc, write_tree, zone

METER = "simulated:mean_w=20"  # of known power, and on every machine


@dataclass(frozen=True, kw_only=True)
class LiveBench:
    """A meter that can be read: options of its address, and what takes it away (None: it cannot be)."""

    options: dict[str, str]
    take_away: Callable[[], object] | None = None


BENCHES: dict[str, Callable[[Path, pytest.MonkeyPatch], Iterator[LiveBench]]] = {}
LASTING: set[str] = set()  # the drivers whose bench cannot be taken away


def bench(
    name: str, *, lasts: bool = False
) -> Callable[[Callable[..., Iterator[LiveBench]]], Callable[..., Iterator[LiveBench]]]:
    def keep(build: Callable[..., Iterator[LiveBench]]) -> Callable[..., Iterator[LiveBench]]:
        BENCHES[name] = build
        if lasts:
            LASTING.add(name)
        return build

    return keep


@contextmanager
def live_bench(driver: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    """The bench of a driver; skips where this machine cannot make one."""
    yield from BENCHES[driver](folder, patch)


def write_program(path: Path, text: str) -> Path:
    """An executable Python program."""
    path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def serve(pages: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """A web server on this machine; the pages may be changed while it runs, and a missing one is a 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", pages
        finally:
            server.shutdown()
            thread.join()


@bench("powercap")
def _powercap(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    write_tree(folder, {**zone("intel-rapl:0", "package-0", 5_000_000), **zone("intel-rapl:0:0", "dram", 7_000_000)})
    proc = write_proc(folder / "proc")
    yield LiveBench(
        options={"root": str(folder), "proc": str(proc)},
        take_away=lambda: shutil.rmtree(folder / "class"),
    )


@bench("perf_event", lasts=True)
def _perf_event(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    from joulemap.meters.live.ground.perf_syscall import open_perf_event

    try:
        import os

        os.close(open_perf_event(1, 0, 0))
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.ENOSYS}:
            raise  # the call itself is wrong
        pytest.skip(f"this machine lets nobody open a perf counter of a processor ({error.strerror})")
    device = "bus/event_source/devices/power"
    files = {  # the software clock of a processor, in nanoseconds, stands for its energy
        f"{device}/type": 1,
        f"{device}/cpumask": 0,
        f"{device}/format/event": "config:0-7",
        f"{device}/events/energy-pkg": "event=0x00",
        f"{device}/events/energy-pkg.scale": "1e-9",
        f"{device}/events/energy-pkg.unit": "Joules",
    }
    write_tree(folder, files)
    yield LiveBench(options={"root": str(folder), "proc": str(write_proc(folder / "proc"))})


@bench("hwmon")
def _hwmon(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    files = chip(0, "ina3221", in1_label="VDD_IN", in1_input=5000, curr1_input=1500, update_interval=7)
    write_tree(folder, files | {"class/hwmon/hwmon0/energy1_input": 12345})
    yield LiveBench(options={"root": str(folder)}, take_away=lambda: shutil.rmtree(folder / "class"))


@bench("iio")
def _iio(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    device = "bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    files = {f"{device}/name": "ina3221x", f"{device}/rail_name_0": "POM_5V_IN", f"{device}/in_power0_input": 2132}
    write_tree(folder, files | {f"{device}/rail_name_1": "POM_5V_GPU", f"{device}/in_power1_input": 80})
    yield LiveBench(options={"root": str(folder)}, take_away=lambda: shutil.rmtree(folder / "bus"))


@bench("power_supply")
def _power_supply(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    battery = "class/power_supply/BAT0"
    facts = {"type": "Battery", "status": "Discharging", "voltage_now": 11_400_000, "current_now": 1_000_000}
    write_tree(folder, {f"{battery}/{key}": value for key, value in facts.items()})
    yield LiveBench(options={"root": str(folder)}, take_away=lambda: shutil.rmtree(folder / "class"))


@bench("host", lasts=True)
def _host(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    cpu = "devices/system/cpu"
    files = {
        f"{cpu}/cpufreq/policy0/scaling_cur_freq": 2_400_000,
        f"{cpu}/cpu0/thermal_throttle/package_throttle_count": 3,
        "class/thermal/thermal_zone0/type": "x86_pkg_temp",
        "class/thermal/thermal_zone0/temp": 61_000,
    }
    write_tree(folder, files)
    yield LiveBench(options={"root": str(folder), "proc": str(write_proc(folder / "proc"))})


PLIST = """<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>elapsed_ns</key>
<integer>50000000</integer><key>processor</key><dict><key>combined_power</key><real>1500.0</real>
<key>cpu_power</key><real>1000.0</real><key>gpu_power</key><real>400.0</real><key>ane_power</key><real>100.0</real>
</dict></dict></plist>"""


@bench("powermetrics")
def _powermetrics(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    stop = folder / "stop"
    program = write_program(
        folder / "powermetrics",
        f"import sys, time, pathlib\nwhile not pathlib.Path({str(stop)!r}).exists():\n"
        f"    sys.stdout.write({PLIST!r} + chr(0)); sys.stdout.flush(); time.sleep(0.05)\n",
    )
    yield LiveBench(options={"command": str(program), "interval_ms": "50"}, take_away=stop.touch)


@bench("nvml")
def _nvml(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    library = build_nvml_stub(folder, marked=False)
    devices = folder / "devices.txt"
    device = {"uuid": "GPU-1", "name": "NVIDIA H100", "arch": 9, "energy": 1, "instant": 1, "mw": 250_000, "temp": 50}
    write_nvml_devices(devices, [device])
    patch.setenv(NVML_STUB_VARIABLE, str(devices))
    yield LiveBench(
        options={"library": str(library)}, take_away=lambda: write_nvml_devices(devices, [{**device, "lost": 1}])
    )


AMDSMI = '''
"""A stand-in for AMD SMI's binding: GPUs from the file named by the environment."""
import json, os, pathlib, time
class AmdSmiException(Exception): pass
class AmdSmiTemperatureType: JUNCTION = 1
class AmdSmiTemperatureMetric: CURRENT = 0
def _gpus(): return json.loads(pathlib.Path(os.environ["JOULEMAP_AMDSMI_STUB"]).read_text())
def amdsmi_init(*_): _gpus()
def amdsmi_shut_down(): pass
def amdsmi_get_processor_handles(): return list(range(len(_gpus())))
def _field(handle, name):
    value = _gpus()[handle].get(name)
    if value is None: raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
    return value
def amdsmi_get_energy_count(handle):
    watts = _field(handle, "energy_w")
    counts = int(watts * time.monotonic() / 15.259e-6)
    return {"energy_accumulator": counts, "counter_resolution": 15.259, "timestamp": time.monotonic_ns()}
def amdsmi_get_power_info(handle): return _field(handle, "power")
def amdsmi_get_power_cap_info(handle, sensor=0): return {"power_cap": _field(handle, "cap"), "dpm_cap": 0}
def amdsmi_get_gpu_activity(handle): return {"gfx_activity": _field(handle, "activity")}
def amdsmi_get_temp_metric(handle, kind, metric): return _field(handle, "temp")
def amdsmi_get_gpu_asic_info(handle): return {"market_name": _field(handle, "name")}
'''


@contextmanager
def amd_gpus(folder: Path, patch: pytest.MonkeyPatch, gpus: list[dict[str, object]]) -> Iterator[Path]:
    """Makes ``import amdsmi`` find a stand-in with these GPUs; yields their file."""
    (folder / "amdsmi.py").write_text(AMDSMI, "utf-8")
    path = folder / "gpus.json"
    path.write_text(json.dumps(gpus), "utf-8")
    patch.setenv("JOULEMAP_AMDSMI_STUB", str(path))
    patch.syspath_prepend(str(folder))
    patch.delitem(sys.modules, "amdsmi", raising=False)
    yield path
    sys.modules.pop("amdsmi", None)


@bench("amdsmi")
def _amdsmi(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    gpu: dict[str, object] = {"name": "MI300X", "energy_w": 300.0, "power": {"current_socket_power": 301}, "temp": 55}
    with amd_gpus(folder, patch, [gpu]) as path:
        yield LiveBench(options={}, take_away=lambda: path.write_text(json.dumps([{}]), "utf-8"))


def adb_program(folder: Path, battery: str, current: str, devices: str = "R58\tdevice") -> Path:
    """A stand-in for adb whose one device tells this of its battery."""
    (folder / "battery.txt").write_text(battery, "utf-8")
    return write_program(
        folder / "adb",
        "import sys, time, pathlib\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        f"if sys.argv[1:] == ['devices']: print('List of devices attached\\n' + {devices!r}); sys.exit()\n"
        "def one(): return (folder / 'battery.txt').read_text() + "
        f"'current_now: ' + {current!r} + '\\n'\n"
        "loop = 'while true' in sys.argv[-1]\n"
        "while not (folder / 'stop').exists():\n"
        "    sys.stdout.write(one() + ('joulemap-end\\n' if loop else '')); sys.stdout.flush()\n"
        "    if not loop: break\n"
        "    time.sleep(0.05)\n",
    )


BATTERY = """Current Battery Service state:
  AC powered: false
  status: 3
  level: 57
  voltage: 3852
  temperature: 281
"""


@bench("android")
def _android(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    program = adb_program(folder, BATTERY, "-412345")
    yield LiveBench(
        options={"adb": str(program), "serial": "R58", "every_s": "0.05"}, take_away=(folder / "stop").touch
    )


DCMI = """
    Instantaneous power reading:                   220 Watts
    Power reading state is:                   activated
"""


@bench("ipmi")
def _ipmi(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    stop = folder / "stop"
    program = write_program(
        folder / "ipmitool",
        f"import pathlib, sys\nif pathlib.Path({str(stop)!r}).exists(): sys.exit('Could not open device')\n"
        f"print({DCMI!r})\n",
    )
    yield LiveBench(options={"command": str(program), "every_s": "0.001"}, take_away=stop.touch)


@bench("redfish")
def _redfish(_folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    chassis = "/redfish/v1/Chassis"
    pages = {
        chassis: json.dumps({"Members": [{"@odata.id": f"{chassis}/1"}]}),
        f"{chassis}/1": json.dumps({"Power": {"@odata.id": f"{chassis}/1/Power"}}),
        f"{chassis}/1/Power": json.dumps({"PowerControl": [{"PowerConsumedWatts": 344}]}),
    }
    with serve(pages) as (url, served):
        yield LiveBench(options={"url": url, "every_s": "0.001"}, take_away=served.clear)


EXPOSITION = """# TYPE node_rapl_package_joules_total counter
node_rapl_package_joules_total{index="0",path="/sys/class/powercap/intel-rapl:0"} 1234.5
node_rapl_dram_joules_total{index="0",path="/sys/class/powercap/intel-rapl:0:0"} 99.5
"""


@bench("prometheus")
def _prometheus(_folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    with serve({"/metrics": EXPOSITION}) as (url, served):
        yield LiveBench(options={"url": f"{url}/metrics", "every_s": "0.001"}, take_away=served.clear)


SIM = """
spec: "1.1"
devices:
  meter:
    eom:
      TCPIP INSTR: {q: "\\n", r: "\\n"}
    error: ERROR
    dialogues:
      - {q: "*IDN?", r: "MAKER,METER,1,1.0"}
      - {q: "MEAS:CURR?", r: "+1.50000E-01"}
      - {q: "MEAS:VOLT?", r: "+3.30000E+00"}
      - {q: "MEAS:POW?", r: "9.9E37"}
resources:
  TCPIP0::192.0.2.5::inst0::INSTR: {device: meter}
"""


@bench("scpi", lasts=True)
def _scpi(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    (folder / "sim.yaml").write_text(SIM, "utf-8")
    yield LiveBench(
        options={
            "resource": "TCPIP0::192.0.2.5::inst0::INSTR",
            "library": f"{folder}/sim.yaml@sim",
            "read_termination": "lf",
            "write_termination": "lf",
        }
    )


@bench("replay", lasts=True)
def _replay(folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    rows = "".join(f"{k},{5.0 + k % 2}\n" for k in range(1000))
    (folder / "power.csv").write_text("time_s,power_w\n" + rows, "utf-8")
    yield LiveBench(options={"file": str(folder / "power.csv")})


@bench("estimate", lasts=True)
def _estimate(_folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    yield LiveBench(options={"idle_w": "8", "full_w": "45", "every_s": "0.02"})


@bench("simulated", lasts=True)
def _simulated(_folder: Path, _patch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    yield LiveBench(options={"mean_w": "20", "swing_w": "10", "shape": "square"})
