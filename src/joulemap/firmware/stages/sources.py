"""Renders a firmware product as source: our C, the model's C, a linker script, definitions. Reads package data only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from joulemap.errors import FirmwareError
from joulemap.firmware.engines.base import PreparedModel
from joulemap.firmware.stages import policy
from joulemap.firmware.stages.guard import phase_of_role
from joulemap.firmware.wire.vocabulary import FAULT_BITS, PROFILE_FAULTS
from joulemap.records.fault import FaultPlan, FaultSlug
from joulemap.records.firmware import ArtifactRole, FirmwareSource
from joulemap.records.power import PowerRunPlan
from joulemap.records.target import Target

__all__ = ["PHASE_SYMBOL", "fault_select", "render_power_source", "render_profile_source"]

PHASE_SYMBOL = "hpx_phase"

_SCRIPT = "hpx_target.ld"
_SHARED = (
    "startup.c", "hpx_port.c", "hpx_port.h", "hpx_loop.c", "hpx_loop.h", "hpx_crc.c", "hpx_crc.h", "hpx_line.c",
    "hpx_line.h", "hpx_rtt.c", "hpx_rtt.h", "hpx_wire.h", "hpx_model.h", "string.h",
)  # fmt: skip
_OWN = {
    ArtifactRole.PROFILE: ("main_profile.c",),
    ArtifactRole.POWER: ("main_power.c", "hpx_finish.c", "hpx_finish.h"),
}
_COUNTER_RANGE = 2**32


def fault_select(faults: FaultPlan, role: ArtifactRole, repeat: int | None = None) -> int:
    """Returns the word that makes an image obey the faults of its role; 0 for none.

    Args:
        faults: of the run.
        role: which image.
        repeat: counted from 1; None asks for the run as a whole.
    """
    word = 0
    for slug, bit in FAULT_BITS.items():
        if (slug in PROFILE_FAULTS) == (role is ArtifactRole.PROFILE) and faults.active(slug, repeat):
            word |= 1 << bit
    return word


def render_profile_source(prepared: PreparedModel, target: Target, faults: FaultPlan) -> FirmwareSource:
    """Returns the source of ``hpx_profiler``.

    Raises:
        FirmwareError: the model's files collide with the firmware's (``source-collision``).
    """
    layers = len(prepared.summary.layers)
    defines = {
        **_common_defines(target, faults),
        "HPX_LAYERS": f"{layers}u",
        "HPX_WARMUP_PASSES": f"{policy.WARMUP_PASSES}u",
        "HPX_CLEAN_PASSES": f"{policy.CLEAN_PASSES}u",
        "HPX_MARKED_PASSES": f"{policy.INSTRUMENTED_PASSES}u",
        "HPX_RTT_BYTES": f"{policy.profile_ring_b(layers)}u",
    }
    return _assemble(ArtifactRole.PROFILE, prepared, target, defines)


def render_power_source(
    prepared: PreparedModel, target: Target, faults: FaultPlan, plan: PowerRunPlan
) -> FirmwareSource:
    """Returns the source of ``hpx_profiler_power`` for a plan: N, lock-step and times are compiled in.

    Raises:
        FirmwareError: the model's files collide with the firmware's (``source-collision``).
    """
    reference_cycles = plan.reference_inference_us * 1e-6 * target.operating_point.core_hz
    everywhere = any(f.slug is FaultSlug.NO_DIAGNOSTICS and f.repeat is None for f in faults.faults)
    defines = {
        **_common_defines(target, faults),
        "HPX_COUNT": f"{plan.requested_count}u",
        "HPX_LOCKSTEP": str(int(plan.lockstep)),
        "HPX_GO_TIMEOUT_US": f"{round(policy.GO_TIMEOUT_S * 1e6)}u",
        "HPX_IDLE_US": f"{round(plan.idle_window_s * 1e6)}u",
        "HPX_LATE_US": f"{round(policy.LATE_RECORD_S * 1e6)}u",
        "HPX_DIAGNOSTICS": str(int(not everywhere)),
        "HPX_ELAPSED": str(int(reference_cycles < _COUNTER_RANGE / 2)),
        "HPX_RTT_BYTES": f"{policy.TERMINAL_RING_B}u",
    }
    return _assemble(ArtifactRole.POWER, prepared, target, defines)


def _common_defines(target: Target, faults: FaultPlan) -> dict[str, str]:
    # Both images get the fault hooks or neither does: they cost cycles in the loop that both time.
    hooks = any(fault_select(faults, role) for role in ArtifactRole)
    return {"HPX_CORE_HZ": f"{round(target.operating_point.core_hz)}u", "HPX_FAULTS": str(int(hooks))}


def _assemble(
    role: ArtifactRole, prepared: PreparedModel, target: Target, defines: Mapping[str, str]
) -> FirmwareSource:
    own = {name: _read_source(name) for name in (*_SHARED, *_OWN[role])}
    flash, ram = target.region("flash"), target.region("ram")
    own[_SCRIPT] = Template(_read_source(_SCRIPT)).substitute(
        flash_origin=f"{flash.origin:#x}",
        flash_size_b=f"{flash.size_b:#x}",
        ram_origin=f"{ram.origin:#x}",
        ram_size_b=f"{ram.size_b:#x}",
        stack_b=policy.STACK_B,
    )
    collisions = sorted(own.keys() & prepared.files.keys())
    if collisions:
        raise FirmwareError(
            f"the model's files have names of the firmware: {', '.join(collisions)}",
            hint="an engine emits its own file names only",
            slug="source-collision",
            phase=phase_of_role(role),
            artifact_role=role,
        )
    return FirmwareSource(role=role, files={**own, **prepared.files}, defines=defines)


@cache
def _read_source(name: str) -> str:
    return (files("joulemap.firmware") / "csrc" / "target" / name).read_text(encoding="utf-8")
