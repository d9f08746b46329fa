"""How often the stated intervals hold, over many draws of instrument, noise and run factor; prints what it counted.

The truth is the board's mean (run factor 1). Draws are counted, not layers: one gain error moves all layers of a
draw. ``study`` takes any :class:`synthetic_board.Board`, so a capture of a real or emulated board as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from joulemap.analysis.attribute import account_energy
from joulemap.estimate import Estimate
from joulemap.meters.rail_integral import RailIntegral
from joulemap.records.energy import EnergyAccount, Resolution
from joulemap.records.instrument import InstrumentSpec
from synthetic_board import BOUNDARY, Board, measure, time_split


@dataclass(frozen=True, kw_only=True)
class Study:
    """Counts and errors over the draws. Shares are 0..1; errors are relative and absolute values.

    Args:
        draws: runs that were drawn.
        covered: share of draws whose interval of J/inference holds the truth.
        width_ratio: mean half-width over the ideal one, 1.96 sqrt(s²/R + u_B²).
        median_error: of J/inference.
        above_idle_covered: share of draws whose interval of the energy above idle holds the truth; None without it.
        resolutions: how the layers were resolved, counted.
        refused: draws without any layer.
        layer_median_error: median over draws and layers of at least 1 % of the energy that stand alone.
        layer_worst_error: the same, the worst.
        split_median_error: of splitting the measured total by time, same layers.
        part_covered: mean over draws of the share of layers and groups whose interval holds.
        layer_width_ratio: median over draws and the same layers of the half-width over the ideal one of the layer.
        worst_part: the layer or group, of those reported in at least 20 draws, that covers worst for its number of
            draws: its name, coverage and draws.
        parts: mean number of layers and groups reported.
        closure: largest relative difference of layers, groups and gap from the total.
        findings: slugs, counted.
    """

    draws: int
    covered: float
    width_ratio: float
    median_error: float
    above_idle_covered: float | None
    resolutions: dict[str, int]
    refused: int
    layer_median_error: float
    layer_worst_error: float
    split_median_error: float
    part_covered: float
    layer_width_ratio: float
    worst_part: tuple[str, float, int]
    parts: float
    closure: float
    findings: dict[str, int]

    @property
    def worst_margin(self) -> float:
        """By how much the worst part covers more than chance may take from 90 % at one and a half standard errors."""
        return margin(self.worst_part[1], self.worst_part[2])


def margin(covered: float, draws: int) -> float:
    """Returns how far a coverage lies above 90 % less one and a half standard errors: 200 draws may show 0.868."""
    return covered - (0.9 - 1.5 * math.sqrt(0.09 / draws)) if draws else math.nan


def ideal_half_width(spec: InstrumentSpec, mean_w: float, repeats: int, run_std: float) -> float:
    """Returns the ideal relative half-width of a 95 % interval at a mean power: 1.96 sqrt(s²/R + u_B²)."""
    shared = spec.gain_std**2 + (spec.offset_std_w / mean_w) ** 2 + (spec.clock_std_ppm * 1e-6) ** 2
    return 1.959964 * math.sqrt(run_std**2 / repeats + shared)


def study(
    board: Board,
    spec: InstrumentSpec,
    *,
    draws: int,
    repeats: int = 5,
    run_std: float = 0.002,
    first_seed: int = 0,
    idle_w: float | None = None,
) -> Study:
    """Returns what ``draws`` independent runs of the board and the instrument show.

    Args:
        board: rail, profile and truth.
        spec: of the instrument.
        draws: how many.
        repeats: R.
        run_std: run-to-run variation, 1 sd.
        first_seed: of the first draw.
        idle_w: true idle power, W, when the energy above idle is to be scored too.
    """
    integral = RailIntegral.build(board.rail)
    accounts = []
    for seed in range(first_seed, first_seed + draws):
        run = measure(board, spec, seed=seed, repeats=repeats, run_std=run_std, integral=integral)
        accounts.append(account_energy(board.profile, run, board.layers, ops_per_inference=2000, boundary=BOUNDARY))
    return summarise(
        board, accounts, ideal=lambda mean_w: ideal_half_width(spec, mean_w, repeats, run_std), idle_w=idle_w
    )


def summarise(
    board: Board, accounts: Iterable[EnergyAccount], *, ideal: Callable[[float], float], idle_w: float | None
) -> Study:
    """Returns the counts over accounts of independent runs of one board; ``ideal`` is a half-width by mean power."""
    total_j = board.total_j
    covered, width, error, idle, closure, coverage, parts = [], [], [], [], [], [], []
    layer_error: list[float] = []
    layer_width: list[float] = []
    split_error: list[float] = []
    part_hits: dict[str, list[bool]] = {}
    resolutions: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    refused = 0
    for account in accounts:
        headline = account.energy_per_inference_j
        assert isinstance(headline, Estimate)
        covered.append(abs(headline.value - total_j) <= headline.expanded)
        width.append(headline.expanded / total_j / ideal(board.mean_w))
        error.append(abs(headline.value / total_j - 1))
        above = account.energy_above_idle_per_inference_j
        if idle_w is not None and isinstance(above, Estimate):
            idle.append(abs(above.value - (total_j - idle_w * board.inference_s)) <= above.expanded)
        resolutions[str(account.layers[0].resolution)] += 1
        findings.update(f.slug for f in account.findings)
        if account.layers[0].resolution is Resolution.REFUSED:
            refused += 1
            continue
        hits = part_truths(board, account)
        parts.append(len(hits))
        coverage.append(np.mean([abs(e.value - truth) <= e.expanded for _, e, truth in hits]))
        for name, figure, truth in hits:
            part_hits.setdefault(name, []).append(abs(figure.value - truth) <= figure.expanded)
        closure.append(abs(sum(figure.value for _, figure, _ in hits) / headline.value - 1))
        split_j = time_split(board, headline.value)
        for layer in account.layers:
            truth = float(board.layer_j[layer.index])
            if truth >= 0.01 * total_j and isinstance(layer.energy_j, Estimate):
                layer_error.append(abs(layer.energy_j.value / truth - 1))
                own_w = truth / float(board.profile.layer_duration_s[layer.index])
                layer_width.append(layer.energy_j.expanded / truth / ideal(own_w))
                split_error.append(abs(split_j[layer.index] / truth - 1))
    often = [(name, float(np.mean(hits)), len(hits)) for name, hits in part_hits.items() if len(hits) >= 20]
    return Study(
        draws=len(covered),
        covered=float(np.mean(covered)),
        width_ratio=float(np.mean(width)),
        median_error=float(np.median(error)),
        above_idle_covered=float(np.mean(idle)) if idle else None,
        resolutions=dict(resolutions),
        refused=refused,
        layer_median_error=float(np.median(layer_error)) if layer_error else math.nan,
        layer_worst_error=max(layer_error, default=math.nan),
        split_median_error=float(np.median(split_error)) if split_error else math.nan,
        part_covered=float(np.mean(coverage)) if coverage else math.nan,
        layer_width_ratio=float(np.median(layer_width)) if layer_width else math.nan,
        worst_part=min(often, key=lambda part: margin(part[1], part[2]), default=("", math.nan, 0)),
        parts=float(np.mean(parts)) if parts else 0.0,
        closure=max(closure, default=0.0),
        findings=dict(findings),
    )


def part_truths(board: Board, account: EnergyAccount) -> list[tuple[str, Estimate, float]]:
    """Returns name, estimate and truth of every layer, group and gap that has an energy of its own."""
    parts = [
        (f"layer {layer.index}", layer.energy_j, float(board.layer_j[layer.index]))
        for layer in account.layers
        if isinstance(layer.energy_j, Estimate)
    ]
    for group in account.groups:
        truth = float(board.layer_j[list(group.layers)].sum()) + (board.gap_j if group.contains_gap else 0.0)
        if isinstance(group.energy_j, Estimate):
            name = f"layers {group.layers[0]}..{group.layers[-1]}{' + gap' if group.contains_gap else ''}"
            parts.append((name, group.energy_j, truth))
    if isinstance(account.gap.energy_j, Estimate):
        parts.append(("gap", account.gap.energy_j, board.gap_j))
    return parts
