"""The account of a run: what it says, what it refuses, and that its parts add up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from energy_accounts import account, figure, flawless, noisy, small
from energy_coverage import part_truths
from joulemap.analysis.attribute import account_energy
from joulemap.analysis.budget import ASSUMED_REPEATABILITY
from joulemap.errors import NotComparableError
from joulemap.estimate import Boundary, Estimate, Provenance, Unavailable
from joulemap.meters.registry import instrument
from joulemap.records.energy import EnergyAccount, Resolution
from joulemap.records.fault import Fault, FaultPlan, FaultSlug
from joulemap.records.finding import Validity
from joulemap.records.instrument import ErrorDistribution
from joulemap.records.power import GateWindow, ObservationMode, PowerCapture
from synthetic_board import BOUNDARY, IDLE_W, Board, build_board, kws, measure, with_captures


@pytest.fixture(scope="module")
def board() -> Board:
    return small(count=200)


def slugs(result: EnergyAccount) -> set[str]:
    return {finding.slug for finding in result.findings}


def degrade(capture: PowerCapture, **changes: object) -> PowerCapture:
    return replace(capture, observation=replace(capture.observation, **changes))  # type: ignore[arg-type]


def gates(captures: tuple[PowerCapture, ...]) -> list[GateWindow]:
    return [c.observation.result.gate for c in captures if c.observation.result and c.observation.result.gate]


def test_a_flawless_fast_instrument_finds_every_energy(board: Board) -> None:
    result = account(board, flawless())
    assert result.layers[0].resolution is Resolution.OVERLAP
    factor = figure(result.energy_per_inference_j).value / board.total_j
    for layer in result.layers:
        energy_j = figure(layer.energy_j).value
        assert energy_j == pytest.approx(board.layer_j[layer.index] * factor, rel=5e-4)
        assert layer.share == pytest.approx(energy_j / figure(result.energy_per_inference_j).value)
    assert slugs(result) == set()


def test_power_that_the_rail_mixes_at_a_boundary_is_handed_back() -> None:
    """Rows of a microsecond smear boundaries that lie between them; the samples smear them once more."""
    board = build_board("smeared", (80.37e-6, 44.61e-6, 93.18e-6, 60.59e-6), count=100, loop_s=0.05e-6, head_s=6.23e-6)
    result = account(board, flawless())
    factor = figure(result.energy_per_inference_j).value / board.total_j
    assert result.layers[0].resolution is Resolution.OVERLAP
    for layer in result.layers:
        own = figure(layer.energy_j)
        at_the_gap = layer.index in {0, 3}  # which has no inside to compare with
        assert own.value == pytest.approx(board.layer_j[layer.index] * factor, rel=2e-3 if at_the_gap else 5e-4)
        assert abs(own.value - board.layer_j[layer.index] * factor) <= own.expanded


def test_layers_too_short_to_hand_anything_back_are_grouped_and_what_they_hold_is_in_their_interval() -> None:
    layer_s = (8.04e-3, 4.31e-6, 3.77e-6, 9.32e-3, 6.06e-3, 5.13e-6)
    board = build_board("short", layer_s, count=30, loop_s=0.05e-6, head_s=6.23e-6)
    result = account(board, flawless(), seed=1)
    factor = figure(result.energy_per_inference_j).value / board.total_j
    assert {layer.index for layer in result.layers if layer.group is not None} >= {1, 2, 5}
    for _, part, truth_j in part_truths(board, result):
        assert abs(part.value - truth_j * factor) <= part.expanded


@pytest.mark.parametrize("rate_hz", [1e6, 2e5, 3.3e3])
def test_layers_groups_and_gap_add_up_to_the_gate(board: Board, rate_hz: float) -> None:
    result = account(board, noisy(board, "virtual-shunt", rate_hz=rate_hz))
    total = figure(result.energy_per_inference_j)
    parts_j = math.fsum(estimate.value for _, estimate, _ in part_truths(board, result))
    if result.layers[0].resolution is Resolution.OVERLAP:
        assert parts_j == pytest.approx(total.value, rel=1e-12)
    else:
        assert abs(parts_j - total.value) <= total.expanded


def test_the_way_depends_on_what_the_instrument_resolves(board: Board) -> None:
    assert account(board, noisy(board, "virtual-shunt")).layers[0].resolution is Resolution.OVERLAP
    assert account(board, noisy(board, "virtual-10k")).layers[0].resolution is Resolution.LEAST_SQUARES


def test_figures_of_the_whole_inference(board: Board) -> None:
    result = account(board, instrument("virtual-shunt"), seed=4)
    total = figure(result.energy_per_inference_j)
    assert total.provenance is Provenance.SIMULATED
    assert total.boundary is Boundary.RAIL
    assert figure(result.inferences_per_j).value == pytest.approx(1 / total.value)
    assert figure(result.ops_per_j).value == pytest.approx(4000 / total.value)
    latency = figure(result.latency_s)
    assert latency.value == pytest.approx(board.inference_s, rel=1e-4)
    assert latency.boundary is None
    assert abs(latency.value - board.inference_s) <= 2 * latency.expanded
    assert figure(result.average_power_w).value == pytest.approx(total.value / latency.value, rel=1e-6)
    assert figure(result.idle_power_w).value == pytest.approx(IDLE_W, rel=0.02)
    assert result.peak_bandwidth_hz == pytest.approx(443e3)
    peak = figure(result.peak_power_w).value
    assert 1.5 * figure(result.average_power_w).value < peak < 6e-3


def test_energy_above_idle_takes_the_idle_time_off_and_the_offset_cancels(board: Board) -> None:
    spec = replace(flawless(), offset_std_w=1e-4)
    result = account(board, spec, seed=3)
    total, above = figure(result.energy_per_inference_j), figure(result.energy_above_idle_per_inference_j)
    assert total.value - above.value == pytest.approx(
        figure(result.idle_power_w).value * figure(result.latency_s).value, rel=1e-6
    )
    assert above.std < 0.1 * total.std
    assert above.value == pytest.approx(board.total_j - IDLE_W * board.inference_s, rel=2e-3)


def test_gain_is_never_averaged_down(board: Board) -> None:
    spec = replace(flawless(), gain_std=0.01)
    for repeats in (2, 20):
        result = account(board, spec, repeats=repeats)
        gain = next(line for line in result.budget if line.name == "gain")
        assert gain.std_j == pytest.approx(0.01 * figure(result.energy_per_inference_j).value)
        for layer in result.layers:
            energy = figure(layer.energy_j)
            assert energy.std >= 0.0099 * energy.value


def test_the_budget_makes_the_headline(board: Board) -> None:
    result = account(board, instrument("virtual-shunt"))
    total = figure(result.energy_per_inference_j)
    assert math.fsum(line.std_j**2 for line in result.budget) == pytest.approx(total.std**2)
    kinds = {line.name: (line.kind, line.dof) for line in result.budget}
    assert kinds["repeats"] == ("A", 4.0)
    assert kinds["gain"] == ("B", math.inf)


def test_one_capture_has_an_assumed_repeatability_and_says_so(board: Board) -> None:
    for spec in (noisy(board, "virtual-shunt"), noisy(board, "virtual-10k")):
        result = account(board, spec, repeats=1)
        assert "single_capture" in slugs(result)
        repeats = next(line for line in result.budget if line.name == "repeats")
        assert repeats.kind == "B"
        assert repeats.std_j == pytest.approx(ASSUMED_REPEATABILITY * figure(result.energy_per_inference_j).value)
        assert {line.name for line in result.budget} >= {"noise", "edges"}
        for layer in result.layers:
            if isinstance(layer.energy_j, Estimate):
                assert layer.energy_j.std >= ASSUMED_REPEATABILITY * layer.energy_j.value * 0.999


def test_fewer_than_half_valid_captures_have_no_headline(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    bad = [degrade(c, integrity=Validity.DEGRADED) for c in run.captures[:3]]
    result = account(board, with_captures(run, [*bad, *run.captures[3:]]))
    assert result.energy_per_inference_j == Unavailable(reason="captures_dropped")
    assert result.ops_per_j == result.gap.energy_j == Unavailable(reason="captures_dropped")
    assert all(layer.energy_j == Unavailable(reason="captures_dropped") for layer in result.layers)
    assert result.budget == ()
    assert slugs(result) == {"captures_dropped"}


def test_just_over_half_is_enough_and_the_bad_ones_do_not_count(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    good = account(board, with_captures(run, run.captures[:3]))
    mixed = [*run.captures[:3], *(degrade(c, integrity=Validity.INVALID) for c in run.captures[3:])]
    assert account(board, with_captures(run, mixed)) == good


def test_a_free_form_capture_never_enters(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    free = [degrade(c, mode=ObservationMode.FREE_FORM) for c in run.captures]
    assert account(board, with_captures(run, free)).energy_per_inference_j == Unavailable(reason="captures_dropped")


def test_no_whole_sample_inside_the_gate(board: Board) -> None:
    result = account(board, noisy(board, "virtual-10hz", rate_hz=1.0))
    assert result.energy_per_inference_j == Unavailable(reason="gate_unresolved")
    assert slugs(result) == {"gate_unresolved"}


def test_a_capture_without_a_whole_sample_is_left_out_and_said() -> None:
    short = build_board("short", [1 / 512, 1 / 512, 1 / 512, 0.00295], count=6, seed=0, head_s=1e-6, loop_s=1e-7)
    run = measure(short, replace(instrument("virtual-shunt"), rate_hz=20.0), seed=0, repeats=2)
    result = account(short, run)
    whole = [int(np.ceil(g.rise_ns / 5e7)) < int(np.floor(g.fall_ns / 5e7)) for g in gates(run.captures)]
    assert sorted(whole) == [False, True]  # a gate of 53 ms against samples of 50 ms
    assert slugs(result) >= {"gate_unresolved", "single_capture"}
    assert isinstance(result.energy_per_inference_j, Estimate)


def test_an_idle_window_without_a_sample_leaves_idle_unavailable(board: Board) -> None:
    result = account(board, noisy(board, "virtual-10hz", rate_hz=15.0))
    assert result.idle_power_w == Unavailable(reason="idle_unresolved")
    assert result.energy_above_idle_per_inference_j == Unavailable(reason="idle_unresolved")
    assert isinstance(result.energy_per_inference_j, Estimate)


def test_a_model_without_operations_has_no_operations_per_joule(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    result = account_energy(board.profile, run, board.layers, ops_per_inference=0, boundary=BOUNDARY)
    assert result.ops_per_j == Unavailable(reason="no_ops")


def test_another_boundary_is_refused(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    with pytest.raises(NotComparableError) as caught:
        account_energy(board.profile, run, board.layers, ops_per_inference=1, boundary=Boundary.WALL)
    assert caught.value.slug == "boundary-mismatch"


def test_model_and_profile_must_have_the_same_layers(board: Board) -> None:
    run = measure(board, instrument("virtual-10k"), seed=0)
    with pytest.raises(ValueError, match="4"):
        account_energy(board.profile, run, board.layers[:3], ops_per_inference=1, boundary=BOUNDARY)


@pytest.mark.parametrize("inferences", [1.0, 2.0])
def test_a_sample_as_long_as_one_or_two_inferences_is_refused(board: Board, inferences: float) -> None:
    spec = noisy(board, rate_hz=1 / (inferences * board.inference_s), clock_std_ppm=0.0)
    result = account(board, spec)
    assert {layer.resolution for layer in result.layers} == {Resolution.REFUSED}
    assert all(layer.energy_j == Unavailable(reason="sampling_locked") for layer in result.layers)
    assert result.gap.energy_j == Unavailable(reason="sampling_locked")
    assert "sampling_locked" in slugs(result)
    assert figure(result.energy_per_inference_j).value == pytest.approx(board.total_j, rel=0.02)


def test_a_lock_with_many_samples_per_inference_is_not_refused(board: Board) -> None:
    result = account(board, noisy(board, rate_hz=17 / board.inference_s, clock_std_ppm=0.0))
    assert result.layers[0].resolution is Resolution.LEAST_SQUARES
    assert any(isinstance(layer.energy_j, Estimate) for layer in result.layers)


def test_a_layer_too_short_to_see_is_reported_with_its_neighbour() -> None:
    board = kws()
    result = account(board, instrument("virtual-10k"), repeats=2)
    (group,) = (g for g in result.groups if 10 in g.layers)
    assert result.layers[10].energy_j == Unavailable(reason="layers_grouped")
    assert result.layers[10].group == group.id
    assert result.layers[10].share is None
    assert result.layers[0].group is None
    assert "layers_grouped" in slugs(result)
    assert group.duration_s >= sum(board.profile.layer_duration_s[list(group.layers)]) * 0.999


def test_lost_samples_are_filled_up_and_widen_the_interval(board: Board) -> None:
    spec = flawless()
    plan = FaultPlan(faults=(Fault(slug=FaultSlug.CAPTURE_LOSSY),))
    whole, lossy = account(board, spec, seed=2), account(board, measure(board, spec, seed=2, faults=plan))
    lost = next(line for line in lossy.budget if line.name == "lost")
    assert lost.std_j > 0
    assert next(line for line in whole.budget if line.name == "lost").std_j == 0
    total = figure(lossy.energy_per_inference_j)
    assert total.value == pytest.approx(board.total_j, rel=1e-3)
    for layer in lossy.layers:
        energy = figure(layer.energy_j)
        assert abs(energy.value - board.layer_j[layer.index]) <= 2 * energy.expanded
        assert energy.value == pytest.approx(board.layer_j[layer.index], rel=5e-3)


def test_coarse_edges_are_replaced_by_likelihood(board: Board) -> None:
    spec = replace(noisy(board, "virtual-10k"), edge_rate_hz=4e3)
    result = account(board, spec)
    assert "gate_aligned" in slugs(result)
    for layer in result.layers:
        if isinstance(layer.energy_j, Estimate):
            assert layer.energy_j.value == pytest.approx(board.layer_j[layer.index], rel=0.03)


def test_edges_coarser_than_the_inference_refuse_the_layers_only(board: Board) -> None:
    spec = replace(noisy(board, "virtual-10k"), edge_rate_hz=200.0)
    result = account(board, spec)
    assert all(layer.energy_j == Unavailable(reason="edges_too_coarse") for layer in result.layers)
    total = figure(result.energy_per_inference_j)
    assert abs(total.value - board.total_j) <= 2 * total.expanded


def test_rectangular_limits_give_a_monte_carlo_interval(board: Board) -> None:
    spec = replace(flawless(), gain_std=0.01 / math.sqrt(3), distribution=ErrorDistribution.RECTANGULAR)
    result = account(board, spec, repeats=5)
    total = figure(result.energy_per_inference_j)
    assert total.expanded == pytest.approx(0.0095 * total.value, rel=0.06)  # nearly a lone rectangle
    assert total.k < 1.75


def test_equal_runs_give_equal_accounts(board: Board) -> None:
    run = measure(board, instrument("virtual-shunt-rect"), seed=5)
    assert account(board, run) == account(board, run)


def test_a_shifted_gate_is_what_the_skew_term_says(board: Board) -> None:
    """A skew of 2 us moves each layer by no more than its stated edge term allows, three times over."""
    spec = replace(flawless(), edge_skew_std_s=2e-6)
    result = account(board, spec, seed=1)
    parts = part_truths(board, result)
    assert len(parts) >= 4
    for _, energy, truth_j in parts:
        assert abs(energy.value / truth_j - 1) <= 3 * energy.std / energy.value


def test_a_known_offset_is_recovered(board: Board) -> None:
    """An instrument that reads 0.1 mW too much is found out by the idle window of a board without idle power."""
    run = measure(board, flawless(), seed=1, run_std=0.0)
    shifted = []
    for capture in run.captures:
        result = capture.observation.result
        assert result is not None
        trace = replace(result.recording.trace, power_w=result.recording.trace.power_w.astype(np.float64) + 1e-4)
        recording = replace(result.recording, trace=trace)
        shifted.append(degrade(capture, result=replace(result, recording=recording)))
    before, after = account(board, run), account(board, with_captures(run, shifted))
    assert figure(after.idle_power_w).value - figure(before.idle_power_w).value == pytest.approx(1e-4, rel=1e-3)
    per_inference_j = figure(after.energy_per_inference_j).value - figure(before.energy_per_inference_j).value
    assert per_inference_j == pytest.approx(1e-4 * board.inference_s, rel=1e-3)
    assert figure(after.energy_above_idle_per_inference_j).value == pytest.approx(
        figure(before.energy_above_idle_per_inference_j).value, rel=1e-5
    )


@pytest.mark.parametrize("steps_of_noise", [0.0, 0.05, 0.2, 0.4, 2.0])
def test_a_coarse_quantum_does_not_average_out(board: Board, steps_of_noise: float) -> None:
    """The mean power lies anywhere between two steps: the stated interval has to hold wherever that is."""
    held, above_held, widths = [], [], []
    for seed, quantum_w in enumerate(np.geomspace(0.2, 3.0, 24) * board.mean_w):
        spec = replace(flawless(1e5), quantum_w=float(quantum_w), noise_std_w=steps_of_noise * float(quantum_w))
        result = account(board, spec, seed=seed)
        energy = figure(result.energy_per_inference_j)
        held.append(abs(energy.value - board.total_j) <= energy.expanded)
        above = figure(result.energy_above_idle_per_inference_j)
        above_held.append(abs(above.value - (board.total_j - IDLE_W * board.inference_s)) <= above.expanded)
        widths.append(next((line.std_j for line in result.budget if line.name == "resolution"), 0.0) / board.total_j)
    assert np.mean(held) >= 0.9
    assert np.mean(above_held) >= 0.9
    if steps_of_noise > 1:
        assert max(widths) == 0.0
    elif steps_of_noise == 0:
        assert widths == pytest.approx(np.geomspace(0.2, 3.0, 24) / math.sqrt(12.0), rel=1e-3)


@pytest.mark.parametrize(("rate_hz", "quanta"), [(1e6, 10.0), (1e4, 10.0), (1e6, 1e4)])
def test_samples_that_show_no_load_have_no_layers_and_a_wide_headline(
    board: Board, rate_hz: float, quanta: float
) -> None:
    result = account(board, replace(flawless(rate_hz), quantum_w=quanta * board.mean_w))
    energy = figure(result.energy_per_inference_j)
    assert energy.value == 0
    assert energy.expanded >= board.total_j
    assert slugs(result) == {"layers_refused"}
    assert result.layers[0].resolution is Resolution.REFUSED
    assert all(isinstance(layer.energy_j, Unavailable) and layer.share is None for layer in result.layers)
    assert isinstance(result.inferences_per_j, Unavailable)


def test_an_offset_beyond_the_load_gives_no_negative_layers(board: Board) -> None:
    spec = replace(flawless(), offset_std_w=100.0 * board.mean_w)
    results = [account(board, spec, seed=seed) for seed in range(6)]
    negative = [r for r in results if figure(r.energy_per_inference_j).value < 0]
    assert negative
    assert all(slugs(r) == {"layers_refused"} for r in negative)
    covered = [
        abs(figure(r.energy_per_inference_j).value - board.total_j) <= figure(r.energy_per_inference_j).expanded
        for r in results
    ]
    assert np.mean(covered) >= 0.8
