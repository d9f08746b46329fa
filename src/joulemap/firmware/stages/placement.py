"""Where the model goes: a plan before anything is built, and the linked image held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from joulemap.errors import BuildError, CapacityError
from joulemap.firmware.stages.guard import phase_of_role
from joulemap.firmware.stages.policy import (
    INSTRUMENTED_PASSES,
    LEAST_CODE_B,
    STACK_B,
    TERMINAL_RING_B,
    profile_ring_b,
)
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact
from joulemap.records.model import ModelSummary
from joulemap.records.target import MemoryPlan, MemoryRegion, RegionUse, Target

__all__ = ["build_memory_plan", "check_placement"]

_RECORD_B = 1024
_MARK_B = 4


def build_memory_plan(model: ModelSummary, target: Target) -> MemoryPlan:
    """Returns what the model surely needs of each region: constants and the smallest code; arena, stack, buffers.

    Raises:
        CapacityError: a region is too small (``memory-overflow``): region, need_b, have_b.
    """
    marks_b = _MARK_B * INSTRUMENTED_PASSES * (len(model.layers) + 2)
    buffers_b = max(profile_ring_b(len(model.layers)) + marks_b, TERMINAL_RING_B + _RECORD_B)
    inputs_b = sum(tensor.size_b for tensor in model.inputs)
    needs = {
        "flash": model.constants_b + inputs_b + LEAST_CODE_B,
        "ram": model.arena_b + STACK_B + buffers_b,
    }
    plan = MemoryPlan(
        uses=tuple(RegionUse(region=target.region(name), need_b=need_b) for name, need_b in needs.items()),
        arena_b=model.arena_b,
        constants_b=model.constants_b,
    )
    _check_capacity(f"model {model.name}", {use.region: use.need_b for use in plan.uses}, phase="setup", role=None)
    return plan


def check_placement(artifact: FirmwareArtifact, plan: MemoryPlan, target: Target, symbols: tuple[str, ...]) -> None:
    """Holds the linked image against the target's regions, the plan, and the symbols that the host relies on.

    Raises:
        CapacityError: a region is too small for the image (``memory-overflow``), with the bytes missing per region.
        BuildError: the image lacks a symbol, or is smaller than what the plan says must be in it
            (``placement-mismatch``).
    """
    needs = {target.region("flash"): artifact.flash_b, target.region("ram"): artifact.ram_b}
    phase = phase_of_role(artifact.role)
    _check_capacity(str(artifact.role), needs, phase=phase, role=artifact.role)
    problems = [f"no symbol {name}" for name in symbols if name not in artifact.symbols]
    for name in symbols:
        address, size_b = artifact.symbols.get(name, (None, 0))
        if address is not None and not any(_holds(region, address, size_b) for region in target.regions):
            problems.append(f"{name} lies at {address:#x}, outside every region")
    if artifact.flash_b < plan.constants_b:
        problems.append(f"{artifact.flash_b} bytes of flash cannot hold {plan.constants_b} bytes of constants")
    if artifact.ram_b < plan.arena_b:
        problems.append(f"{artifact.ram_b} bytes of RAM cannot hold an arena of {plan.arena_b} bytes")
    if problems:
        raise BuildError(
            f"{artifact.role} is not what was planned: {'; '.join(problems[:5])}",
            hint="the linker dropped or moved something; -vv shows the build command",
            slug="placement-mismatch",
            phase=phase,
            artifact_role=artifact.role,
            details={"problems": problems},
        )


def _holds(region: MemoryRegion, address: int, size_b: int) -> bool:
    return region.origin <= address and address + size_b <= region.origin + region.size_b


def _check_capacity(what: str, needs: Mapping[MemoryRegion, int], *, phase: str, role: ArtifactRole | None) -> None:
    short = [(region, need_b) for region, need_b in needs.items() if need_b > region.size_b]
    if not short:
        return
    region, need_b = max(short, key=lambda entry: entry[1] - entry[0].size_b)
    raise CapacityError(
        f"{what} does not fit {region.name}: needs {need_b} bytes, has {region.size_b}, "
        f"{need_b - region.size_b} bytes are missing",
        hint="choose a smaller model or a target with more memory",
        slug="memory-overflow",
        phase=phase,
        artifact_role=role,
        details={
            "region": region.name,
            "need_b": need_b,
            "have_b": region.size_b,
            "missing_b": {short_region.name: need - short_region.size_b for short_region, need in short},
        },
    )
