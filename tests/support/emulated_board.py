"""A board of ``synthetic_board`` that comes from the emulator: one capture of the pipeline with its rail and truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.context import Requested
from joulemap.meters.registry import open_simulated_meter
from joulemap.records.rail import RailActivity
from joulemap.records.run import ProfileRequest
from joulemap.workflow.journal import RunJournal
from joulemap.workflow.report_stages import Report
from joulemap.workflow.runner import PipelineRunner
from joulemap.workflow.stage_list import plan_stages
from synthetic_board import Board

__all__ = ["emulate"]


def emulate(model: Path, *, contrast: bool = True, **changes: Any) -> Board:
    """Returns the board that one capture of the model on the virtual target shows.

    Args:
        model: path of the model file.
        contrast: plant power per layer.
        changes: of the request, for example ``count``.
    """
    rails: list[RailActivity] = []

    def meter(spec: Any, rail: Callable[[], RailActivity], *rest: Any, **named: Any) -> Any:
        def keep() -> RailActivity:
            rails.append(rail())
            return rails[-1]

        return open_simulated_meter(spec, keep, *rest, **named)

    bench = Bench(meter=cast(Any, meter))
    request = ProfileRequest(model=model, repeats=1, contrast=contrast, **changes)
    stages = plan_stages(cast(Report, SimpleNamespace(generate_report=None)), power=True)[:-2]
    with bench.resources:
        done = PipelineRunner(stages, journal=RunJournal()).run(Requested(request=request, bench=bench))
    truth = done.truth.captures[0].truth
    rail = rails[0]
    count = done.power.plan.requested_count
    own = RailActivity(row_s=rail.row_s, energy_fj=np.array(rail.energy_fj), edges=rail.edges)
    return Board(
        name=model.stem,
        rail=own,
        rail_factor=truth.run_factor,
        profile=replace(done.profile.result),
        count=count,
        layer_j=np.asarray(truth.layer_j, np.float64) / count,
        gap_j=truth.gap_j / count,
    )
