"""What contains what, what is one thing seen twice, and what is two things, over the kinds of meters that there are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live.overlaps import list_overlaps, list_twins, say_machines
from joulemap.records.live.capture_header import CaptureHeader, CaptureStream
from joulemap.records.live.domain import LiveDomain
from live_captures import COUNTER, POWER

PACKAGE = COUNTER
CORE = replace(COUNTER, name="package-0/core", boundary=Boundary.RAIL, inside=("package-0",))
DRAM = replace(COUNTER, name="package-0/dram", boundary=Boundary.RAIL)
PSYS = replace(COUNTER, name="psys", boundary=Boundary.NODE)
PERF = replace(COUNTER, inside=("powercap:package-0",))
GPU = replace(COUNTER, name="energy", boundary=Boundary.BOARD)
NODE = replace(POWER, name="node", boundary=Boundary.NODE)
WALL = replace(POWER, name="plug", boundary=Boundary.WALL)
RETOLD = replace(COUNTER, name="node_rapl_package_joules_total[0]")
GUESS = replace(NODE, provenance=Provenance.ESTIMATED)


def meter(name: str, driver: str, *domains: LiveDomain, machine: str = "") -> CaptureStream:
    own = tuple(replace(domain, machine=machine) for domain in domains)
    return CaptureStream(meter=name, driver=driver, period_s=0.1, domains=own)


def rapl(*domains: LiveDomain) -> CaptureStream:
    return meter("powercap", "powercap", *(domains or (PACKAGE,)))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Two meters; pairs (inside, outer) between them; pairs that are one thing, the kept one first."""

    streams: tuple[CaptureStream, ...]
    overlaps: tuple[tuple[str, str], ...] = ()
    twins: tuple[tuple[str, str], ...] = ()


KINDS = {
    "a package and its cores, memory beside them": Kind(
        streams=(rapl(PACKAGE, CORE, DRAM),), overlaps=(("powercap:package-0/core", "powercap:package-0"),)
    ),
    "psys that says what is in it": Kind(
        streams=(rapl(PSYS, replace(PACKAGE, inside=("psys",))),),
        overlaps=(("powercap:package-0", "powercap:psys"),),
    ),
    "psys beside a battery": Kind(
        streams=(rapl(PSYS), meter("power_supply", "power_supply", replace(NODE, name="BAT0"))),
        overlaps=(("power_supply:BAT0", "powercap:psys"),),
        twins=(("powercap:psys", "power_supply:BAT0"),),
    ),
    "the other road to one counter": Kind(
        streams=(meter("perf_event", "perf_event", PERF), rapl()),
        overlaps=(("perf_event:package-0", "powercap:package-0"),),
        twins=(("perf_event:package-0", "powercap:package-0"),),
    ),
    "two power meters of the firmware": Kind(
        streams=(meter("hwmon:power_meter@a", "hwmon", NODE), meter("hwmon:power_meter@b", "hwmon", NODE)),
        overlaps=(("hwmon:power_meter@b:node", "hwmon:power_meter@a:node"),),
        twins=(("hwmon:power_meter@a:node", "hwmon:power_meter@b:node"),),
    ),
    "the firmware's meter and the service processor": Kind(
        streams=(meter("hwmon:power_meter", "hwmon", NODE), meter("ipmi", "ipmi", NODE)),
        overlaps=(("ipmi:node", "hwmon:power_meter:node"),),
        twins=(("hwmon:power_meter:node", "ipmi:node"),),
    ),
    "a guess beside a measurement": Kind(
        streams=(meter("estimate", "estimate", GUESS), meter("ipmi", "ipmi", NODE)),
        overlaps=(("estimate:node", "ipmi:node"),),
        twins=(("ipmi:node", "estimate:node"),),
    ),
    "two hosts": Kind(streams=(meter("ipmi:a", "ipmi", NODE, machine="a"), meter("ipmi:b", "ipmi", NODE, machine="b"))),
    "another host beside a package": Kind(streams=(rapl(), meter("redfish:a", "redfish", NODE, machine="a"))),
    "another host and its own package": Kind(
        streams=(
            meter("redfish:a", "redfish", NODE, machine="a"),
            meter("prometheus:a", "prometheus", RETOLD, machine="a"),
        ),
        overlaps=((f"prometheus:a:{RETOLD.name}", "redfish:a:node"),),
    ),
    "a phone beside a battery": Kind(
        streams=(
            meter("android:x", "android", replace(NODE, name="power"), machine="android:x"),
            meter("power_supply", "power_supply", replace(NODE, name="BAT0")),
        )
    ),
    "a source meter beside a battery": Kind(
        streams=(
            meter("scpi:usb", "scpi", replace(POWER, name="output", boundary=Boundary.RAIL), machine="scpi:usb"),
            meter("power_supply", "power_supply", replace(NODE, name="BAT0")),
        )
    ),
    "two batteries of one machine": Kind(
        streams=(meter("power_supply", "power_supply", replace(NODE, name="BAT0"), replace(NODE, name="BAT1")),)
    ),
    "two graphics cards": Kind(streams=(meter("nvml:0", "nvml", GPU), meter("nvml:1", "nvml", GPU))),
    "a graphics card and a package": Kind(streams=(rapl(), meter("nvml:0", "nvml", GPU))),
    "an exporter of this machine beside its counter": Kind(
        streams=(rapl(), meter("prometheus:l", "prometheus", RETOLD)),
        overlaps=((f"prometheus:l:{RETOLD.name}", "powercap:package-0"),),
    ),
    "a plug, a node and a package": Kind(
        streams=(rapl(), meter("ipmi", "ipmi", NODE), meter("plug", "prometheus", WALL)),
        overlaps=(
            ("powercap:package-0", "ipmi:node"),
            ("powercap:package-0", "plug:plug"),
            ("ipmi:node", "plug:plug"),
        ),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_inside_and_what_is_one_thing(name: str) -> None:
    kind = KINDS[name]
    header = CaptureHeader(session="s", rate_hz=10.0, streams=kind.streams)
    assert set(list_overlaps(header)) == set(kind.overlaps)
    assert list_twins(header) == kind.twins


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_meters_changes_no_relation_but_which_equal_one_counts(name: str) -> None:
    kind = KINDS[name]
    turned = CaptureHeader(session="s", rate_hz=10.0, streams=kind.streams[::-1])
    assert {frozenset(pair) for pair in list_overlaps(turned)} == {frozenset(pair) for pair in kind.overlaps}
    inner = {pair[0] for pair in list_overlaps(turned)}
    assert len(inner) == len({pair[0] for pair in kind.overlaps})


def test_a_header_keeps_whose_a_domain_is_and_reads_those_that_do_not_say() -> None:
    header = CaptureHeader(session="s", rate_hz=10.0, streams=(meter("ipmi:a", "ipmi", NODE, machine="a"),))
    document = header.to_json()
    assert CaptureHeader.from_json(document) == header
    del document["streams"][0]["domains"][0]["machine"]
    assert CaptureHeader.from_json(document).streams[0].domains[0].machine == ""


def test_another_machine_beside_this_one_is_said() -> None:
    log = FindingLog()
    both = (rapl(), meter("redfish:a", "redfish", NODE, machine="a"))
    say_machines(CaptureHeader(session="s", rate_hz=10.0, streams=both), log)
    say_machines(CaptureHeader(session="s", rate_hz=10.0, streams=both[1:]), log)
    (finding,) = log.findings()
    assert finding.slug == "other_machine"
    assert "redfish:a:node" in finding.message
