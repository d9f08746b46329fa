"""Strict order, roles and freshness: whatever is out of place is refused with a typed error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from joulemap.errors import BuildError, PipelineError
from joulemap.firmware.stages import context as variants
from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.context import Requested
from joulemap.firmware.stages.guard import check_artifact, check_deployment, check_fresh
from joulemap.records.firmware import ArtifactRole, DeploymentRecord, FirmwareArtifact
from joulemap.records.run import ProfileRequest
from pipeline_bench import POWER_STAGES, PROFILE_STAGES, SETUP_STAGES
from stage_records import artifact, source

STAGES = (*SETUP_STAGES, *PROFILE_STAGES, *POWER_STAGES)


def slug_of(caught: pytest.ExceptionInfo[BuildError]) -> str:
    assert caught.value.exit_code == 7
    assert caught.value.hint
    return caught.value.slug


def test_the_stages_have_the_documents_names_and_order() -> None:
    document = """
        preflight ensure_board_powered resolve_platform resolve_probe prepare_engine analyze_model plan_memory
        render_profile_firmware build_profile_firmware verify_profile_placement deploy_profile_firmware
        capture_profile
        plan_power_run render_power_firmware build_power_firmware verify_power_placement deploy_power_firmware
        capture_power_observation collect_power_terminal reconcile_power_run
    """
    assert [stage.__name__ for stage in STAGES] == document.split()


@pytest.mark.parametrize("stage", STAGES[1:], ids=lambda stage: stage.__name__)
def test_a_stage_before_its_producer_is_refused(stage: Callable[[Requested], object]) -> None:
    with pytest.raises(PipelineError) as caught:
        stage(Requested(request=ProfileRequest(model=Path("m.tflite")), bench=Bench()))
    assert (caught.value.slug, caught.value.exit_code) == ("stage-order", 70)
    assert getattr(stage, "__name__", "") in caught.value.message


def test_each_variant_adds_required_fields_only() -> None:
    chain = variants.PowerDone.__mro__[:-1]
    assert chain[-1] is Requested
    for variant in chain:
        assert is_dataclass(variant)
        for field in fields(variant):
            assert repr(field.default) == repr(field.default_factory), f"{variant.__name__}.{field.name} is optional"


def test_an_artefact_of_the_wrong_role_is_refused(tmp_path: Path) -> None:
    power = source(ArtifactRole.POWER)
    with pytest.raises(BuildError) as caught:
        check_artifact(artifact(tmp_path, power), power, ArtifactRole.PROFILE)
    assert slug_of(caught) == "artifact-role"


def test_an_artefact_of_another_source_is_refused(tmp_path: Path) -> None:
    built = artifact(tmp_path, source(text="int y;\n"))
    with pytest.raises(BuildError) as caught:
        check_artifact(built, source(), ArtifactRole.PROFILE)
    assert slug_of(caught) == "artifact-stale"


def test_an_image_that_changed_after_the_build_is_refused(tmp_path: Path) -> None:
    built = artifact(tmp_path)
    check_fresh(built)
    built.elf.write_bytes(b"\x7fELG")
    with pytest.raises(BuildError) as caught:
        check_fresh(built)
    assert slug_of(caught) == "artifact-stale"
    built.elf.unlink()
    with pytest.raises(BuildError) as caught:
        check_fresh(built)
    assert slug_of(caught) == "artifact-stale"


@pytest.mark.parametrize("change", [{"sha256": "1" * 64}, {"role": ArtifactRole.POWER}])
def test_a_deployment_of_another_artefact_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    built = artifact(tmp_path)
    other: FirmwareArtifact = replace(built, **change)  # type: ignore[arg-type]
    check_deployment(_deployed(built), built)
    with pytest.raises(BuildError) as caught:
        check_deployment(_deployed(other), built)
    assert slug_of(caught) == "deployment-mismatch"


def _deployed(built: FirmwareArtifact) -> DeploymentRecord:
    return DeploymentRecord(firmware=built, target_id="board", deployed_at="2026-01-01T00:00:00+00:00")
