"""How often the intervals of a run on a simulated host hold, over many draws of machine and meter.

Every draw is a machine of its own: powers, meter gain, run-to-run variation, order of windows. The ideal half-width of
a part is 1.96 sqrt(s^2 (y_k^2 + y_1^2) / R / (k - 1)^2 + (u_gain e)^2), with the true s
(METHODS 1.6 with a known noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from joulemap.estimate import Estimate
from joulemap.records.host.campaign import LoadKind
from joulemap.records.host.model import HostModel, HostOperator, HostTensor
from joulemap.records.host.request import HostRequest, SessionRequest
from joulemap.runtimes.base import RuntimeTraits, Stamp
from joulemap.runtimes.simulated.meter import SimulatedMeterSpec, counter_spec
from joulemap.runtimes.simulated.runtime import (
    HostTruth,
    SimulatedRuntime,
    SimulatedRuntimeSession,
    SimulatedSpec,
)
from joulemap.runtimes.simulated.virtual_host import VirtualHost
from joulemap.workflow.host.account_stage import attribute_energy
from joulemap.workflow.host.context import Accounted, Ready
from joulemap.workflow.host.load_stages import load_model, time_operators
from joulemap.workflow.host.meter_access import simulated_access
from joulemap.workflow.host.window_stages import measure_windows, plan_windows

__all__ = ["GivenRuntime", "HostStudy", "run_host", "small_host_model", "study_host"]

_MACS = (30e6, 2e6, 12e6, 8e6, 20e6, 1e6, 5e6, 16e6)


def small_host_model(macs: tuple[float, ...] = _MACS) -> HostModel:
    """Returns a model whose operators take between 0.05 and 1.5 ms on the simulated host, one of them very little."""
    operators = tuple(
        HostOperator(index=k, op="Conv", name=f"conv{k}", macs=int(count), bytes=10_000, provider="simulated")
        for k, count in enumerate((*macs, 0.0))
    )
    tensor = HostTensor(name="x", dtype="float32", shape=(1, 4))
    return HostModel(
        name="small",
        sha256="0" * 64,
        size_b=1,
        inputs=(tensor,),
        outputs=(tensor,),
        operators=operators,
        constants_b=1000,
        runtime="simulated 1",
    )


class GivenRuntime:
    """A simulated runtime that opens a model that is given, whatever file is asked for."""

    def __init__(self, simulated: SimulatedRuntime, model: HostModel) -> None:
        self._simulated, self._model = simulated, model
        self.session: SimulatedRuntimeSession | None = None

    @property
    def traits(self) -> RuntimeTraits:
        return self._simulated.traits

    def version(self) -> str:
        return self._simulated.version()

    def open(self, request: SessionRequest, stamp: Stamp) -> SimulatedRuntimeSession:
        del request, stamp
        self.session = self._simulated.open_model(self._model)
        return self.session


def run_host(
    seed: int,
    *,
    model: HostModel | None = None,
    machine: SimulatedSpec | None = None,
    meter: SimulatedMeterSpec | None = None,
    request: HostRequest | None = None,
) -> tuple[Accounted, HostTruth]:
    """Returns the account of one simulated run and its truth."""
    host = VirtualHost()
    given = GivenRuntime(SimulatedRuntime(host, spec=machine, seed=seed), model or small_host_model())
    access = simulated_access(host, seed=seed + 1_000_000, rest=host.rest, spec=meter)
    asked = request or HostRequest(session=SessionRequest(model=Path("small.onnx")), seed=seed, window_s=0.5)
    ready = Ready(request=asked, progress=lambda _: None, runtime=given, access=access)
    done = attribute_energy(measure_windows(plan_windows(time_operators(load_model(ready)))))
    assert given.session is not None  # load_model opened it
    return done, given.session.truth


@dataclass(frozen=True, kw_only=True)
class HostStudy:
    """Counts over the draws; shares are 0..1.

    Args:
        draws: machines.
        covered: draws whose interval of the energy per inference holds the truth.
        above_idle_covered: the same above idle.
        part_covered: parts (operators, the group, the gap) whose interval holds, over all draws.
        worst_part: the part that covers worst, and how often.
        width_ratio: mean half-width of the energy per inference over the ideal one.
        part_width_ratio: median over draws and parts of the half-width over the ideal one.
        worst_width_ratio: the largest median of a part.
        closed: draws in which operators, gap and idle close.
        modelled_error: median error of a split by time, to show that there is something to tell.
        part_error: median error of the parts.
        quantile_covered: share of p50 intervals that hold the median of the simulated latencies.
    """

    draws: int
    covered: float
    above_idle_covered: float
    part_covered: float
    worst_part: tuple[str, float]
    width_ratio: float
    part_width_ratio: float
    worst_width_ratio: float
    closed: float
    modelled_error: float
    part_error: float


def study_host(
    draws: int, *, first_seed: int = 0, machine: SimulatedSpec | None = None, meter: SimulatedMeterSpec | None = None
) -> HostStudy:
    """Returns what many machines show."""
    spec, declared = machine or SimulatedSpec(), meter or counter_spec()
    covered, above, closed, width, model_error, part_error = [], [], [], [], [], []
    hits: dict[str, list[bool]] = {}
    ratios: dict[str, list[float]] = {}
    for seed in range(first_seed, first_seed + draws):
        done, truth = run_host(seed, machine=machine, meter=meter)
        assert done.account is not None
        account = done.account.account
        total = account.energy_per_inference_j
        assert isinstance(total, Estimate)
        covered.append(abs(total.value - truth.total_j) <= total.expanded)
        width.append(total.expanded / _ideal(done, spec, declared, None, truth))
        net = account.energy_above_idle_per_inference_j
        assert isinstance(net, Estimate)
        true_net = truth.total_j - truth.idle_w * (float(truth.duration_s.sum()) + truth.gap_s)
        above.append(abs(net.value - true_net) <= net.expanded)
        assert done.account.closure is not None
        closed.append(done.account.closure.closed)
        parts: list[tuple[str, object, float, tuple[int, ...]]] = [
            (f"#{row.index}", row.energy_j, float(truth.energy_j[row.index]), (row.index,))
            for row in account.layers
            if row.group is None
        ]
        parts += [(g.id, g.energy_j, float(truth.energy_j[list(g.layers)].sum()), g.layers) for g in account.groups]
        for name, figure, true_j, operators in parts:
            assert isinstance(figure, Estimate)
            hits.setdefault(name, []).append(abs(figure.value - true_j) <= figure.expanded)
            part_error.append(abs(figure.value / true_j - 1))
            ratios.setdefault(name, []).append(figure.expanded / _ideal(done, spec, declared, operators, truth))
        assert isinstance(account.gap.energy_j, Estimate)
        hits.setdefault("gap", []).append(
            abs(account.gap.energy_j.value - truth.gap_j) <= account.gap.energy_j.expanded
        )
        for figure, true_j in zip(done.account.modelled_j, truth.energy_j, strict=True):
            assert isinstance(figure, Estimate)
            model_error.append(abs(figure.value / float(true_j) - 1))
    rates = {name: float(np.mean(held)) for name, held in hits.items() if len(held) >= draws // 2}
    worst = min(rates, key=lambda name: rates[name])
    return HostStudy(
        draws=draws,
        covered=float(np.mean(covered)),
        above_idle_covered=float(np.mean(above)),
        part_covered=float(np.mean([hit for held in hits.values() for hit in held])),
        worst_part=(worst, rates[worst]),
        width_ratio=float(np.mean(width)),
        part_width_ratio=float(np.median([r for own in ratios.values() for r in own])),
        worst_width_ratio=max(float(np.median(own)) for own in ratios.values()),
        closed=float(np.mean(closed)),
        modelled_error=float(np.median(model_error)),
        part_error=float(np.median(part_error)),
    )


def _ideal(
    done: Accounted,
    machine: SimulatedSpec,
    meter: SimulatedMeterSpec,
    operators: tuple[int, ...] | None,
    truth: HostTruth,
) -> float:
    """Returns the ideal half-width of the whole (None) or of a part, J."""
    gain, offset_w = meter.domain.gain_std or 0.0, meter.offset_std_w
    repeats = done.request.repeats
    base_j = truth.total_j

    def variance(energy_j: float, count: int) -> float:
        window_s = done.plan.window_s
        reading = meter.noise_std_w * math.sqrt((meter.domain.update_period_s or 0.0) / window_s)
        mean_w = energy_j * count / window_s
        session = machine.run_std**2 + machine.placement_std**2
        return energy_j**2 * (session + machine.jitter_std**2 / count + (reading / mean_w) ** 2) / repeats

    counts = {w.load: w.count for w in done.windows if w.load.kind is not LoadKind.IDLE}
    base = next(load for load in counts if load.kind is LoadKind.BASE)
    if operators is None:
        length_s = float(truth.duration_s.sum()) + truth.gap_s
        return 1.959964 * math.hypot(math.sqrt(variance(base_j, counts[base])), gain * base_j, offset_w * length_s)
    loads = [load for load in done.loads if set(load.operators) <= set(operators)]
    own_j = float(truth.energy_j[list(operators)].sum())
    weight = sum(1.0 / (load.copies - 1) for load in loads)
    total = variance(base_j, counts[base]) * weight**2
    for load in loads:
        more_j = base_j + (load.copies - 1) * float(truth.energy_j[list(load.operators)].sum())
        total += variance(more_j, counts[load]) / (load.copies - 1) ** 2
    own_s = float(truth.duration_s[list(operators)].sum())
    return 1.959964 * math.hypot(math.sqrt(total), gain * own_j, offset_w * own_s)
