"""Which meters a name means, and which are taken when none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.errors import SetupError, UsageError
from joulemap.meters.live.discovery import discover, find_meters
from sysfs_trees import chip, write_proc, write_tree, zone


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
