"""What both firmware products share on the way to the board: build, placement, deployment."""

from __future__ import annotations

from joulemap.firmware.stages.context import SetupDone
from joulemap.firmware.stages.guard import check_artifact, check_fresh
from joulemap.firmware.stages.placement import check_placement
from joulemap.firmware.stages.sources import PHASE_SYMBOL
from joulemap.records.firmware import ArtifactRole, DeploymentRecord, FirmwareArtifact, FirmwareSource
from joulemap.records.progress import Phase

__all__ = ["build_artifact", "deploy_artifact", "verify_artifact"]


def build_artifact(context: SetupDone, source: FirmwareSource, role: ArtifactRole, phase: Phase) -> FirmwareArtifact:
    """Returns the linked image of a source and tells of its sections.

    Raises:
        BuildError: compile or link error, or an artefact that is not of this source.
        CapacityError: a region is too small.
    """
    context.bench.status(
        phase, f"build_{phase}_firmware", f"{role}: {len(source.files)} files", files=len(source.files)
    )
    artifact = context.bench.toolchain(context.request.toolchain).build(source, context.target.cpu)
    check_artifact(artifact, source, role)
    sections = ", ".join(f"{name} {size_b} B" for name, size_b in sorted(artifact.sections.items()))
    context.bench.checkpoint(
        phase,
        f"{phase}_firmware_built",
        f"{role} {'reused from the cache' if artifact.reused else 'built'}: {sections}",
        role=str(role),
        sections=dict(artifact.sections),
        flash_b=artifact.flash_b,
        ram_b=artifact.ram_b,
        sha256=artifact.sha256,
        reused=artifact.reused,
    )
    return artifact


def verify_artifact(context: SetupDone, artifact: FirmwareArtifact) -> None:
    """Holds the linked image against the memory plan and the symbols that the host relies on.

    Raises:
        CapacityError: a region is too small, with the bytes missing per region.
        BuildError: something is not where it was planned.
    """
    layers = tuple(layer.symbol for layer in context.prepared.summary.layers)
    check_placement(artifact, context.memory, context.target, (PHASE_SYMBOL, *layers))


def deploy_artifact(context: SetupDone, artifact: FirmwareArtifact, phase: Phase) -> DeploymentRecord:
    """Flashes the very bytes that were built and returns the record of it.

    Raises:
        BuildError: the image changed since it was built, or the board refuses it.
        CaptureError: the probe is gone.
    """
    check_fresh(artifact)
    layers = tuple(layer.symbol for layer in context.prepared.summary.layers)
    context.probe.flash(artifact.elf, layer_symbols=layers)
    deployment = DeploymentRecord(
        firmware=artifact,
        target_id=context.session.target_id,
        deployed_at=context.bench.now().isoformat(timespec="milliseconds"),
    )
    context.bench.checkpoint(
        phase,
        f"{phase}_firmware_deployed",
        f"{artifact.role} {artifact.sha256[:12]} on {deployment.target_id}, {artifact.flash_b} B",
        role=str(artifact.role),
        sha256=artifact.sha256,
        target_id=deployment.target_id,
        flash_b=artifact.flash_b,
    )
    return deployment
