"""Meters that print, answer or are played: powermetrics, adb, ipmitool, Redfish, exporters, SCPI, replay, estimate."""

from __future__ import annotations

import http.server
import json
import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import PowerError, SetupError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.discovery import discover, find_meters
from joulemap.meters.live.drivers.device.android import AndroidMeter
from joulemap.meters.live.drivers.host.powermetrics import PowermetricsMeter
from joulemap.meters.live.drivers.virtual import replay
from joulemap.meters.live.drivers.virtual.replay import ReplayMeter
from joulemap.meters.live.drivers.virtual.simulated import SimulatedLiveMeter
from joulemap.meters.live.ground.cpu_load import CpuLoad
from joulemap.meters.live.ground.http_text import fetch_text
from joulemap.meters.live.ground.paced_meter import Answer, AskError, PacedMeter
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress
from live_benches import BATTERY, SIM, adb_program, serve, write_program
from sysfs_trees import chip, write_proc, write_tree, zone

SHARED = Path(__file__).parents[5] / "shared" / "data"


def values(meter: LiveMeter) -> dict[str, float]:
    row = np.full(len(meter.domains), -1.0)
    meter.read(row)
    return {domain.name: float(row[at]) * domain.scale for at, domain in enumerate(meter.domains)}


def plist(elapsed_ns: int, **processor: float) -> bytes:
    body = "".join(f"<key>{key}</key><real>{value}</real>" for key, value in processor.items())
    head = '<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>'
    inner = f"<key>elapsed_ns</key><integer>{elapsed_ns}</integer><key>processor</key><dict>{body}</dict>"
    return f"{head}{inner}</dict></plist>\n".encode()


def apple(tmp_path: Path, *pieces: bytes) -> PowermetricsMeter:
    (tmp_path / "out.bin").write_bytes(b"\0".join(pieces))
    program = write_program(
        tmp_path / "powermetrics",
        f"import sys, time\nsys.stdout.buffer.write(open({str(tmp_path / 'out.bin')!r}, 'rb').read())\n"
        "sys.stdout.flush()\nsys.stdout.close()\ntime.sleep(20)\n",
    )
    return PowermetricsMeter(MeterAddress(driver="powermetrics", options={"command": str(program)}))


def settled(meter: PowermetricsMeter, name: str) -> float:
    """Energy once the stream has been read to its end."""
    before, deadline = -1.0, time.monotonic() + 5.0
    while time.monotonic() < deadline:
        now = values(meter)[name]
        if now == before:
            return now
        before = now
        time.sleep(0.05)
    return before


def test_combined_of_macos_13_is_not_a_package(tmp_path: Path) -> None:
    sample = plist(200_000_000, combined_power=1500.0, cpu_power=1000.0, gpu_power=400.0, ane_power=100.0)
    meter = apple(tmp_path, sample, sample)
    meter.open()
    found = {domain.name: domain for domain in meter.domains}
    assert "Package" not in found
    assert found["Combined"].boundary is Boundary.SOC
    assert found["CPU"].inside == ("Combined",)
    assert all(domain.provenance is Provenance.ESTIMATED for domain in found.values())
    assert settled(meter, "Combined") == pytest.approx(2 * 1.5 * 0.2)
    meter.close()


def test_energy_belongs_to_its_interval_and_never_flickers(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(1_000_000_000, cpu_energy=947.0, package_energy=1473.0))
    meter.open()
    found = {domain.name: domain for domain in meter.domains}
    assert found["CPU"].reading is DomainReading.ENERGY_COUNTER
    assert found["CPU"].inside == ("Package",)
    assert settled(meter, "Package") == pytest.approx(1.473)
    assert len({values(meter)["Package"] for _ in range(50)}) == 1  # polled faster than it is renewed
    meter.close()


def test_a_package_of_intel_is_a_counter(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(4_295_788_088, package_joules=13.0469, package_watts=3.03713))
    meter.open()
    (package,) = meter.domains
    assert (package.boundary, package.provenance) == (Boundary.PACKAGE, Provenance.MEASURED_COUNTER)
    assert settled(meter, "Package") == pytest.approx(13.0469)
    meter.close()


def test_a_virtual_mac_has_no_power(tmp_path: Path) -> None:
    meter = apple(tmp_path, plist(1_000_000_000))
    with pytest.raises(SetupError) as caught:
        meter.open()
    assert "no power" in caught.value.message


def test_a_damaged_sample_is_left_out(tmp_path: Path) -> None:
    good = plist(1_000_000_000, combined_power=2000.0)
    meter = apple(tmp_path, b"<plist>cut", good, b"\x01\x02", good)
    meter.open()
    assert settled(meter, "Combined") == pytest.approx(4.0)
    meter.close()


def phone(tmp_path: Path, battery: str = BATTERY, current: str = "-412345", **options: str) -> AndroidMeter:
    program = adb_program(tmp_path, battery, current)
    return AndroidMeter(MeterAddress(driver="android", options={"adb": str(program), "serial": "R58", **options}))


@pytest.mark.parametrize(
    ("current", "options", "expected_a"),
    [
        ("-412345", {}, 0.412345),
        ("412345", {}, 0.412345),
        ("-412", {}, 0.412),
        ("900", {"unit": "ua"}, 0.0009),
        ("20000", {"unit": "ma"}, 20.0),
    ],
)
def test_unit_and_sign_of_a_phone_are_found_out(
    tmp_path: Path, current: str, options: dict[str, str], expected_a: float
) -> None:
    meter = phone(tmp_path, current=current, **options)
    meter.open()
    assert values(meter)["power"] == pytest.approx(expected_a * 3.852)
    meter.close()


@pytest.mark.parametrize(("written", "volts"), [("3852", 3.852), ("3852000", 3.852), ("4", 4.0)])
def test_a_voltage_is_in_milli_or_microvolts(tmp_path: Path, written: str, volts: float) -> None:
    meter = phone(tmp_path, BATTERY.replace("3852", written))
    meter.open()
    assert values(meter)["voltage"] == pytest.approx(volts)
    assert values(meter)["temperature"] == pytest.approx(28.1)
    assert values(meter)["level"] == pytest.approx(0.57)
    meter.close()


def test_a_phone_on_its_charger_says_nothing(tmp_path: Path) -> None:
    meter = phone(tmp_path, BATTERY.replace("status: 3", "status: 2"), "900000")
    assert "charged" in meter.candidate().problem
    assert "Wi-Fi" in meter.candidate().fix
    meter.open()
    assert math.isnan(values(meter)["power"])
    meter.close()


@pytest.mark.parametrize(
    ("state", "words"), [("unauthorized", "allowed"), ("offline", "does not answer"), ("no permissions (x)", "may not")]
)
def test_a_phone_that_cannot_be_used_has_its_fix(tmp_path: Path, state: str, words: str) -> None:
    program = adb_program(tmp_path, BATTERY, "1", devices=f"R58\t{state}")
    (candidate,) = discover(["android"], options={"android": {"adb": str(program)}})
    assert words in candidate.problem
    assert candidate.fix


def test_without_adb_the_fix_is_to_install_it(tmp_path: Path) -> None:
    (candidate,) = discover(["android"], options={"android": {"adb": str(tmp_path / "none")}})
    assert candidate.fix == "sudo apt-get install adb"


SENSORS = """PS1 Input Power  | C0h | ok  | 10.1 | 180 Watts
PS2 Input Power  | C1h | ok  | 10.2 | 176 Watts
CPU1 Power       | D0h | ok  |  3.1 | 90 Watts
FAN1             | 41h | ok  | 29.1 | 4200 RPM
"""


@pytest.mark.parametrize("dcmi", ["", "Instantaneous power reading: 0 Watts\nPower reading state is: deactivated"])
def test_without_dcmi_the_power_sensors_are_read(tmp_path: Path, dcmi: str) -> None:
    program = write_program(
        tmp_path / "ipmitool", f"import sys\nprint({dcmi!r} if 'dcmi' in sys.argv else {SENSORS!r})\n"
    )
    (candidate,) = discover(["ipmi"], options={"ipmi": {"command": str(program)}})
    found = {domain.name: domain for domain in candidate.domains}
    assert sorted(found) == ["CPU1 Power", "PS1 Input Power", "PS2 Input Power"]
    assert found["CPU1 Power"].inside == ("PS1 Input Power", "PS2 Input Power")
    meter = open_meter(candidate.address)
    assert values(meter)["PS1 Input Power"] == 180.0


def test_a_service_processor_for_root_only_has_its_fix(tmp_path: Path) -> None:
    said = "Could not open device at /dev/ipmi0 or /dev/ipmi/0: Permission denied"
    program = write_program(tmp_path / "ipmitool", f"import sys\nsys.exit({said!r})\n")
    (candidate,) = discover(["ipmi"], options={"ipmi": {"command": str(program)}})
    assert candidate.fix.startswith("sudo chmod a+rw /dev/ipmi0")


def test_a_real_answer_of_redfish(tmp_path: Path) -> None:
    path = SHARED / "redfish" / "dell_power.json"
    if not path.exists():
        pytest.skip("the shared recordings are not here")
    home = "/redfish/v1/Chassis/System.Embedded.1/Power"
    with serve({home: path.read_text("utf-8")}) as (url, _):
        (candidate,) = discover(["redfish"], options={"redfish": {"url": url + home}})
        found = {domain.name: domain for domain in candidate.domains}
        meter = open_meter(candidate.address)
        read = values(meter)
    assert read["System.Embedded.1/control-0"] == 429.0
    assert found["System.Embedded.1/control-0"].boundary is Boundary.NODE
    supplies = [domain for name, domain in found.items() if name.endswith("-input")]
    assert supplies
    assert all(domain.boundary is Boundary.WALL for domain in supplies)
    assert tmp_path.exists()


def test_redfish_energy_contains_its_power_and_a_password_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chassis = "/redfish/v1/Chassis"
    pages = {
        chassis: json.dumps({"Members": [{"@odata.id": f"{chassis}/1"}, "nonsense"]}),
        f"{chassis}/1": json.dumps({"EnvironmentMetrics": {"@odata.id": f"{chassis}/1/Env"}}),
        f"{chassis}/1/Env": json.dumps({"PowerWatts": {"Reading": 374}, "EnergykWh": {"Reading": 2.5}}),
    }
    monkeypatch.setenv("BMC_PASSWORD", "secret")
    with serve(pages) as (url, _):
        options = {"url": url, "user": "operator", "password_env": "BMC_PASSWORD"}
        (candidate,) = discover(["redfish"], options={"redfish": options})
    assert {d.name: d.inside for d in candidate.domains} == {"1/energy": (), "1/power": ("1/energy",)}
    assert "secret" not in repr(candidate)


@pytest.mark.parametrize("driver", ["redfish", "prometheus"])
@pytest.mark.parametrize("url", ["", "http://operator:secret@192.0.2.9/metrics"])
def test_an_address_is_needed_and_holds_no_password(driver: str, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        discover([driver], options={driver: {"url": url}})
    assert caught.value.slug == "meter-option"
    assert "secret" not in caught.value.message


def test_credentials_go_to_the_named_host_and_no_other() -> None:
    told: list[str | None] = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(self.headers.get("Authorization"))
            if self.path == "/there":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"x_joules_total 1")
            else:
                self.send_response(302)
                self.send_header("Location", "/there")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/here"
        assert fetch_text(url, timeout_s=5.0, user="operator", password="secret") == "x_joules_total 1"
        server.shutdown()
        thread.join()
    assert told[0] is not None
    assert told[1] is None


@pytest.mark.parametrize(
    ("url", "words"),
    [("ftp://192.0.2.1", "no http address"), ("http://127.0.0.1:9", "does not answer")],
)
@pytest.mark.parametrize("driver", ["redfish", "prometheus"])
def test_an_address_that_does_not_answer_is_told(driver: str, url: str, words: str) -> None:
    (candidate,) = discover([driver], options={driver: {"url": url}})
    assert words in candidate.problem
    assert candidate.fix


MIG = """DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",GPU_I_ID="7"} 240
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",GPU_I_ID="8"} 240
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",GPU_I_ID="9"} 240
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-1",GPU_I_ID="7"} 5000
kepler_container_cpu_joules_total{container_id="x",zone="package"} 9.9e15
kepler_node_cpu_joules_total{zone="package",path="/sys/class/powercap/intel-rapl:0"} 10
kepler_node_cpu_joules_total{zone="core",path="/sys/class/powercap/intel-rapl:0:0"} 6
kepler_node_cpu_joules_total{zone="dram",path="/sys/class/powercap/intel-rapl:0:1"} 2
kepler_node_cpu_joules_total{zone="psys",path="/sys/class/powercap/intel-rapl:1"} 20
node_platform_joules_total{instance="a"} NaN
garbage{ 5
scaph_host_power_microwatts 5150000
"""


def exporter(text: str, **options: str) -> dict[str, tuple[LiveDomain, float]]:
    with serve({"/m": text}) as (url, _):
        (candidate,) = discover(["prometheus"], options={"prometheus": {"url": f"{url}/m", **options}})
        assert candidate.usable, candidate.problem
        meter = open_meter(candidate.address)
        read = values(meter)
    return {domain.name: (domain, read[domain.name]) for domain in candidate.domains}


def test_slices_that_show_the_whole_gpu_are_one_domain() -> None:
    found = exporter(MIG)
    gpus = [name for name in found if name.startswith("DCGM")]
    assert gpus == ["DCGM_FI_DEV_POWER_USAGE[GPU-1]", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[GPU-1]"]
    assert found[gpus[1]][1] == pytest.approx(5.0)
    assert found[gpus[0]][0].inside == (gpus[1],)


def test_zones_of_an_exporter_overlap_and_limits_are_declared() -> None:
    found = {name.partition("[")[2].rstrip("]"): domain for name, (domain, _) in exporter(MIG).items()}
    zones = {key: domain for key, domain in found.items() if "intel-rapl" in key}
    by_zone = {key.rpartition("/")[2]: domain for key, domain in zones.items()}
    assert by_zone["psys"].boundary is Boundary.NODE
    assert len(by_zone["core"].inside) >= 2
    assert not any("/package" in outer and "joules" in outer for outer in by_zone["dram"].inside)
    assert by_zone["package"].largest_w == 2000.0


def test_what_an_exporter_attributes_is_its_estimate_and_left_out() -> None:
    assert not [name for name in exporter(MIG) if "container" in name]
    (asked,) = exporter(MIG, metric="container_cpu_joules").values()
    assert asked[0].provenance is Provenance.ESTIMATED


def test_a_missing_value_is_no_domain_and_microwatts_are_scaled() -> None:
    found = exporter(MIG)
    assert not [name for name in found if "platform" in name]
    assert found["scaph_host_power_microwatts"][1] == pytest.approx(5.15)


def test_an_answer_without_power_is_told() -> None:
    with serve({"/m": "process_cpu_seconds_total 5\n"}) as (url, _):
        (candidate,) = discover(["prometheus"], options={"prometheus": {"url": f"{url}/m"}})
    assert "no energy and no power" in candidate.problem


def test_a_real_exposition_of_node_exporter() -> None:
    path = SHARED / "prometheus" / "node_exporter_e2e-output.txt"
    if not path.exists():
        pytest.skip("the shared recordings are not here")
    found = exporter(path.read_text("utf-8"))
    counters = {name: domain for name, (domain, _) in found.items() if name.startswith("node_rapl_package")}
    assert counters
    assert all(domain.boundary is Boundary.PACKAGE for domain in counters.values())
    assert all(domain.reading is not DomainReading.SIGNAL for domain, _ in found.values())


def instrument(tmp_path: Path, **options: str) -> MeterAddress:
    pytest.importorskip("pyvisa_sim", reason="the instrument is simulated by pyvisa-sim")
    (tmp_path / "sim.yaml").write_text(SIM, "utf-8")
    given = {"resource": "TCPIP0::192.0.2.5::inst0::INSTR", "library": f"{tmp_path}/sim.yaml@sim"}
    ends = {"read_termination": "lf", "write_termination": "lf"}
    return MeterAddress(driver="scpi", options=given | ends | options)


def test_voltage_times_current_of_an_instrument(tmp_path: Path) -> None:
    meter = open_meter(instrument(tmp_path))
    assert values(meter)["output"] == pytest.approx(0.495)
    assert "MAKER" in meter.domains[0].source
    meter.close()


def test_a_supply_of_a_stated_voltage_needs_the_current_alone(tmp_path: Path) -> None:
    meter = open_meter(instrument(tmp_path, volts="1.8"))
    assert values(meter)["output"] == pytest.approx(0.27)
    meter.close()


@pytest.mark.parametrize("query", ["MEAS:POW?", "NONSENSE?"])
def test_an_overload_or_an_error_is_no_reading(tmp_path: Path, query: str) -> None:
    with pytest.raises(SetupError) as caught:
        open_meter(instrument(tmp_path, power_query=query, timeout_s="0.2"))
    assert caught.value.slug == "meter-unusable"


def test_an_instrument_that_is_not_there_is_told(tmp_path: Path) -> None:
    address = instrument(tmp_path, resource="TCPIP0::192.0.2.77::inst0::INSTR")
    with pytest.raises(SetupError, match="does not answer"):
        open_meter(address)


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.ns = 10**12

    def __call__(self) -> int:
        return self.ns


def replayed(path: Path, clock: Hand, **options: str) -> ReplayMeter:
    meter = ReplayMeter(MeterAddress(driver="replay", options={"file": str(path), **options}), clock)
    meter.open()
    return meter


def test_a_recording_is_played_against_the_clock(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("time_s,power_w\n0,9\n1,2\n2,4\n3,6\n")
    clock = Hand()
    meter = replayed(tmp_path / "p.csv", clock)
    seen = []
    for step in (0.0, 0.5, 1.0, 1.0):
        clock.ns += round(step * 1e9)
        seen.append(values(meter)["p"])
    assert seen == pytest.approx([0.0, 1.0, 4.0, 9.0])  # 2 W, then 4 W, then 6 W
    assert values(meter)["p power"] == 4.0
    clock.ns += 10**9
    with pytest.raises(PowerError, match="over"):
        values(meter)


def test_a_gap_of_a_recording_is_missing_and_no_time_without_energy(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("time_s,power_w\n0,1\n1,2\n2,\n3,6\n")
    clock = Hand()
    meter = replayed(tmp_path / "p.csv", clock)
    seen = []
    for step in (0.5, 1.0, 1.0):
        clock.ns += round(step * 1e9)
        seen.append(values(meter)["p"])
    assert seen[0] == pytest.approx(1.0)
    assert math.isnan(seen[1])
    assert seen[2] < seen[0]  # the counter falls: a step across the gap is lost


def test_a_recording_may_go_round_and_faster(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time_s,energy_j\n10,100\n11,102\n12,106\n")
    clock = Hand()
    meter = replayed(tmp_path / "e.csv", clock, loop="yes", speed="2")
    clock.ns += round(2.5e9)  # 5 s of the recording: twice through it and one second more
    assert values(meter)["e"] == pytest.approx(14.0)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "time_s,power_w\n0,x\n1,2\n", "time_s,power_w\n1,1\n0,2\n"])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(SetupError) as caught:
        replayed(tmp_path / "p.csv", Hand())
    assert caught.value.slug == "meter-unusable"


def test_an_estimate_needs_its_two_powers_and_says_what_it_is(tmp_path: Path) -> None:
    for options in ({}, {"idle_w": "5"}, {"idle_w": "9", "full_w": "5"}, {"idle_w": "x", "full_w": "5"}):
        with pytest.raises(UsageError) as caught:
            discover(["estimate"], options={"estimate": options})
        assert caught.value.slug == "meter-option"
    options = {"idle_w": "10", "full_w": "50", "proc": str(write_proc(tmp_path))}
    (candidate,) = discover(["estimate"], options={"estimate": options})
    assert candidate.domains[0].provenance is Provenance.ESTIMATED
    assert not [c for c in discover() if c.address.driver == "estimate"]


def test_utilisation_is_the_share_of_time_that_was_not_idle(tmp_path: Path) -> None:
    clock = Hand()
    stat = write_proc(tmp_path) / "stat"
    load = CpuLoad(stat, every_s=1.0, now_ns=clock)
    load.open()
    assert math.isnan(load.read())  # no interval has passed
    descriptor_text = "cpu  130 0 50 860 30 0 0 0 0 0\n"
    stat.write_text(descriptor_text)
    clock.ns += 10**9
    assert load.read() == pytest.approx(0.3)
    clock.ns += 10**9
    assert load.read() == pytest.approx(0.3)  # the kernel counted no tick since
    load.close()


def test_a_meter_behind_an_address_is_asked_no_more_often_than_it_may() -> None:
    clock = Hand()
    asked: list[int] = []
    answers = [5.0, 6.0, None, None, None]
    domain = LiveDomain(
        name="a",
        reading=DomainReading.POWER,
        unit="W",
        scale=1.0,
        provenance=Provenance.MEASURED_SAMPLED,
        boundary=Boundary.NODE,
    )

    def ask() -> Answer:
        asked.append(clock.ns)
        value = answers[len(asked) - 1]
        if value is None:
            raise AskError("no answer")
        return {"a": (domain, value)}

    meter = PacedMeter(MeterAddress(driver="x"), "x", ask, every_s=1.0, now_ns=clock)
    meter.open()
    seen = []
    for _ in range(30):
        seen.append(values(meter)["a"])
        clock.ns += 10**8
    assert len(asked) == 3
    assert seen[0] == 5.0
    assert seen[10] == 6.0
    assert math.isnan(seen[20])
    clock.ns += 10**9
    values(meter)
    clock.ns += 10**9
    with pytest.raises(PowerError, match="three times"):
        values(meter)


def test_a_simulated_meter_is_its_power_function() -> None:
    clock = Hand()
    options = {"mean_w": "20", "swing_w": "10", "period_s": "0.5", "shape": "square"}
    meter = SimulatedLiveMeter(MeterAddress(driver="simulated", options=options), clock)
    meter.open()
    before, start_ns = values(meter)["rail"], clock.ns
    clock.ns += 123_456_789
    energy_j = values(meter)["rail"] - before
    assert energy_j == pytest.approx(meter.wave.energy_j(start_ns, clock.ns), abs=2e-6)
    power = SimulatedLiveMeter(MeterAddress(driver="simulated", options={**options, "reading": "power"}), clock)
    power.open()
    clock.ns += 10**8
    assert values(power)["rail"] == pytest.approx(power.wave.mean_power_w(clock.ns - 10**8, clock.ns))
    with pytest.raises(UsageError):
        SimulatedLiveMeter(MeterAddress(driver="simulated", options={"mean_w": "1", "swing_w": "2"}))


def test_names_are_candidates_drivers_or_drivers_with_options() -> None:
    assert [candidate.name for candidate in find_meters(["simulated", "simulated"])] == ["simulated"]
    two = find_meters(["simulated:name=a,mean_w=1", "simulated:name=b,mean_w=2"])
    assert [candidate.name for candidate in two] == ["a", "b"]
    for text, slug in (
        ("nothing", "meter-unknown"),
        ("simulated:mean_w", "meter-unknown"),
        ("simulated:mean_w=1,x", "meter-option"),
        ("prometheus", "meter-option"),
    ):
        with pytest.raises(UsageError) as caught:
            find_meters([text])
        assert caught.value.slug == slug, text


def test_signals_alone_are_no_power_meter(tmp_path: Path) -> None:
    nowhere = {name: {"root": str(tmp_path)} for name in ("powercap", "perf_event", "hwmon", "iio", "power_supply")}
    elsewhere = [c for c in discover(options=nowhere) if any(domain.boundary for domain in c.domains)]
    if elsewhere:
        pytest.skip(f"this machine has {elsewhere[0].name}, which no folder can hide")
    with pytest.raises(SetupError, match="powercap") as caught:
        find_meters(options=nowhere)
    assert caught.value.slug == "no-live-meter"


def test_without_a_name_no_counter_is_read_by_two_roads(tmp_path: Path) -> None:
    files: dict[str, object] = {**zone("intel-rapl:0", "package-0", 1), **chip(0, "amd_energy", energy1_input=5)}
    write_tree(tmp_path, files | {"class/hwmon/hwmon0/energy1_label": "Esocket0"})
    write_proc(tmp_path / "proc")
    options = {name: {"root": str(tmp_path)} for name in ("powercap", "perf_event", "hwmon", "iio", "power_supply")}
    names = {candidate.name for candidate in find_meters(options=options)}
    assert "powercap" in names
    assert not names & {"perf_event", "hwmon:amd_energy"}
    assert [candidate.name for candidate in find_meters(["hwmon"], options=options)] == ["hwmon:amd_energy"]


def test_a_device_or_a_pipe_is_not_replayed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")  # reading either would never end
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        (candidate,) = replay.discover_meters({"file": str(path)})
        assert "no regular file" in candidate.problem
