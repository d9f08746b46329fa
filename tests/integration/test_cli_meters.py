"""``joulemap meters``: what is here, what is not and why, for people and for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.meters.live.registry import driver, driver_names
from program import call, call_blocked
from sysfs_trees import AMD, INTEL, write_proc, write_tree, zone


def tree_option(root: Path) -> str:
    return f"powercap:root={root},proc={root / 'proc'}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_proc(tmp_path / "proc", INTEL)
    return write_tree(tmp_path, {**zone("intel-rapl:0", "package-0", 1), **zone("intel-rapl:0:0", "core", 1)})


def test_every_candidate_is_listed_with_its_problem_and_what_can_be_named() -> None:
    called = call("meters")
    assert called.code == 0
    assert "powercap  can" in called.out
    for name in driver_names():
        assert driver(name).EXAMPLE in called.out
    document = call("meters", "--json").json
    assert document["schema"] == "joulemap.meters"
    for meter in document["meters"]:
        assert meter["usable"] == (meter["problem"] is None) == bool(meter["domains"])
    assert {entry["driver"] for entry in document["named"]} == {n for n in driver_names() if driver(n).EXAMPLE}


def test_one_meter_tells_its_domains_in_full(tree: Path) -> None:
    called = call("meters", "--meter", tree_option(tree))
    assert called.code == 0
    assert "package-0/core           energy, of the rail, measured counter, new every 976 µs, inside package-0" in (
        called.out
    )
    (meter,) = call("meters", "--meter", tree_option(tree), "--json").json["meters"]
    package, core = meter["domains"]
    assert package["modulus_j"] == pytest.approx(262_143.32891)
    assert (package["boundary"], package["gain_std"], package["window_s"]) == ("package", None, None)
    assert core["inside"] == ["package-0"]


def test_a_meter_that_cannot_be_read_ends_with_3_and_the_fix(tmp_path: Path) -> None:
    write_proc(tmp_path / "proc", AMD)
    called = call("meters", "--meter", tree_option(tmp_path))
    assert called.code == 3
    assert "docs/errors.md#meter-unusable" in called.err
    assert "sudo modprobe intel_rapl_msr" in called.err


@pytest.mark.parametrize(("name", "slug"), [("nothing", "meter-unknown"), ("estimate", "meter-option")])
def test_a_name_that_means_nothing_ends_with_2(name: str, slug: str) -> None:
    called = call("meters", "--meter", name)
    assert called.code == 2
    assert f"docs/errors.md#{slug}" in called.err


def test_without_pyvisa_the_install_line_is_told() -> None:
    called = call_blocked(("pyvisa",), "meters", "--meter", "scpi:resource=TCPIP0::192.0.2.5::INSTR")
    assert called.code == 3
    assert "pip install 'joulemap[scpi]'" in called.err
