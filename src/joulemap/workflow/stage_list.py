"""The stages of a profile in their order. A run without power has no power phase and no energy to attribute."""

from __future__ import annotations

from joulemap.firmware.stages import power, power_observation, profile, reconcile, setup
from joulemap.records.progress import Phase
from joulemap.workflow.report_stages import Report, attribute_energy
from joulemap.workflow.runner import Stage

__all__ = ["plan_stages"]

_SETUP = (
    setup.preflight,
    setup.ensure_board_powered,
    setup.resolve_platform,
    setup.resolve_probe,
    setup.prepare_engine,
    setup.analyze_model,
    setup.plan_memory,
)
_PROFILE = (
    profile.render_profile_firmware,
    profile.build_profile_firmware,
    profile.verify_profile_placement,
    profile.deploy_profile_firmware,
    profile.capture_profile,
)
_POWER = (
    power.plan_power_run,
    power.render_power_firmware,
    power.build_power_firmware,
    power.verify_power_placement,
    power.deploy_power_firmware,
    power_observation.capture_power_observation,
    power_observation.collect_power_terminal,
    reconcile.reconcile_power_run,
)


def plan_stages(report: Report, *, power: bool) -> tuple[Stage, ...]:
    """Returns the stages of a run.

    Args:
        report: writes the bundle.
        power: with the power phase.
    """
    stages = [
        *(Stage(name=function.__name__, phase=Phase.SETUP, run=function) for function in _SETUP),
        *(Stage(name=function.__name__, phase=Phase.PROFILE, run=function) for function in _PROFILE),
    ]
    if power:
        stages += [Stage(name=function.__name__, phase=Phase.POWER, run=function) for function in _POWER]
        stages.append(Stage(name="attribute_energy", phase=Phase.REPORT, run=attribute_energy))
    stages.append(Stage(name="generate_report", phase=Phase.REPORT, run=report.generate_report))
    return tuple(stages)
