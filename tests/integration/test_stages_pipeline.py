"""The stages on the virtual board: what they build and when, what they say, and whose numbers they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap.errors import CapacityError, InputError, JoulemapError, PowerError, SetupError, UsageError
from joulemap.firmware.boards.base import Board, BoardSession
from joulemap.firmware.stages import power
from joulemap.firmware.stages.bench import Bench
from joulemap.firmware.stages.context import PowerDone, ProfileDone, Requested
from joulemap.firmware.toolchains.base import Toolchain
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.records.finding import Validity
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact, FirmwareSource
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.records.run import ProfileRequest
from joulemap.records.target import CpuSpec, Target
from pipeline_bench import SETUP_STAGES, fault_plan, open_profile, run_power, run_stages
from small_models import write_flash_hog, write_ram_hog, write_small_model

COUNT = 20


class BuildLog:
    """The real toolchain, with a note of every image that it was asked for."""

    def __init__(self) -> None:
        self.roles: list[ArtifactRole] = []
        self._inner: Toolchain = toolchain("zig")
        self.name = self._inner.name

    def __call__(self, _name: str) -> Toolchain:
        return self

    def describe(self) -> str:
        return self._inner.describe()

    def build(self, source: FirmwareSource, cpu: CpuSpec) -> FirmwareArtifact:
        self.roles.append(source.role)
        return self._inner.build(source, cpu)

    def build_host_library(self, name: str, files: Any) -> Path:
        return self._inner.build_host_library(name, files)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


@contextmanager
def setup_of(model: Path, **request: Any) -> Iterator[Any]:
    """Yields the context after the setup stages."""
    with (bench := Bench()).resources:
        requested = Requested(request=ProfileRequest(model=model, **request), bench=bench)
        yield run_stages(requested, SETUP_STAGES)


def error_of(model: Path, **request: Any) -> JoulemapError:
    with pytest.raises(JoulemapError) as caught, setup_of(model, **request):
        pass
    return caught.value


def test_without_power_only_the_profiler_is_built(model: Path) -> None:
    log = BuildLog()
    with open_profile(model, power=False, bench={"toolchain": log}) as context:
        assert log.roles == [ArtifactRole.PROFILE]
        assert context.profile.firmware.role is ArtifactRole.PROFILE


def test_the_profile_is_shown_before_the_power_image_is_rendered(model: Path) -> None:
    log, updates = BuildLog(), list[ProgressUpdate]()
    with open_profile(model, count=COUNT, repeats=2, updates=updates, bench={"toolchain": log}) as context:
        assert log.roles == [ArtifactRole.PROFILE]
        assert updates[-1].name == "counter_capture_complete"
        assert updates[-1].details["clean_latency_s"] == context.profile.result.clean_latency_s
        run_power(context)
    assert log.roles == [ArtifactRole.PROFILE, ArtifactRole.POWER]


def test_the_checkpoints_in_their_order(model: Path) -> None:
    updates = list[ProgressUpdate]()
    with open_profile(model, count=COUNT, repeats=2, updates=updates) as context:
        run_power(context)
    assert [update.name for update in updates if update.checkpoint] == [
        "platform_and_model_resolved",
        "engine_prepared",
        "memory_placement_resolved",
        "profile_firmware_built",
        "profile_firmware_deployed",
        "counter_capture_complete",
        "power_run_planned",
        "power_firmware_built",
        "power_firmware_deployed",
        "gate_observed",
        "terminal_status_received",
    ]
    captures = [update for update in updates if update.name == "capture_power_observation"]
    assert [(u.details["done"], u.details["total"], u.details["unit"]) for u in captures] == [
        (1, 2, "captures"),
        (2, 2, "captures"),
    ]
    assert all(update.phase in Phase for update in updates)
    assert not any("[" in update.message and "/]" in update.message for update in updates)


def test_layer_cycles_are_the_boards_own_to_the_cycle(model: Path) -> None:
    with open_profile(model, count=COUNT, repeats=1) as context:
        done = run_power(context)
    assert done.truth is not None
    truth = done.truth.captures[0].truth
    assert truth.layer_entries.tolist() == [COUNT] * 4
    measured = np.median(done.profile.result.layer_cycles, axis=0)
    off = measured - truth.layer_cycles / COUNT
    assert np.abs(off[1:]).max() == 0
    assert abs(off[0]) <= 1  # the first layer follows the head's mark, which is one cycle shorter
    per_inference = truth.gate_cycles / COUNT - float(np.median(done.profile.result.clean_cycles))
    assert 0 <= per_inference <= 30  # the loop around an inference


def test_both_images_compute_the_oracles_output(model: Path) -> None:
    with open_profile(model, count=COUNT, repeats=1) as context:
        done = run_power(context)
    assert done.prepared.reference_crc32 is not None
    assert done.profile.result.output_crc32 == done.prepared.reference_crc32
    terminal = done.power.captures[0].terminal
    assert terminal is not None
    assert terminal.output_crc32 == done.prepared.reference_crc32


def test_a_second_run_rebuilds_nothing_and_says_the_same(model: Path) -> None:
    runs: list[PowerDone] = []
    for _ in range(2):
        with open_profile(model, count=COUNT, repeats=2, seed=5) as context:
            runs.append(run_power(context))
    first, second = runs
    assert second.profile.firmware.reused
    assert second.power.firmware.reused
    assert second.power.firmware.sha256 == first.power.firmware.sha256
    for one, other in zip(first.power.captures, second.power.captures, strict=True):
        assert one.observation.result is not None
        assert other.observation.result is not None
        assert one.observation.result.energy_j == other.observation.result.energy_j


def test_another_seed_draws_another_input_and_other_errors(model: Path) -> None:
    energies = []
    for seed in (1, 2):
        with open_profile(model, count=COUNT, repeats=1, seed=seed) as context:
            result = run_power(context).power.captures[0].observation.result
        assert result is not None
        energies.append(result.energy_j)
    assert energies[0] != energies[1]


def test_contrast_changes_the_truth_and_not_the_times(model: Path) -> None:
    runs = {}
    for contrast in (False, True):
        with open_profile(model, count=COUNT, repeats=1, contrast=contrast) as context:
            done = run_power(context)
        assert done.truth is not None
        runs[contrast] = done.truth.captures[0].truth
    assert runs[True].gate_cycles == runs[False].gate_cycles
    ratios = runs[True].layer_j / runs[False].layer_j
    assert ratios.max() / ratios.min() > 1.1


def test_a_window_is_turned_into_a_count(model: Path) -> None:
    with open_profile(model, repeats=1, window_s=0.05) as context:
        planned = power.plan_power_run(context)
    reference_s = context.profile.result.clean_latency_s
    assert planned.power_plan.requested_count == int(np.ceil(0.05 / reference_s))


@pytest.mark.parametrize("window_s", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_window_that_is_no_time_is_refused_at_once(model: Path, window_s: float) -> None:
    error = error_of(model, window_s=window_s)
    assert isinstance(error, UsageError)
    assert error.slug == "count-out-of-range"


@pytest.mark.parametrize("window_s", [1e9, 1e18, 1e308])
def test_a_window_of_more_inferences_than_can_be_counted_is_refused(model: Path, window_s: float) -> None:
    with open_profile(model, window_s=window_s) as context, pytest.raises(PowerError) as caught:
        power.plan_power_run(context)
    assert caught.value.slug == "count-out-of-range"


def test_an_instrument_without_a_name_is_not_the_default_one(model: Path) -> None:
    error = error_of(model, instrument="")
    assert isinstance(error, UsageError)
    assert error.slug == "instrument-unknown"


def test_the_truth_is_not_among_the_captures(model: Path) -> None:
    """No field of a capture, nor of anything that hangs on it, is a truth: an analysis cannot reach it."""
    with open_profile(model, count=COUNT, repeats=1) as context:
        done = run_power(context)
    assert "BoardTruth" not in repr(done.power)
    assert done.truth is not None


def test_a_monitor_on_the_board_is_refused_at_planning(model: Path) -> None:
    with open_profile(model, count=COUNT, instrument="ondevice") as context, pytest.raises(PowerError) as caught:
        power.plan_power_run(context)
    assert caught.value.slug == "ondevice-monitor-unsupported"


@pytest.mark.parametrize(("write", "region"), [(write_flash_hog, "flash"), (write_ram_hog, "ram")])
def test_a_model_that_does_not_fit_is_refused_before_the_build(tmp_path: Path, write: Any, region: str) -> None:
    error = error_of(write(tmp_path / "hog.tflite"))
    assert isinstance(error, CapacityError)
    assert error.exit_code == 6
    assert error.details["region"] == region


@pytest.mark.parametrize(
    ("request_", "slug"),
    [
        ({"target": "no-such-board"}, "unknown-target"),
        ({"engine": "steam"}, "unknown-engine"),
        ({"toolchain": "abacus"}, "unknown-toolchain"),
        ({"transport": "telepathy"}, "unknown-transport"),
        ({"instrument": "divining-rod"}, "instrument-unknown"),
        ({"repeats": 0}, "count-out-of-range"),
        ({"repeats": 1001}, "count-out-of-range"),
        ({"repeats": 10**18}, "count-out-of-range"),
        ({"count": 2**32}, "count-out-of-range"),
        ({"lockstep": False, "faults": fault_plan("no_ready")}, "flags-contradict"),
        ({"lockstep": False, "faults": fault_plan("no_go")}, "flags-contradict"),
    ],
)
def test_a_request_that_cannot_be_run_is_refused_before_anything_starts(
    model: Path, request_: dict[str, Any], slug: str
) -> None:
    error = error_of(model, **request_)
    assert isinstance(error, UsageError)
    assert (error.slug, error.exit_code) == (slug, 2)
    assert error.hint


class UnusableBoard:
    """A board that cannot run here."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def diagnose(self) -> list[tuple[str, str]]:
        return [("the board is not connected", "plug it in")]

    def open(self) -> BoardSession:
        raise SetupError("the board is not connected", hint="plug it in", slug="board-missing")


def test_a_board_that_is_not_usable_is_an_environment_error(model: Path) -> None:
    with setup_of(model) as context:
        target = context.target

    def find(_name: str) -> Board:
        return UnusableBoard(target)

    with (bench := Bench(board=find)).resources, pytest.raises(SetupError) as caught:
        run_stages(Requested(request=ProfileRequest(model=model), bench=bench), SETUP_STAGES)
    assert (caught.value.exit_code, caught.value.hint) == (3, "plug it in")


def test_an_input_file_is_used(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "input.npz"
    np.savez(path, picture=np.full((1, 8, 8, 1), 7, np.int8))
    with setup_of(model, input=path) as context:
        assert int(np.unique(context.prepared.inputs["picture"])[0]) == 7


@pytest.mark.parametrize("kind", ["missing", "text", "array", "cut", "words", "empty"])
def test_a_bad_input_file_is_refused(model: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "input.npz"
    if kind == "text":
        path.write_text("hello")
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind == "words":
        np.savez(path, picture=np.array(["a"]))
    elif kind == "empty":
        np.savez(path)
    elif kind == "cut":
        np.savez(path, picture=np.zeros(1000))
        path.write_bytes(path.read_bytes()[:400])
    error = error_of(model, input=path)
    assert isinstance(error, InputError)
    assert (error.slug, error.exit_code) == ("input-unreadable", 6)


def test_a_missing_model_is_an_input_error(tmp_path: Path) -> None:
    error = error_of(tmp_path / "none.tflite")
    assert isinstance(error, InputError)
    assert error.exit_code == 6


@pytest.mark.parametrize("asked", [{"window_s": 600.0}, {"count": 2**32 - 1}])
def test_a_run_longer_than_the_rail_can_keep_is_refused_at_planning(model: Path, asked: dict[str, Any]) -> None:
    with open_profile(model, repeats=5, **asked) as context, pytest.raises(PowerError) as caught:
        power.plan_power_run(context)
    assert caught.value.slug == "window-too-long"
    assert "1000 s" in caught.value.message


def test_the_board_is_closed_whatever_happens(model: Path) -> None:
    with open_profile(model, power=False) as context:
        session = context.session
    with pytest.raises(PowerError) as caught:
        session.read_memory(0, 4)
    assert caught.value.slug == "board-lost"


def test_a_slow_instrument_still_gives_a_gate(model: Path) -> None:
    with open_profile(model, count=400, repeats=1, instrument="virtual-10k") as context:
        done = run_power(context)
    assert done.power_validity is Validity.VALID
    assert isinstance(done, ProfileDone)
