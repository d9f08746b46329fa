"""Many draws of a case against its truth: how often intervals hold it, and how wide they are beside the best possible.

The *ideal* half-width is that of the best linear unbiased estimate by somebody who knows all that is not drawn anew:
the true instants of every change of power (where stamps jitter: their scatter), the noise of the sensor with its
correlation, the scatter of the runs and the limits of the meter. Only powers are unknown to him, and the clock's offset
and drift where the case draws them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.estimate import Estimate
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap
from recording_truth import METER_CLOCK, Case, Drawn, draw

__all__ = ["Counted", "Study", "Tally", "ideal_half_widths", "map_drawn", "run_study", "share_bounds"]

Floats = NDArray[np.float64]
_IDEAL_RUNS = 300
_Z = 1.959963984540054


@dataclass(slots=True)
class Tally:
    """What became of one row over the draws."""

    held: int = 0
    told: int = 0
    refused: int = 0
    widths: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Counts of a case.

    Args:
        name: of the case.
        draws: made.
        rows: by key.
        shares: of the intervals of each draw that hold the truth.
        ratio: median of width over the ideal.
    """

    name: str
    draws: int
    rows: dict[str, Tally]
    shares: tuple[float, ...]
    ratio: float

    @property
    def covered(self) -> float:
        """Share of all intervals that hold the truth."""
        return sum(t.held for t in self.rows.values()) / max(sum(t.told for t in self.rows.values()), 1)

    @property
    def refused(self) -> int:
        """Rows without a figure."""
        return sum(t.refused for t in self.rows.values())

    @property
    def worst(self) -> tuple[str, float]:
        """Row with the lowest share among those told in half of the draws at least."""
        told = {k: t.held / t.told for k, t in self.rows.items() if t.told * 2 >= self.draws}
        if not told:
            return "", math.nan
        key = min(told, key=lambda k: told[k])
        return key, told[key]

    def bounds(self) -> tuple[float, float]:
        """Shares between which chance leaves an honest 95 % for as many draws (3.3 sd; draws are what is independent).

        Rows of a draw share its meter, its clock and its noise, so a draw counts once, by its share.
        """
        spread = float(np.std(self.shares, ddof=1)) if len(self.shares) > 1 else 0.22
        spread = max(spread, 0.01)
        half = 3.3 * spread / math.sqrt(len(self.shares))
        return 0.95 - half, 0.95 + half

    def line(self) -> str:
        """Returns the case as a line of a table."""
        key, worst = self.worst
        low, high = self.bounds()
        return (
            f"| {self.name} | {self.draws} | {self.covered:.3f} ({low:.3f} to {high:.3f}) | {self.ratio:.3f}"
            f" | {key} {worst:.3f} | {self.refused} |"
        )


Counted = Callable[[Drawn], Iterable[tuple[str, float, object, float]]]
"""From a draw to (key, truth, quantity, ideal half-width); a half-width of nan is left out of the ratio."""


def share_bounds(draws: int, *, alarm: float) -> int:
    """Returns the fewest of that many honest 95 % intervals that hold the truth, but for a chance of ``alarm``."""
    tail, mass, held = 0.0, 0.05**draws if draws < 200 else 0.0, 0
    log = [0.0]
    for k in range(1, draws + 1):
        log.append(log[-1] + math.log((draws - k + 1) / k) + math.log(0.95 / 0.05))
    base = draws * math.log(0.05)
    for held in range(draws + 1):
        mass = math.exp(base + log[held])
        if tail + mass > alarm:
            return held
        tail += mass
    return held


def map_drawn(drawn: Drawn, clock: ClockMap | None = None) -> EnergyMap:
    """Returns the map of a draw; without a relation of the clocks they are one."""
    clock = clock or ClockMap(source=drawn.timeline.clock, target=METER_CLOCK)
    return map_energy([drawn.trace], drawn.timeline, clock, drawn.errors, request=MapRequest())


def run_study(case: Case, draws: int, counted: Counted, *, seed: int = 1, first: int = 0, ideal: bool = True) -> Study:
    """Returns the counts of a case over seeded draws.

    Args:
        case: to draw.
        draws: how many.
        counted: what is compared.
        seed: of the case.
        first: number of the first draw.
        ideal: compare widths.
    """
    rows: dict[str, Tally] = defaultdict(Tally)
    shares, ratios = [], []
    for number in range(first, first + draws):
        drawn = draw(case, np.random.default_rng((seed, number)))
        held = told = 0
        for key, truth, quantity, best in counted(drawn):
            tally = rows[key]
            if not isinstance(quantity, Estimate):
                tally.refused += 1
                continue
            inside = abs(quantity.value - truth) <= quantity.expanded
            tally.told += 1
            tally.held += inside
            told, held = told + 1, held + inside
            if ideal and math.isfinite(best) and best > 0:
                ratios.append(quantity.expanded / best)
        if told:
            shares.append(held / told)
    ratio = float(np.median(ratios)) if ratios else math.nan
    return Study(name=case.name, draws=draws, rows=dict(rows), shares=tuple(shares), ratio=ratio)


def ideal_half_widths(case: Case, seed: int = 99) -> dict[str, float]:
    """Returns the ideal half-width of each layer's energy, of ``idle`` and of ``run``, J, for the runs of the case.

    Computed for at most 300 runs and scaled by the root of the runs: noise only shrinks so; the meter's part does not.
    """
    runs = min(case.runs, _IDEAL_RUNS)
    drawn = draw(replace(case, runs=runs), np.random.default_rng(seed))
    scale = case.runs / runs
    layers = case.schedule[0].size
    design, time_s = _design(drawn, layers)
    covariance = _posterior(drawn, design, time_s)
    widths: dict[str, float] = {}
    names = [*(f"l{k:02d}" for k in range(layers)), "idle"]
    for at, name in enumerate(names):
        noise = math.sqrt(max(float(covariance[at, at]), 0.0) * scale)
        energy = drawn.truth_j[name] * scale
        widths[name] = _with_meter(noise, abs(energy), float(time_s[at]) * scale, case)
    if case.nested:
        weight = np.zeros(covariance.shape[0])
        weight[:layers] = 1.0
        noise = math.sqrt(max(float(weight @ covariance @ weight), 0.0) * scale)
        widths["run"] = _with_meter(noise, drawn.truth_j["run"] * scale, float(time_s[:layers].sum()) * scale, case)
    return widths


def _with_meter(noise_j: float, energy_j: float, time_s: float, case: Case) -> float:
    """Returns the half-width of noise with a rectangular gain and offset, J, by a fine convolution."""
    parts = [energy_j * case.gain, time_s * case.offset_w]
    if max(parts) < 1e-3 * noise_j or not max(parts) > 0:
        return _Z * noise_j
    rng = np.random.default_rng(0)
    total = noise_j * rng.standard_normal(400_000)
    for limit in parts:
        total += rng.uniform(-limit, limit, total.size)
    return float(np.quantile(np.abs(total), 0.95))


def _design(drawn: Drawn, layers: int) -> tuple[Floats, Floats]:
    """Returns (n, layers + 1) time of each sample in each layer and idle, s, and (layers + 1,) time of each in all."""
    span_s = np.diff(drawn.edges_s)
    label = np.concatenate([[layers], np.tile(np.arange(layers + 1), drawn.case.runs), [layers]])
    design = np.empty((drawn.end_s.size, layers + 1))
    for column in range(layers + 1):
        until = np.concatenate([[0.0], np.cumsum(np.where(label == column, span_s, 0.0))])
        if drawn.case.point:
            at = np.clip(np.searchsorted(drawn.edges_s, drawn.begin_s, side="right") - 1, 0, label.size - 1)
            design[:, column] = (label[at] == column) / drawn.case.rate_hz
        else:
            design[:, column] = np.interp(drawn.end_s, drawn.edges_s, until) - np.interp(
                drawn.begin_s, drawn.edges_s, until
            )
    total = np.array([float(span_s[label == column].sum()) for column in range(layers + 1)])
    return design, total


def _posterior(drawn: Drawn, design: Floats, time_s: Floats) -> Floats:
    """Returns the covariance of the energies of the layers and idle for one who knows all but their powers, J²."""
    case, n = drawn.case, design.shape[0]
    width = design.shape[1]
    step_s = 1.0 / case.rate_hz
    if not (case.counter_j or case.memory or case.run_power):
        return _white_posterior(drawn, design, time_s)
    if case.counter_j:  # readings instead of differences: their errors are independent
        until = np.vstack([np.zeros(width), np.cumsum(design, axis=0)])
        design = np.hstack([until, np.ones((n + 1, 1))])
        noise = np.eye(n + 1) * case.counter_j**2 / 12.0
    else:
        window_s = step_s if case.point else float(np.median(drawn.end_s - drawn.begin_s))
        lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        noise = (drawn.noise_w * window_s) ** 2 * case.memory**lag
    design = _with_clock(drawn, design)
    if case.run_power:
        design_r, weight = _run_columns(drawn, width - 1)
        scatter = (np.tile(case.schedule[1], case.runs) * case.run_power) ** 2
        noise = noise + (design_r * scatter) @ design_r.T
        cross = (weight * scatter) @ design_r.T  # covariance of what is asked with the samples
        own = (weight**2 * scatter).sum(axis=1)
    solve = np.linalg.solve(noise, design)
    gram = design.T @ solve
    scale = 1.0 / np.sqrt(np.diag(gram))
    inverse = np.linalg.pinv(gram * np.outer(scale, scale), rcond=1e-13) * np.outer(scale, scale)
    ask = np.zeros((width, design.shape[1]))
    ask[np.arange(width), np.arange(width)] = time_s
    if not case.run_power:
        covariance = ask @ inverse @ ask.T
        return np.asarray(covariance, np.float64)
    gain = np.linalg.solve(noise, cross.T).T  # best prediction of the scatter of what is asked
    rest = ask - gain @ design
    covariance = rest @ inverse @ rest.T + np.diag(own) - gain @ cross.T
    return np.asarray(covariance, np.float64)


def _white_posterior(drawn: Drawn, design: Floats, time_s: Floats) -> Floats:
    """Returns the same for independent noise, which needs no matrix of the samples."""
    case, width, step_s = drawn.case, design.shape[1], 1.0 / drawn.case.rate_hz
    window_s = step_s if case.point else float(np.median(drawn.end_s - drawn.begin_s))
    design = _with_clock(drawn, design)
    ask = np.zeros((width, design.shape[1]))
    ask[np.arange(width), np.arange(width)] = time_s
    noise_j = drawn.noise_w * window_s
    known = np.zeros(design.shape[1])  # precision of what is known of a parameter already
    if case.jitter_s:
        edges, asked = _edge_columns(drawn, width)
        design, ask = np.hstack([design, edges]), np.hstack([ask, asked])
        known = np.append(known, np.full(edges.shape[1], case.runs / case.jitter_s**2))
    gram = design.T @ design / noise_j**2 + np.diag(known)
    scale = 1.0 / np.sqrt(np.diag(gram))
    inverse = np.linalg.pinv(gram * np.outer(scale, scale), rcond=1e-13) * np.outer(scale, scale)
    return np.asarray(ask @ inverse @ ask.T, np.float64)


def _edge_columns(drawn: Drawn, width: int) -> tuple[Floats, Floats]:
    """Returns how samples answer to each boundary of the schedule, (n, b) W, and how the energies do, (width, b) W.

    Stamps jitter for everybody: the boundaries are known to their mean over the runs, and samples say more of them.
    """
    runs = drawn.case.runs
    count = runs * width
    at_s = drawn.edges_s[1 : 1 + count]
    step_w = drawn.power_w[:count] - drawn.power_w[1 : 1 + count]
    columns = np.zeros((drawn.end_s.size, width))
    sample = np.searchsorted(drawn.end_s, at_s, side="left")
    inside = sample < drawn.end_s.size
    np.add.at(columns, (sample[inside], np.tile(np.arange(width), runs)[inside]), step_w[inside])
    asked = np.zeros((width, width))
    for layer in range(width - 1):
        watts = drawn.case.schedule[1][layer] * runs
        asked[layer, layer], asked[layer, layer + 1] = -watts, watts
    return columns, asked


def _with_clock(drawn: Drawn, design: Floats) -> Floats:
    """Returns the design with how samples answer to a shift and a drift of the schedule, where the case draws them."""
    case, power = drawn.case, drawn.power_w
    if not case.offset_s:
        return design

    def at(instant_s: Floats) -> Floats:
        return power[np.clip(np.searchsorted(drawn.edges_s, instant_s, side="right") - 1, 0, power.size - 1)]

    slope = at(drawn.begin_s) - at(drawn.end_s)
    extra = [slope] if not case.drift_ppm else [slope, slope * (drawn.end_s - 0.5 * drawn.end_s[-1])]
    return np.column_stack([design, *extra])


def _run_columns(drawn: Drawn, layers: int) -> tuple[Floats, Floats]:
    """Returns (n, runs * layers) time of each sample in each slice, and (layers + 1, runs * layers) time of each."""
    runs = drawn.case.runs
    begin = drawn.edges_s[1:-2].reshape(runs, layers + 1)[:, :layers].ravel()
    end = drawn.edges_s[2:-1].reshape(runs, layers + 1)[:, :layers].ravel()
    columns = np.minimum(drawn.end_s[:, None], end) - np.maximum(drawn.begin_s[:, None], begin)
    weight = np.zeros((layers + 1, runs * layers))
    weight[np.tile(np.arange(layers), runs), np.arange(runs * layers)] = end - begin
    return np.maximum(columns, 0.0), weight
