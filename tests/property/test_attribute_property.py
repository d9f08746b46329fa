"""Whatever the board, the instrument and the run: energy is conserved, nothing is claimed that is not there."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from energy_accounts import account, figure
from energy_coverage import part_truths
from joulemap.estimate import Estimate, Unavailable
from joulemap.meters.registry import instrument
from joulemap.records.energy import Resolution
from synthetic_board import build_board

LAYERS = st.lists(st.floats(2e-6, 3e-3), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    layer_s=LAYERS,
    count=st.integers(1, 12),
    seed=st.integers(0, 2**31),
    repeats=st.integers(1, 6),
    rate_hz=st.floats(20.0, 1e6),
    edge_rate_hz=st.floats(1e3, 1e7),
    ripple=st.floats(-0.3, 0.3),
)
def test_parts_add_up_and_stay_near_the_truth(
    layer_s: list[float],
    count: int,
    seed: int,
    repeats: int,
    rate_hz: float,
    edge_rate_hz: float,
    ripple: float,
) -> None:
    board = build_board("any", layer_s, count=count, seed=seed, head_s=1e-6, loop_s=1e-7, ripple=ripple)
    gate_s = board.inference_s * count
    assume(gate_s * edge_rate_hz > 5)  # a shorter pulse is no valid capture
    spec = replace(instrument("virtual-shunt"), rate_hz=rate_hz, edge_rate_hz=edge_rate_hz)
    result = account(board, spec, seed=seed, repeats=repeats)
    total = result.energy_per_inference_j
    if isinstance(total, Unavailable):
        assert total.reason == "gate_unresolved"
        return
    plausible = 0.015 + 2 / (edge_rate_hz * gate_s)
    assert abs(total.value - board.total_j) <= max(6 * total.std, plausible * board.total_j)
    layers = {layer for group in result.groups for layer in group.layers}
    for layer in result.layers:
        assert (layer.index in layers) == (layer.group is not None)
        assert isinstance(layer.energy_j, Estimate) == (layer.share is not None)
    if result.layers[0].resolution is Resolution.REFUSED:
        assert not result.groups
        assert any(finding.slug == figure_reason(result.layers[0].energy_j) for finding in result.findings)
        return
    parts = part_truths(board, result)
    off_j = math.fsum(part.value for _, part, _ in parts) - total.value
    if result.layers[0].resolution is Resolution.OVERLAP:
        assert abs(off_j) <= 1e-9 * total.value
    else:
        noise_j = math.fsum(part.std for _, part, _ in parts)
        assert abs(off_j) <= total.expanded + noise_j
    assert sum(group.contains_gap for group in result.groups) == (not isinstance(result.gap.energy_j, Estimate))


def figure_reason(energy_j: object) -> str:
    """Returns the reason of an energy that is unavailable."""
    assert isinstance(energy_j, Unavailable)
    return energy_j.reason


@settings(max_examples=25, deadline=None)
@given(layer_s=st.lists(st.floats(1e-4, 3e-3), min_size=1, max_size=6), seed=st.integers(0, 2**31))
def test_doubling_the_power_doubles_every_energy(layer_s: list[float], seed: int) -> None:
    board = build_board("any", layer_s, count=5, seed=seed)
    rows = board.rail.energy_fj.astype("uint64") * 2
    twice = replace(board, rail=replace(board.rail, energy_fj=rows.astype("uint32")), layer_j=board.layer_j * 2)
    spec = replace(instrument("virtual-shunt"), noise_std_w=0.0, quantum_w=0.0, offset_std_w=0.0)
    one, two = (account(b, spec, seed=seed, repeats=2) for b in (board, twice))
    assert math.isclose(
        figure(two.energy_per_inference_j).value, 2 * figure(one.energy_per_inference_j).value, rel_tol=1e-6
    )
    for (_, a, _), (_, b, _) in zip(part_truths(board, one), part_truths(twice, two), strict=True):
        assert abs(b.value - 2 * a.value) <= 1e-6 * figure(one.energy_per_inference_j).value
