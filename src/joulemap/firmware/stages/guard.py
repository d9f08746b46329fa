"""Refusals: an artefact of the wrong role, one that is not what was rendered, a deployment of another artefact."""

from __future__ import annotations

import hashlib

from joulemap.errors import BuildError
from joulemap.records.firmware import ArtifactRole, DeploymentRecord, FirmwareArtifact, FirmwareSource

__all__ = ["check_artifact", "check_deployment", "check_fresh", "phase_of_role"]


def phase_of_role(role: ArtifactRole) -> str:
    """Returns the pipeline phase that a firmware product belongs to."""
    return "profile" if role is ArtifactRole.PROFILE else "power"


def _refuse(message: str, slug: str, role: ArtifactRole) -> BuildError:
    return BuildError(
        message,
        hint="run the pipeline from the start; nothing of an earlier run is ever reused unseen",
        slug=slug,
        phase=phase_of_role(role),
        artifact_role=role,
    )


def check_artifact(artifact: FirmwareArtifact, source: FirmwareSource, role: ArtifactRole) -> None:
    """Refuses an artefact that has another role or was built from another source.

    Raises:
        BuildError: ``artifact-role`` or ``artifact-stale``.
    """
    if artifact.role is not role or source.role is not role:
        raise _refuse(f"{role} was wanted, got {artifact.role} built from {source.role}", "artifact-role", role)
    if artifact.source_sha256 != source.sha256:
        raise _refuse(
            f"{role} was built from source {artifact.source_sha256[:12]}, rendered is {source.sha256[:12]}",
            "artifact-stale",
            role,
        )


def check_fresh(artifact: FirmwareArtifact) -> None:
    """Refuses an ELF whose bytes are no longer those that were built.

    Raises:
        BuildError: the file is gone or changed (``artifact-stale``).
    """
    try:
        digest = hashlib.sha256(artifact.elf.read_bytes()).hexdigest()
    except OSError as error:
        raise _refuse(
            f"{artifact.role}: the built image cannot be read: {error}", "artifact-stale", artifact.role
        ) from error
    if digest != artifact.sha256:
        raise _refuse(f"{artifact.role}: the image changed after it was built", "artifact-stale", artifact.role)


def check_deployment(deployment: DeploymentRecord, artifact: FirmwareArtifact) -> None:
    """Refuses to run when what was flashed is not the artefact in hand.

    Raises:
        BuildError: ``deployment-mismatch``.
    """
    if deployment.firmware.sha256 != artifact.sha256 or deployment.firmware.role is not artifact.role:
        raise _refuse(
            f"{deployment.target_id} holds {deployment.firmware.role} {deployment.firmware.sha256[:12]}, "
            f"wanted {artifact.role} {artifact.sha256[:12]}",
            "deployment-mismatch",
            artifact.role,
        )
