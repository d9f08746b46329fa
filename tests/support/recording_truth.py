"""Recordings of known truth: layers, runs, a sensor and clocks with the faults of real ones, drawn anew each time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.estimate import Boundary, Provenance
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel, Timeline

__all__ = ["METER_CLOCK", "WORK_CLOCK", "Case", "Drawn", "draw", "layer_schedule"]

Floats = NDArray[np.float64]

METER_CLOCK = Clock(name="meter", kind=ClockKind.MONOTONIC)
WORK_CLOCK = Clock(name="work", kind=ClockKind.MONOTONIC)
IDLE_W = 2.0


def layer_schedule(
    seed: int = 7, *, layers: int = 20, shortest_s: float = 50e-6, longest_s: float = 500e-6
) -> tuple[Floats, Floats]:
    """Returns durations (s), log-uniform, and powers (W), uniform in 4..20, of the layers of METHODS 1.5."""
    rng = np.random.default_rng(seed)
    duration_s = np.exp(rng.uniform(np.log(shortest_s), np.log(longest_s), layers))
    duration_s[0], duration_s[1] = shortest_s, longest_s
    return rng.permutation(duration_s), rng.uniform(4.0, 20.0, layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is drawn.

    Args:
        name: of the case.
        schedule: durations and powers of the layers.
        random_schedule: another schedule each draw.
        runs: of the schedule.
        rate_hz: of the samples.
        window_s: of a sample; None for its step.
        noise: of a sample over mean power, 1 sd.
        memory: of the noise: autoregression of the first order.
        gap_s: longest random gap after a run.
        run_power: run-to-run scatter of each layer's power, relative, 1 sd.
        run_duration: the same of its duration.
        jitter_s: of each stamp of the timeline, 1 sd.
        tick_s: stamps of the timeline are cut down to whole ticks.
        offset_s: largest offset of the timeline's clock.
        drift_ppm: largest drift of it.
        gain: rectangular limit of the meter's gain error.
        offset_w: rectangular limit of the meter's offset.
        counter_j: quantum of an energy counter in place of a power sensor; 0 for power.
        point: samples are instantaneous.
        nested: a slice holds all layers of a run.
    """

    name: str
    schedule: tuple[Floats, Floats] = field(default_factory=layer_schedule)
    random_schedule: bool = False
    runs: int = 300
    rate_hz: float = 1000.0
    window_s: float | None = None
    noise: float = 0.01
    memory: float = 0.0
    gap_s: float = 1e-3
    run_power: float = 0.0
    run_duration: float = 0.0
    jitter_s: float = 0.0
    tick_s: float = 0.0
    offset_s: float = 0.0
    drift_ppm: float = 0.0
    gain: float = 0.0
    offset_w: float = 0.0
    counter_j: float = 0.0
    point: bool = False
    nested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One draw.

    Args:
        case: with the schedule that was drawn.
        trace: as the meter has it.
        timeline: as the stamps have it.
        errors: of the meter as its specification says.
        truth_j: energy that each layer, ``run`` and ``idle`` really took, J; ``total`` of the trace.
        edges_s: (m,) true instants at which power changed.
        power_w: (m - 1,) power between them; layers of a run follow each other, then idle.
        begin_s: (n,) true begin of each sample's window.
        end_s: (n,) true end.
        noise_w: of one sample.
        offset_s: of the trace's clock over the timeline's, at its zero.
        drift: of the timeline's clock.
    """

    case: Case
    trace: EnergyTrace
    timeline: Timeline
    errors: MeterErrors
    truth_j: dict[str, float]
    edges_s: Floats
    power_w: Floats
    begin_s: Floats
    end_s: Floats
    noise_w: float
    offset_s: float
    drift: float


def draw(case: Case, rng: np.random.Generator, *, schedule_seed: int | None = None) -> Drawn:
    """Returns one recording of a case."""
    if case.random_schedule:
        seed = int(rng.integers(1 << 30)) if schedule_seed is None else schedule_seed
        case = replace(case, schedule=layer_schedule(seed))
    mean_d, mean_p = case.schedule
    layers, runs = mean_d.size, case.runs
    duration_s = mean_d * (1.0 + case.run_duration * rng.standard_normal((runs, layers)))
    power_w = mean_p * (1.0 + case.run_power * rng.standard_normal((runs, layers)))
    gap_s = rng.uniform(0.0, case.gap_s, runs) if case.gap_s else np.zeros(runs)
    lead_s = max(0.02, 3.0 / case.rate_hz) * rng.uniform(1.0, 2.0)
    pieces_s = np.concatenate([[lead_s], np.column_stack([duration_s, gap_s]).ravel(), [lead_s]])
    pieces_w = np.concatenate([[IDLE_W], np.column_stack([power_w, np.full(runs, IDLE_W)]).ravel(), [IDLE_W]])
    edges_s = np.concatenate([[0.0], np.cumsum(pieces_s)])
    edges_s = np.rint(edges_s * 1e9) * 1e-9
    pieces_s = np.diff(edges_s)
    own_j = (pieces_s * pieces_w)[1:-1].reshape(runs, layers + 1)
    truth = {f"l{k:02d}": float(own_j[:, k].sum()) for k in range(layers)}
    if case.nested:
        truth["run"] = float(own_j[:, :layers].sum())
    mean_w = float((mean_d * mean_p).sum() / mean_d.sum())
    trace, begin_s, end_s = _sample(case, (edges_s, pieces_w), case.noise * mean_w, rng)
    seen_j = _energy(edges_s, pieces_w, np.array([0.0, trace.duration_s]))
    truth["total"] = float(seen_j[1] - seen_j[0])
    truth["idle"] = truth["total"] - float(own_j[:, :layers].sum())
    offset_s = rng.uniform(-case.offset_s, case.offset_s)
    drift = rng.uniform(-case.drift_ppm, case.drift_ppm) * 1e-6
    timeline = _stamp(case, edges_s, (offset_s, drift), rng)
    errors = MeterErrors(
        name="simulated",
        gain_std=case.gain / math.sqrt(3.0),
        offset_std_w=case.offset_w / math.sqrt(3.0),
        rectangular=True,
    )
    return Drawn(
        case=case, trace=trace, timeline=timeline, errors=errors, truth_j=truth, edges_s=edges_s, power_w=pieces_w,
        begin_s=begin_s, end_s=end_s, noise_w=case.noise * mean_w, offset_s=offset_s, drift=drift,
    )  # fmt: skip


def _energy(edges_s: Floats, power_w: Floats, at_s: Floats) -> Floats:
    until = np.concatenate([[0.0], np.cumsum(np.diff(edges_s) * power_w)])
    return np.asarray(np.interp(at_s, edges_s, until), np.float64)


def _sample(
    case: Case, truth: tuple[Floats, Floats], noise_w: float, rng: np.random.Generator
) -> tuple[EnergyTrace, Floats, Floats]:
    edges_s, power_w = truth
    step_s = 1.0 / case.rate_hz
    window_s = case.window_s or step_s
    count = int(edges_s[-1] / step_s)
    end_s = np.asarray((np.arange(count) + 1) * step_s, np.float64)
    begin_s = np.asarray(np.maximum(end_s - window_s, 0.0), np.float64)
    kind, stamps = KernelKind.INTERVAL_MEAN, None
    if case.counter_j:
        kind = KernelKind.COUNTER
        jitter = rng.uniform(-0.2, 0.2, count + 1) * step_s
        at_s = np.rint((np.arange(count + 1) * step_s + np.abs(jitter)) * 1e9) * 1e-9
        read = np.floor(_energy(edges_s, power_w, at_s) / case.counter_j + rng.uniform()) * case.counter_j
        begin_s, end_s = np.asarray(at_s[:-1], np.float64), np.asarray(at_s[1:], np.float64)
        value, stamps = np.diff(read) / np.diff(at_s), np.rint(at_s * 1e9).astype(np.int64)
    elif case.point:
        kind = KernelKind.POINT
        begin_s = end_s = np.asarray(np.arange(count) * step_s, np.float64)
        value = power_w[np.clip(np.searchsorted(edges_s, begin_s, side="right") - 1, 0, power_w.size - 1)].copy()
    else:
        value = (_energy(edges_s, power_w, end_s) - _energy(edges_s, power_w, begin_s)) / (end_s - begin_s)
    if not case.counter_j:
        value = value + noise_w * _noise(case.memory, value.size, rng)
    value = value * (1.0 + rng.uniform(-case.gain, case.gain)) + rng.uniform(-case.offset_w, case.offset_w)
    kernel = SensorKernel(kind=kind, window_s=0.0 if case.counter_j or case.point else window_s)
    channel = Channel(name="power", boundary=Boundary.RAIL, provenance=Provenance.MEASURED_SAMPLED, kernel=kernel)
    trace = EnergyTrace(
        clock=METER_CLOCK,
        channel=channel,
        power_w=value,
        start_ns=0 if stamps is None else int(stamps[0]),
        period_s=step_s if stamps is None else None,
        edges_ns=stamps,
    )
    return trace, begin_s, end_s


def _noise(memory: float, count: int, rng: np.random.Generator) -> Floats:
    if not memory:
        return rng.standard_normal(count)
    fresh = rng.standard_normal(count + 400) * math.sqrt(1.0 - memory**2)
    noise = np.empty(fresh.size)
    last = 0.0
    for at, value in enumerate(fresh.tolist()):
        last = memory * last + value
        noise[at] = last
    return noise[400:]


def _stamp(case: Case, edges_s: Floats, clock: tuple[float, float], rng: np.random.Generator) -> Timeline:
    layers, runs = case.schedule[0].size, case.runs
    stamps = edges_s[1:-1].copy()
    middle_s = 0.5 * edges_s[-1]
    stamps = stamps - clock[0] - clock[1] * (stamps - middle_s)
    if case.jitter_s:
        stamps = np.maximum.accumulate(stamps + case.jitter_s * rng.standard_normal(stamps.size))
    if case.tick_s:
        stamps = np.floor(stamps / case.tick_s) * case.tick_s
    stamps_ns = np.rint(stamps * 1e9).astype(np.int64)
    table = stamps_ns[: runs * (layers + 1)].reshape(runs, layers + 1)
    start_ns, end_ns = table[:, :layers].ravel(), table[:, 1:].ravel()
    name = np.tile(np.arange(layers, dtype=np.int32), runs)
    names = tuple(f"l{k:02d}" for k in range(layers))
    if case.nested:
        start_ns = np.concatenate([table[:, 0], start_ns])
        end_ns = np.concatenate([table[:, -1], end_ns])
        name = np.concatenate([np.full(runs, layers, np.int32), name])
        names = (*names, "run")
    work = WORK_CLOCK
    if case.tick_s:
        work = replace(work, resolution_ns=case.tick_s * 1e9)
    zeros = np.zeros(start_ns.size, np.int32)
    return Timeline(
        clock=work, start_ns=start_ns, end_ns=end_ns, name_index=name, names=names, track_index=zeros, tracks=("core",),
        kind_index=zeros, kinds=("layer",),
    )  # fmt: skip
