"""The memory plan before the build and the linked image after it: what does not fit says region, need and have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from joulemap.errors import BuildError, CapacityError
from joulemap.firmware.stages.placement import build_memory_plan, check_placement
from joulemap.records.model import ModelSummary
from stage_records import TARGET, artifact, summary

SYMBOLS = ("hpx_phase", "hpx_layer_000", "hpx_layer_001")
LAYERS = {"hpx_layer_000": (0x100, 8), "hpx_layer_001": (0x108, 8)}
PLAN = build_memory_plan(summary(), TARGET)


def test_the_plan_counts_what_is_surely_needed() -> None:
    needs = {use.region.name: use.need_b for use in PLAN.uses}
    assert needs["flash"] >= 1000 + 64
    assert needs["ram"] >= 256 + 8192
    assert (PLAN.arena_b, PLAN.constants_b) == (256, 1000)


@pytest.mark.parametrize(
    ("model", "region", "have_b"),
    [
        (summary(constants_b=2 << 20), "flash", 2 << 20),
        (summary(arena_b=512 << 10), "ram", 512 << 10),
        (summary(constants_b=3 << 20, arena_b=600 << 10), "flash", 2 << 20),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_the_build(model: ModelSummary, region: str, have_b: int) -> None:
    with pytest.raises(CapacityError) as caught:
        build_memory_plan(model, TARGET)
    details = caught.value.details
    assert (details["region"], details["have_b"], caught.value.exit_code) == (region, have_b, 6)
    assert isinstance(details["need_b"], int)
    assert details["need_b"] > have_b
    assert caught.value.slug == "memory-overflow"
    for number in (str(details["need_b"]), str(have_b), region):
        assert number in caught.value.message


def test_a_plan_that_fits_to_the_byte_is_taken() -> None:
    spare_b = (512 << 10) - next(use.need_b for use in PLAN.uses if use.region.name == "ram")
    assert build_memory_plan(summary(arena_b=256 + spare_b), TARGET)
    with pytest.raises(CapacityError):
        build_memory_plan(summary(arena_b=256 + spare_b + 1), TARGET)


def test_an_image_as_planned_passes(tmp_path: Path) -> None:
    check_placement(artifact(tmp_path), PLAN, TARGET, SYMBOLS)


def test_an_image_that_does_not_fit_says_the_bytes_missing_per_region(tmp_path: Path) -> None:
    with pytest.raises(CapacityError) as caught:
        check_placement(artifact(tmp_path, flash_b=(2 << 20) + 7, ram_b=(512 << 10) + 9), PLAN, TARGET, SYMBOLS)
    assert caught.value.details["missing_b"] == {"flash": 7, "ram": 9}
    assert caught.value.artifact_role == "hpx_profiler"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flash_b": 999}, "cannot hold 1000 bytes of constants"),
        ({"ram_b": 255}, "cannot hold an arena of 256 bytes"),
        ({"symbols": {"hpx_phase": (0x20000000, 4)}}, "no symbol hpx_layer_000"),
        ({"symbols": {**LAYERS, "hpx_phase": (0x30000000, 4)}}, "outside every region"),
        ({"symbols": {**LAYERS, "hpx_phase": (0x2007FFFE, 4)}}, "outside every region"),
    ],
)
def test_an_image_that_is_not_what_was_planned(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BuildError) as caught:
        check_placement(replace(artifact(tmp_path), **changes), PLAN, TARGET, SYMBOLS)
    assert caught.value.slug == "placement-mismatch"
    assert said in caught.value.message
