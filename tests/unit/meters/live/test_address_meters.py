"""Meters behind an address: Redfish, exporters, instruments that speak SCPI."""

from __future__ import annotations

import http.server
import json
import math
import threading
from pathlib import Path

import pytest

from joulemap.errors import PowerError, SetupError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.discovery import discover
from joulemap.meters.live.ground.http_text import fetch_text
from joulemap.meters.live.ground.paced_meter import Answer, AskError, PacedMeter
from joulemap.meters.live.registry import open_meter
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress
from live_benches import SIM, serve
from meter_readings import Hand, values
from recording_files import shared_file


def test_a_real_answer_of_redfish(tmp_path: Path) -> None:
    path = shared_file("redfish", "dell_power.json")
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
    path = shared_file("prometheus", "node_exporter_e2e-output.txt")
    found = exporter(path.read_text("utf-8"))
    counters = {name: domain for name, (domain, _) in found.items() if name.startswith("node_rapl_package")}
    assert counters
    assert all(domain.boundary is Boundary.PACKAGE for domain in counters.values())
    assert all(domain.reading is not DomainReading.SIGNAL for domain, _ in found.values())


def instrument(tmp_path: Path, **options: str) -> MeterAddress:
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
