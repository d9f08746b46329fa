"""The two images as source: apart, complete, and without fault hooks unless a fault is planted."""

from __future__ import annotations

import re

import pytest

from joulemap.errors import FirmwareError
from joulemap.firmware.stages.sources import fault_select, render_power_source, render_profile_source
from joulemap.firmware.wire.vocabulary import FAULT_BITS
from joulemap.records.fault import FaultPlan, FaultSlug
from joulemap.records.firmware import ArtifactRole, FirmwareSource
from pipeline_bench import fault_plan
from stage_records import TARGET, plan, prepared

NONE = FaultPlan()


def both(*faults: str) -> tuple[FirmwareSource, FirmwareSource]:
    planted = fault_plan(*faults)
    return render_profile_source(prepared(), TARGET, planted), render_power_source(prepared(), TARGET, planted, plan())


def test_each_product_has_its_own_main_only() -> None:
    profile, power = both()
    assert (profile.role, power.role) == (ArtifactRole.PROFILE, ArtifactRole.POWER)
    assert {"main_profile.c"} == {name for name in profile.files if name.startswith("main_")}
    assert {"main_power.c"} == {name for name in power.files if name.startswith("main_")}
    assert "hpx_finish.c" not in profile.files
    assert profile.files["model.c"] == power.files["model.c"] == "/* model */\n"


@pytest.mark.parametrize("which", [0, 1])
def test_every_include_is_there(which: int) -> None:
    files = both()[which].files
    ours = [text for name, text in files.items() if name != "model.c"]
    included = {name for text in ours for name in re.findall(r'#include "([^"]+)"', text)}
    assert included <= set(files)


@pytest.mark.parametrize("which", [0, 1])
def test_every_definition_that_the_c_asks_for_is_given(which: int) -> None:
    image = both()[which]
    asked = set(re.findall(r"defined\((HPX_\w+)\)", "".join(image.files.values())))
    assert asked <= set(image.defines)
    assert "HPX_CORE_HZ" in image.defines


def test_the_linker_script_has_the_targets_regions() -> None:
    script = both()[0].files["hpx_target.ld"]
    assert "ORIGIN = 0x20000000, LENGTH = 0x80000" in script
    assert "ORIGIN = 0x0, LENGTH = 0x200000" in script
    assert "${" not in script


def test_the_plan_is_compiled_in() -> None:
    power = render_power_source(prepared(), TARGET, NONE, plan(requested_count=77, lockstep=False))
    assert power.defines["HPX_COUNT"] == "77u"
    assert power.defines["HPX_LOCKSTEP"] == "0"
    assert power.defines["HPX_IDLE_US"] == "50000u"
    assert power.defines["HPX_ELAPSED"] == "1"


def test_an_inference_longer_than_the_counter_has_no_elapsed_time() -> None:
    power = render_power_source(prepared(), TARGET, NONE, plan(reference_inference_us=30e6))
    assert power.defines["HPX_ELAPSED"] == "0"


def test_hooks_are_compiled_in_for_planted_faults_only() -> None:
    assert [image.defines["HPX_FAULTS"] for image in both()] == ["0", "0"]
    assert [image.defines["HPX_FAULTS"] for image in both("profile_corrupt")] == ["1", "1"]
    assert [image.defines["HPX_FAULTS"] for image in both("stuck_loop@2")] == ["1", "1"]
    assert [image.defines["HPX_FAULTS"] for image in both("capture_lossy", "probe_lost")] == ["0", "0"]


def test_diagnostics_are_left_out_of_the_image_only_for_a_whole_run() -> None:
    assert both("no_diagnostics")[1].defines["HPX_DIAGNOSTICS"] == "0"
    assert both("no_diagnostics@2")[1].defines["HPX_DIAGNOSTICS"] == "1"


def test_faults_select_their_bits_by_role_and_repeat() -> None:
    planted = fault_plan("no_ready@2", "terminal_late", "profile_corrupt")
    late, ready = 1 << FAULT_BITS[FaultSlug.TERMINAL_LATE], 1 << FAULT_BITS[FaultSlug.NO_READY]
    assert fault_select(planted, ArtifactRole.POWER, 1) == late
    assert fault_select(planted, ArtifactRole.POWER, 2) == late | ready
    assert fault_select(planted, ArtifactRole.PROFILE) == 1 << FAULT_BITS[FaultSlug.PROFILE_CORRUPT]
    assert fault_select(NONE, ArtifactRole.POWER, 1) == 0


def test_a_model_with_a_file_of_ours_is_refused() -> None:
    with pytest.raises(FirmwareError) as caught:
        render_profile_source(prepared(files={"startup.c": ""}), TARGET, NONE)
    assert (caught.value.slug, caught.value.exit_code) == ("source-collision", 7)
    assert "startup.c" in caught.value.message


def test_a_changed_count_changes_only_the_power_image() -> None:
    first = render_power_source(prepared(), TARGET, NONE, plan())
    second = render_power_source(prepared(), TARGET, NONE, plan(requested_count=11))
    assert first.files == second.files
    assert {name for name in first.defines if first.defines[name] != second.defines[name]} == {"HPX_COUNT"}
