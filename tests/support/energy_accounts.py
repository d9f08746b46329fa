"""Short ways to an energy account, for tests of the analysis."""

from __future__ import annotations

from dataclasses import replace

from joulemap.analysis.attribute import account_energy
from joulemap.estimate import Estimate, Quantity
from joulemap.meters.registry import instrument
from joulemap.records.energy import EnergyAccount
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.power import PowerRun
from synthetic_board import BOUNDARY, Board, build_board, measure

__all__ = ["account", "figure", "flawless", "noisy", "small"]


def small(count: int = 40, **changes: float) -> Board:
    """Returns a board of four layers and 2 ms, quick to measure."""
    return build_board("small", (0.9e-3, 0.25e-3, 0.6e-3, 0.24e-3), count=count, head_s=5e-6, loop_s=1e-6, **changes)  # type: ignore[arg-type]


def flawless(rate_hz: float = 1e6, edge_rate_hz: float = 1e9) -> InstrumentSpec:
    """Returns an instrument without any error but its sampling."""
    return replace(
        instrument("virtual-shunt"),
        rate_hz=rate_hz,
        edge_rate_hz=edge_rate_hz,
        gain_std=0.0,
        offset_std_w=0.0,
        noise_std_w=0.0,
        quantum_w=0.0,
        clock_std_ppm=0.0,
        edge_skew_std_s=0.0,
    )


def noisy(board: Board, name: str = "virtual-1k", **changes: float) -> InstrumentSpec:
    """Returns a shipped instrument whose noise is 1 % of the board's mean power."""
    return replace(instrument(name), noise_std_w=0.01 * board.mean_w, **changes)  # type: ignore[arg-type]


def account(board: Board, run_or_spec: PowerRun | InstrumentSpec, *, seed: int = 0, repeats: int = 5) -> EnergyAccount:
    """Returns the account of a run, measured here when an instrument is given."""
    run = run_or_spec if isinstance(run_or_spec, PowerRun) else measure(board, run_or_spec, seed=seed, repeats=repeats)
    return account_energy(board.profile, run, board.layers, ops_per_inference=4000, boundary=BOUNDARY)


def figure(quantity: Quantity) -> Estimate:
    """Returns the quantity as the estimate that it must be."""
    assert isinstance(quantity, Estimate), quantity
    return quantity
