"""The power phase: N from the profile, then ``hpx_profiler_power`` rendered, built and deployed.

The stages that follow on the board stand in ``power_observation`` and ``reconcile``; this module names them all.
"""

from __future__ import annotations

from joulemap.errors import PowerError
from joulemap.estimate import Provenance
from joulemap.firmware.stages import policy
from joulemap.firmware.stages.context import (
    PowerBuilt,
    PowerDeployed,
    PowerPlaced,
    PowerPlanned,
    PowerRendered,
    ProfileDone,
    Requested,
    advance,
    require,
)
from joulemap.firmware.stages.deployment import build_artifact, deploy_artifact, verify_artifact
from joulemap.firmware.stages.power_observation import capture_power_observation, collect_power_terminal
from joulemap.firmware.stages.reconcile import reconcile_power_run
from joulemap.firmware.stages.setup import MAX_COUNT, ON_DEVICE_INSTRUMENT
from joulemap.firmware.stages.sources import render_power_source
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import PowerRunPlan
from joulemap.records.progress import Phase

__all__ = [
    "build_power_firmware",
    "capture_power_observation",
    "collect_power_terminal",
    "deploy_power_firmware",
    "plan_power_run",
    "reconcile_power_run",
    "render_power_firmware",
    "verify_power_placement",
]


def plan_power_run(context: Requested) -> PowerPlanned:
    """Fixes N, the deadline and the tolerances from the clean latency of the profile run. Pure intent.

    Raises:
        PowerError: a monitor on the board without a firmware that feeds it (``ondevice-monitor-unsupported``), or a
            window that needs more inferences than the firmware can count (``count-out-of-range``), or a run that lasts
            longer than the target's power can be recorded (``window-too-long``).
    """
    held = require(context, ProfileDone, "plan_power_run")
    request, target = held.request, held.target
    if request.instrument == ON_DEVICE_INSTRUMENT:
        raise PowerError(
            "the firmware of this build feeds no power monitor on the board",
            hint="choose an instrument with --instrument, or leave the flag out for the target's own",
            slug="ondevice-monitor-unsupported",
            phase="power",
            artifact_role=ArtifactRole.POWER,
        )
    virtual = target.provenance is Provenance.SIMULATED
    reference_s = held.profile.result.clean_latency_s
    window_s = request.window_s or (policy.WINDOW_VIRTUAL_S if virtual else policy.WINDOW_REAL_S)
    countable_s = 2 * MAX_COUNT * reference_s  # beyond it the quotient need not even be finite
    count = request.count or policy.inference_count(min(window_s, countable_s), reference_s)
    if count > MAX_COUNT:
        raise PowerError(
            f"{window_s:g} s are more inferences than the firmware counts ({MAX_COUNT})",
            hint="choose a smaller --window-s",
            slug="count-out-of-range",
            phase="power",
            artifact_role=ArtifactRole.POWER,
        )
    planned_s = count * reference_s
    limit_s = target.window_limit_s
    if limit_s is not None and policy.execution_deadline_s(planned_s) > limit_s:
        raise PowerError(
            f"{count} inferences may take {policy.execution_deadline_s(planned_s):.6g} s with their margins, and the"
            f" power of {target.name} is recorded for at most {limit_s:g} s",
            hint="choose a smaller --count or --window-s",
            slug="window-too-long",
            phase="power",
            artifact_role=ArtifactRole.POWER,
        )
    plan = PowerRunPlan(
        requested_count=count,
        repeats=request.repeats,
        reference_inference_us=reference_s * 1e6,
        planned_runtime_s=planned_s,
        boot_allowance_s=policy.BOOT_ALLOWANCE_S,
        fixed_margin_s=policy.FIXED_MARGIN_S,
        execution_deadline_s=policy.execution_deadline_s(planned_s),
        gate_tolerance_s=policy.gate_tolerance_s(planned_s, 1.0 / held.instrument.rate_hz, virtual=virtual),
        idle_window_s=policy.IDLE_WINDOW_S,
        tail_s=policy.TAIL_S,
        lockstep=request.lockstep,
        expected_crc32=held.prepared.reference_crc32,
    )
    held.bench.checkpoint(
        Phase.POWER,
        "power_run_planned",
        f"N {count}, {planned_s:.3f} s in GATE, {request.repeats} repeats, deadline {plan.execution_deadline_s:.2f} s",
        count=count,
        planned_runtime_s=planned_s,
        repeats=request.repeats,
        execution_deadline_s=plan.execution_deadline_s,
    )
    return advance(held, PowerPlanned, power_plan=plan)


def render_power_firmware(context: Requested) -> PowerRendered:
    """Renders the source of ``hpx_profiler_power`` for the planned N.

    Raises:
        FirmwareError: the model's files collide with the firmware's.
    """
    held = require(context, PowerPlanned, "render_power_firmware")
    source = render_power_source(held.prepared, held.target, held.request.faults, held.power_plan)
    return advance(held, PowerRendered, power_source=source)


def build_power_firmware(context: Requested) -> PowerBuilt:
    """Builds ``hpx_profiler_power``; objects of the model are those of the profile build.

    Raises:
        BuildError: compile or link error.
        CapacityError: a region is too small.
    """
    held = require(context, PowerRendered, "build_power_firmware")
    artifact = build_artifact(held, held.power_source, ArtifactRole.POWER, Phase.POWER)
    return advance(held, PowerBuilt, power_firmware=artifact)


def verify_power_placement(context: Requested) -> PowerPlaced:
    """Holds the linked ``hpx_profiler_power`` against the memory plan; late diagnostics may change its needs.

    Raises:
        CapacityError: a region is too small.
        BuildError: something is not where it was planned.
    """
    held = require(context, PowerBuilt, "verify_power_placement")
    verify_artifact(held, held.power_firmware)
    return advance(held, PowerPlaced)


def deploy_power_firmware(context: Requested) -> PowerDeployed:
    """Flashes ``hpx_profiler_power`` once; every repeat runs this one image.

    Raises:
        BuildError: the image changed since it was built, or the board refuses it.
    """
    held = require(context, PowerPlaced, "deploy_power_firmware")
    deployment = deploy_artifact(held, held.power_firmware, Phase.POWER)
    return advance(held, PowerDeployed, power_deployment=deployment)
