"""The promises about intervals and errors, counted over hundreds of draws on synthetic and on emulated boards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from energy_accounts import noisy
from energy_coverage import Study, study
from joulemap.meters.registry import instrument
from synthetic_board import IDLE_W, Board, ad01, kws

pytestmark = pytest.mark.soak

MODELS = Path(__file__).parents[2].parent / "shared" / "models" / "mlperf_tiny"
EMULATED = {"emulated-kws": "kws_ref_model.tflite", "emulated-ad01": "ad01_int8.tflite"}


@pytest.fixture(scope="module", params=["kws", "ad01", *EMULATED])
def board(request: pytest.FixtureRequest) -> Iterator[Board]:
    """Yields synthetic boards and the emulated ones, contrast on."""
    name: str = request.param
    if name not in EMULATED:
        yield {"kws": kws, "ad01": ad01}[name]()
        return
    if not (MODELS / EMULATED[name]).exists():
        pytest.skip(f"{EMULATED[name]} is not beside the repository")
    from emulated_board import emulate

    yield emulate(MODELS / EMULATED[name])


def show(board: Board, result: Study) -> None:
    print(f"\n{board.name}: {result}")  # noqa: T201  # figures for who runs the soak with -s


def assert_honest(result: Study) -> None:
    """Holds the layers and groups on average, and the worst of them up to what chance may take, to 90 %."""
    assert result.part_covered >= 0.9
    assert result.worst_margin >= 0


def test_a_thousand_draws_at_ten_kilosamples(board: Board) -> None:
    idle_w = None if board.name.endswith(("model", "int8")) else IDLE_W
    result = study(board, instrument("virtual-10k"), draws=1000, idle_w=idle_w)
    show(board, result)
    assert result.covered >= 0.92
    assert result.width_ratio <= 1.25
    assert result.median_error <= 0.002
    assert result.layer_width_ratio <= 1.3
    assert_honest(result)
    assert idle_w is None or (result.above_idle_covered or 0.0) >= 0.92


def test_two_hundred_draws_at_a_megasample(board: Board) -> None:
    result = study(board, instrument("virtual-shunt"), draws=200)
    show(board, result)
    assert result.covered >= 0.90
    assert result.width_ratio <= 1.25
    assert result.layer_median_error <= 0.003
    assert result.layer_worst_error <= 0.015
    assert result.split_median_error >= 20 * result.layer_median_error
    assert_honest(result)
    assert result.layer_width_ratio <= 1.3
    assert result.closure <= 1e-12


def test_two_hundred_draws_at_one_kilohertz(board: Board) -> None:
    result = study(board, noisy(board), draws=200)
    show(board, result)
    assert_honest(result)
    assert result.covered >= 0.9
    assert result.layer_width_ratio <= 2.0
    assert result.refused == 0


@pytest.mark.parametrize("rate_hz", [1e3, 10e3])
@pytest.mark.parametrize("uneven", [kws, ad01], ids=["kws", "ad01"])
def test_layers_of_uneven_power(uneven: Callable[..., Board], rate_hz: float) -> None:
    """A tenth more power in the first fifth of each layer."""
    board = uneven(ripple=0.1)
    result = study(board, noisy(board, rate_hz=rate_hz), draws=200)
    show(board, result)
    assert_honest(result)
    assert result.refused == 0


@pytest.mark.parametrize("inferences", [1.0, 2.0])
def test_a_sample_of_one_or_two_inferences_is_always_refused(board: Board, inferences: float) -> None:
    spec = noisy(board, rate_hz=1 / (inferences * board.inference_s), clock_std_ppm=0.0)
    result = study(board, spec, draws=200)
    show(board, result)
    assert result.refused == result.draws
    assert set(result.findings) >= {"sampling_locked"}


@pytest.mark.parametrize("samples", [17, 20, 230])
def test_locks_with_many_samples_per_inference_are_resolved(board: Board, samples: int) -> None:
    result = study(board, noisy(board, rate_hz=samples / board.inference_s, clock_std_ppm=0.0), draws=100)
    show(board, result)
    assert_honest(result)
    assert result.refused == 0


def test_ten_hertz_is_refused_or_grouped_and_never_wrong(board: Board) -> None:
    result = study(board, noisy(board, "virtual-10hz"), draws=200)
    show(board, result)
    assert result.covered >= 0.88
    if "ad01" in board.name:
        assert result.refused == result.draws
    else:
        assert_honest(result)


def test_coarse_edges_at_one_kilohertz(board: Board) -> None:
    result = study(board, noisy(board, edge_rate_hz=1e3), draws=100)
    show(board, result)
    assert_honest(result)


def test_rectangular_limits_by_monte_carlo(board: Board) -> None:
    result = study(board, replace(instrument("virtual-shunt-rect"), rate_hz=10e3), draws=300)
    show(board, result)
    assert result.covered >= 0.93
    assert result.width_ratio <= 1.3
