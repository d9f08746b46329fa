"""The profile phase: ``hpx_profiler`` rendered, built, checked, deployed, and its counters captured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.boards.base import ResetOptions, StopReason
from joulemap.firmware.stages.context import (
    ProfileBuilt,
    ProfileDeployed,
    ProfileDone,
    ProfilePlaced,
    ProfileRendered,
    Requested,
    SetupDone,
    advance,
    require,
)
from joulemap.firmware.stages.deployment import build_artifact, deploy_artifact, verify_artifact
from joulemap.firmware.stages.guard import check_deployment
from joulemap.firmware.stages.policy import CLEAN_PASSES, INSTRUMENTED_PASSES, WARMUP_PASSES, profile_deadline_s
from joulemap.firmware.stages.probe_access import read_phase, unplug_probe
from joulemap.firmware.stages.sources import fault_select, render_profile_source
from joulemap.firmware.transports.base import LinkContext, ProfileDelivery
from joulemap.firmware.wire.profile_stream import parse_profile_stream
from joulemap.records.fault import FaultSlug
from joulemap.records.firmware import ArtifactRole
from joulemap.records.profile import PmuResult, ProfileRun
from joulemap.records.progress import Phase

__all__ = [
    "build_profile_firmware",
    "capture_profile",
    "deploy_profile_firmware",
    "render_profile_firmware",
    "verify_profile_placement",
]


def render_profile_firmware(context: Requested) -> ProfileRendered:
    """Renders the source of ``hpx_profiler``; nothing of the power image exists yet.

    Raises:
        FirmwareError: the model's files collide with the firmware's.
    """
    held = require(context, SetupDone, "render_profile_firmware")
    source = render_profile_source(held.prepared, held.target, held.request.faults)
    return advance(held, ProfileRendered, profile_source=source)


def build_profile_firmware(context: Requested) -> ProfileBuilt:
    """Builds ``hpx_profiler``, and only it.

    Raises:
        BuildError: compile or link error.
        CapacityError: a region is too small.
    """
    held = require(context, ProfileRendered, "build_profile_firmware")
    artifact = build_artifact(held, held.profile_source, ArtifactRole.PROFILE, Phase.PROFILE)
    return advance(held, ProfileBuilt, profile_firmware=artifact)


def verify_profile_placement(context: Requested) -> ProfilePlaced:
    """Holds the linked ``hpx_profiler`` against the memory plan.

    Raises:
        CapacityError: a region is too small.
        BuildError: something is not where it was planned.
    """
    held = require(context, ProfileBuilt, "verify_profile_placement")
    verify_artifact(held, held.profile_firmware)
    return advance(held, ProfilePlaced)


def deploy_profile_firmware(context: Requested) -> ProfileDeployed:
    """Flashes ``hpx_profiler``.

    Raises:
        BuildError: the image changed since it was built, or the board refuses it.
    """
    held = require(context, ProfilePlaced, "deploy_profile_firmware")
    deployment = deploy_artifact(held, held.profile_firmware, Phase.PROFILE)
    return advance(held, ProfileDeployed, profile_deployment=deployment)


def capture_profile(context: Requested) -> ProfileDone:
    """Runs ``hpx_profiler`` once and takes its counters.

    Raises:
        CaptureError: the stream is truncated or corrupt, the link is gone, the firmware faulted or did not end, or it
            computes another output than the oracle.
    """
    held = require(context, ProfileDeployed, "capture_profile")
    check_deployment(held.profile_deployment, held.profile_firmware)
    summary = held.prepared.summary
    held.bench.status(
        Phase.PROFILE,
        "capture_profile",
        f"{WARMUP_PASSES} warm-up, {CLEAN_PASSES} clean and {INSTRUMENTED_PASSES} instrumented passes",
        passes=WARMUP_PASSES + CLEAN_PASSES + INSTRUMENTED_PASSES,
    )
    delivery = _run_profile(held)
    held.bench.diagnostic(
        Phase.PROFILE, "capture_profile", f"{len(delivery.stream)} bytes", tail=delivery.stream[-400:].decode("latin1")
    )
    result = parse_profile_stream(
        delivery.stream, counter_source=held.target.counter_source, layer_count=len(summary.layers)
    )
    _check_output(result, held.prepared.reference_crc32)
    instructions = held.session.layer_instructions()
    if instructions is not None:
        result = replace(result, layer_instructions=np.array(instructions, np.int64))
    held.bench.checkpoint(
        Phase.PROFILE,
        "counter_capture_complete",
        f"{len(summary.layers)} layers, clean latency {result.clean_latency_s * 1e3:.4g} ms "
        f"({int(np.median(result.clean_cycles))} cycles)",
        layers=len(summary.layers),
        clean_latency_s=result.clean_latency_s,
        clean_cycles=int(np.median(result.clean_cycles)),
        passes=int(result.clean_cycles.size),
    )
    profile = ProfileRun(firmware=held.profile_firmware, deployment=held.profile_deployment, result=result)
    return advance(held, ProfileDone, profile=profile)


def _run_profile(context: ProfileDeployed) -> ProfileDelivery:
    """Returns what the image printed until it parked.

    Raises:
        CaptureError: see :func:`capture_profile`.
    """
    request, target, artifact = context.request, context.target, context.profile_firmware
    deadline_s = profile_deadline_s(context.prepared.summary.macs, target.operating_point.core_hz)
    link = LinkContext(
        session=context.session, memory=context.probe, symbols=artifact.symbols, ram=target.region("ram")
    )
    try:
        context.probe.reset(
            ResetOptions(deadline_s=deadline_s, fault_select=fault_select(request.faults, ArtifactRole.PROFILE))
        )
        if any(f.slug is FaultSlug.PROBE_LOST and f.repeat is None for f in request.faults.faults):
            unplug_probe(context.probe)
        delivery = context.bench.profile_transport(request.transport).capture(link)
    except PowerError as error:
        raise CaptureError(
            error.message,
            hint=error.hint,
            slug=error.slug,
            phase="profile",
            artifact_role=ArtifactRole.PROFILE,
            details=error.details,
        ) from error
    if delivery.stop.reason is not StopReason.IDLE:
        _refuse_stop(context, delivery)
    return delivery


def _refuse_stop(context: ProfileDeployed, delivery: ProfileDelivery) -> None:
    stop = delivery.stop
    phase = read_phase(context.probe, context.profile_firmware)
    slug, message = {
        StopReason.HARD_FAULT: ("profile-hard-fault", f"faulted: {stop.message}"),
        StopReason.BROWN_OUT: ("profile-brown-out", "lost its supply"),
    }.get(stop.reason, ("profile-stuck", "did not end within the deadline"))
    raise CaptureError(
        f"{ArtifactRole.PROFILE} {message}, in phase {phase or 'unknown'} at {stop.time_ns * 1e-9:.3f} s of board time",
        hint="a stack or arena that is too small is the usual cause; -vv shows what was printed",
        slug=slug,
        phase="profile",
        artifact_role=ArtifactRole.PROFILE,
        details={
            "firmware_phase": None if phase is None else str(phase),
            "registers": dict(stop.registers),
            "received_b": len(delivery.stream),
        },
    )


def _check_output(result: PmuResult, expected_crc32: int | None) -> None:
    if expected_crc32 is None or result.output_crc32 in (None, expected_crc32):
        return
    raise CaptureError(
        f"{ArtifactRole.PROFILE} computes an output with checksum {result.output_crc32:08x}, the oracle's is "
        f"{expected_crc32:08x}: its times belong to another program",
        hint="rebuild the firmware; when it stays, the engine's C and the oracle disagree on this model",
        slug="profile-output-differs",
        phase="profile",
        artifact_role=ArtifactRole.PROFILE,
    )
