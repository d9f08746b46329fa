"""Runs the stages of the pipeline on the virtual board, from a request to any point of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from joulemap.firmware.stages import power, profile, setup
from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.context import PowerDone, ProfileDone, Requested
from joulemap.records.fault import Fault, FaultPlan, FaultSlug
from joulemap.records.progress import ProgressUpdate
from joulemap.records.run import ProfileRequest

__all__ = ["POWER_STAGES", "PROFILE_STAGES", "SETUP_STAGES", "fault_plan", "open_profile", "run_power", "run_stages"]

SETUP_STAGES = (
    setup.preflight,
    setup.ensure_board_powered,
    setup.resolve_platform,
    setup.resolve_probe,
    setup.prepare_engine,
    setup.analyze_model,
    setup.plan_memory,
)
PROFILE_STAGES = (
    profile.render_profile_firmware,
    profile.build_profile_firmware,
    profile.verify_profile_placement,
    profile.deploy_profile_firmware,
    profile.capture_profile,
)
POWER_STAGES = (
    power.plan_power_run,
    power.render_power_firmware,
    power.build_power_firmware,
    power.verify_power_placement,
    power.deploy_power_firmware,
    power.capture_power_observation,
    power.collect_power_terminal,
    power.reconcile_power_run,
)


def fault_plan(*texts: str) -> FaultPlan:
    """Returns the plan of ``SLUG`` and ``SLUG@K`` texts."""
    parts = [text.partition("@") for text in texts]
    return FaultPlan(
        faults=tuple(Fault(slug=FaultSlug(slug), repeat=int(repeat) if repeat else None) for slug, _, repeat in parts)
    )


def run_stages(context: Any, stages: tuple[Any, ...]) -> Any:
    """Returns the context after the stages, in their order."""
    for stage in stages:
        context = stage(context)
    return context


@contextmanager
def open_profile(
    model: Path, *, updates: list[ProgressUpdate] | None = None, bench: dict[str, Any] | None = None, **request: Any
) -> Iterator[ProfileDone]:
    """Yields the context after the profile phase; the board is gone afterwards."""
    services = Bench(progress=(updates if updates is not None else []).append, **(bench or {}))
    with services.resources:
        requested = Requested(request=ProfileRequest(model=model, **request), bench=services)
        yield run_stages(requested, SETUP_STAGES + PROFILE_STAGES)


def run_power(context: ProfileDone, *faults: str, **request: Any) -> PowerDone:
    """Returns the reconciled power run of the profile, with these faults and changes of the request."""
    probe = context.bench.probe("virtual", context.session)  # a fresh link: an earlier fault may have pulled it off
    changed = replace(context.request, faults=fault_plan(*faults), **request)
    done: PowerDone = run_stages(replace(context, request=changed, probe=probe), POWER_STAGES)
    return done
