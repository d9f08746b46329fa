"""PIPELINE's outcome table on the virtual board, row by row: each fault travels the path that a real one would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from joulemap.errors import CaptureError, PowerError
from joulemap.firmware.stages.context import BoardPowered, PowerDone, ProfileDone
from joulemap.records.finding import Validity
from joulemap.records.power import FirmwarePhase, ObservationMode, PowerCapture, TerminalStatus
from pipeline_bench import PROFILE_STAGES, SETUP_STAGES, fault_plan, open_profile, run_power, run_stages
from small_models import write_small_model

COUNT = 20
GATED, FREE = ObservationMode.GPIO_GATED, ObservationMode.FREE_FORM


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model") / "small.tflite")


@pytest.fixture(scope="module")
def profiled(model: Path) -> Iterator[ProfileDone]:
    with open_profile(model, count=COUNT, repeats=1) as context:
        yield context


@pytest.fixture(scope="module")
def valid(profiled: ProfileDone) -> PowerDone:
    return run_power(profiled, repeats=3)


def only(done: PowerDone) -> PowerCapture:
    assert len(done.power.captures) == 1
    return done.power.captures[0]


def slugs(capture: PowerCapture) -> list[str]:
    return [finding.slug for finding in capture.observation.findings]


def refused(done: PowerDone, slug: str, validity: Validity, mode: ObservationMode) -> PowerCapture:
    """Returns the one capture of a run without headline, whose error and finding have the slug."""
    capture = only(done)
    assert done.power_validity is capture.observation.integrity is validity
    assert done.power_failure is not None
    assert (done.power_failure.slug, done.power_failure.exit_code) == (slug, 4)
    assert done.power_failure.hint
    assert done.power_failure.artifact_role == "hpx_profiler_power"
    assert capture.observation.mode is mode
    assert slugs(capture)[0] == slug.replace("-", "_")
    return capture


def joules(done: PowerDone) -> float:
    result = only(done).observation.result
    assert result is not None
    return result.energy_j


def powered(profiled: ProfileDone, fault: str) -> BoardPowered:
    """Returns the context with the board on and this fault planted, nothing else done."""
    held = {field.name: getattr(profiled, field.name) for field in fields(BoardPowered)}
    return BoardPowered(**{**held, "request": replace(profiled.request, faults=fault_plan(fault))})


def test_a_clean_run_is_valid(valid: PowerDone) -> None:
    assert valid.power_validity is Validity.VALID
    assert valid.power_failure is None
    assert valid.power.findings == ()
    for capture in valid.power.captures:
        assert (capture.observation.mode, slugs(capture)) == (GATED, [])
        assert capture.terminal is not None
        record = capture.terminal.record
        assert (record.status, record.completed_count) == (TerminalStatus.OK, COUNT)
        assert capture.terminal.output_crc32 == valid.prepared.reference_crc32
        result = capture.observation.result
        assert result is not None
        assert result.idle_power_w is not None
        assert 0 < result.idle_power_w < result.energy_j / result.duration_s <= result.peak_power_w


def test_repeats_differ_by_the_boards_variation_and_the_truth_does_not(valid: PowerDone) -> None:
    assert valid.truth is not None
    truths = [capture.truth for capture in valid.truth.captures]
    assert len({truth.gate_j for truth in truths}) == 1
    assert len({truth.run_factor for truth in truths}) == 3
    for capture, truth in zip(valid.power.captures, truths, strict=True):
        result = capture.observation.result
        assert result is not None
        assert result.energy_j == pytest.approx(truth.gate_j * truth.run_factor, rel=3e-3)


@pytest.mark.parametrize("fault", ["no_gate_rise", "gate_disconnected"])
def test_no_rise_is_free_form(profiled: ProfileDone, fault: str) -> None:
    capture = refused(run_power(profiled, fault), "no-gate-rise", Validity.DEGRADED, FREE)
    observation = capture.observation
    assert (observation.gate_rise_observed, observation.gate_fall_observed) == (False, False)
    assert capture.terminal is not None
    assert observation.result is not None
    assert observation.result.gate is None
    assert observation.result.duration_s == pytest.approx(observation.deadline_s, abs=0.02)


def test_no_fall_is_free_form(profiled: ProfileDone) -> None:
    observation = refused(run_power(profiled, "no_gate_fall"), "no-gate-fall", Validity.DEGRADED, FREE).observation
    assert (observation.gate_rise_observed, observation.gate_fall_observed) == (True, False)
    assert observation.result is not None
    assert observation.result.duration_s == pytest.approx(observation.deadline_s, abs=0.02)


@pytest.mark.parametrize("fault", ["terminal_missing", "terminal_truncated", "terminal_version", "terminal_late"])
def test_a_terminal_that_cannot_be_used_leaves_the_count_to_the_gate(profiled: ProfileDone, fault: str) -> None:
    done = run_power(profiled, fault)
    assert done.power_validity is Validity.VALID
    assert only(done).terminal is None
    assert slugs(only(done)) == ["count_inferred", fault, "output_unchecked"]


def test_an_image_without_diagnostics_measures_the_same(profiled: ProfileDone, valid: PowerDone) -> None:
    done = run_power(profiled, "no_diagnostics")
    assert done.power_validity is Validity.VALID
    assert slugs(only(done))[0] == "count_inferred"
    assert "hpx_rtt_block" not in done.power_firmware.symbols
    assert done.truth is not None
    assert valid.truth is not None
    assert done.truth.captures[0].truth.gate_j == pytest.approx(valid.truth.captures[0].truth.gate_j, rel=1e-3)


def test_a_transport_left_on_inside_gate_is_seen(profiled: ProfileDone) -> None:
    clean, loud = run_power(profiled), run_power(profiled, "transport_on")
    assert loud.power_validity is Validity.VALID
    assert joules(loud) > 1.2 * joules(clean)


def test_a_wrong_output_is_invalid(profiled: ProfileDone) -> None:
    capture = refused(run_power(profiled, "output_wrong"), "output-differs", Validity.INVALID, GATED)
    assert capture.terminal is not None
    assert capture.terminal.output_crc32 != profiled.prepared.reference_crc32


def test_a_short_pulse_is_invalid_and_says_by_how_much(profiled: ProfileDone) -> None:
    done = run_power(profiled, "short_pulse")
    refused(done, "gate-disagrees", Validity.INVALID, GATED)
    assert done.power_failure is not None
    half_s = done.power_plan.planned_runtime_s / 2
    assert done.power_failure.details["off_reference_s"] == pytest.approx(-half_s, rel=0.01)
    assert done.power_failure.details["off_elapsed_s"] == pytest.approx(-half_s, rel=0.01)


def test_a_lost_inference_is_a_count_mismatch(profiled: ProfileDone) -> None:
    capture = refused(run_power(profiled, "terminal_counts"), "count-mismatch", Validity.INVALID, GATED)
    assert capture.terminal is not None
    assert capture.terminal.record.completed_count == COUNT - 1


@pytest.mark.parametrize(
    ("fault", "phase", "code", "completed", "mode"),
    [
        ("init_error", FirmwarePhase.MODEL_INIT, 255, 0, FREE),
        ("no_go", FirmwarePhase.WAIT_GO, 256, 0, FREE),
        ("infer_error", FirmwarePhase.RUN_FIXED_N, 257, COUNT // 2, GATED),
    ],
)
def test_an_error_of_the_firmware_keeps_phase_and_code(
    profiled: ProfileDone, fault: str, phase: FirmwarePhase, code: int, completed: int, mode: ObservationMode
) -> None:
    done = run_power(profiled, fault)
    capture = refused(done, "terminal-error", Validity.INVALID, mode)
    assert capture.terminal is not None
    record = capture.terminal.record
    assert (record.final_phase, record.error_code, record.completed_count) == (phase, code, completed)
    assert record.gate_lowered == record.gate_asserted == (mode is GATED)
    assert done.power_failure is not None
    assert done.power_failure.details["firmware_phase"] == str(phase)


def test_no_ready_tells_where_the_firmware_waits(profiled: ProfileDone) -> None:
    done = run_power(profiled, "no_ready")
    refused(done, "no-ready", Validity.INVALID, FREE)
    assert done.power_failure is not None
    assert done.power_failure.details["firmware_phase"] == "WAIT_GO"


@pytest.mark.parametrize(
    ("fault", "slug"), [("capture_empty", "capture-empty"), ("instrument_lost", "instrument-lost")]
)
def test_an_instrument_that_delivers_nothing(profiled: ProfileDone, fault: str, slug: str) -> None:
    capture = refused(run_power(profiled, fault), slug, Validity.INVALID, FREE)
    assert capture.observation.result is None


def test_a_lossy_capture_is_valid_below_the_limit(profiled: ProfileDone) -> None:
    done = run_power(profiled, "capture_lossy")
    assert done.power_validity is Validity.VALID
    assert "samples_lost" in slugs(only(done))


def test_a_hard_fault_keeps_the_registers(profiled: ProfileDone) -> None:
    done = run_power(profiled, "hard_fault")
    refused(done, "hard-fault", Validity.INVALID, FREE)
    assert done.power_failure is not None
    registers = done.power_failure.details["registers"]
    assert isinstance(registers, dict)
    assert registers["fault_address"] == 0x100
    assert done.power_failure.details["firmware_phase"] == "RUN_FIXED_N"


def test_a_stuck_firmware_fails_at_the_deadline_and_the_board_is_reset(profiled: ProfileDone) -> None:
    done = run_power(profiled, "stuck_loop")
    refused(done, "firmware-stuck", Validity.INVALID, FREE)
    assert done.power_failure is not None
    assert done.power_failure.details["firmware_phase"] == "RUN_FIXED_N"
    assert done.power_failure.details["deadline_s"] == done.power_plan.execution_deadline_s
    address, _ = done.power_firmware.symbols["hpx_phase"]
    assert done.probe.read_memory(address, 4) == bytes(4)


def test_a_brown_out_is_hard(profiled: ProfileDone) -> None:
    refused(run_power(profiled, "brown_out"), "brown-out", Validity.INVALID, FREE)


def test_throttling_degrades_with_its_residency(profiled: ProfileDone) -> None:
    done = run_power(profiled, "throttle")
    refused(done, "throttled", Validity.DEGRADED, GATED)
    assert done.power_failure is not None
    share = done.power_failure.details["throttled_share"]
    assert isinstance(share, float)
    assert 0 < share < 1


@pytest.mark.parametrize(
    ("fault", "slug"),
    [("profile_truncated", "profile-truncated"), ("profile_corrupt", "profile-corrupt"), ("probe_lost", "probe-lost")],
)
def test_a_profile_that_cannot_be_read_ends_the_run(profiled: ProfileDone, fault: str, slug: str) -> None:
    stages = SETUP_STAGES[2:] + PROFILE_STAGES  # the board is on already
    with pytest.raises(CaptureError) as caught:
        run_stages(powered(profiled, fault), stages)
    assert (caught.value.slug, caught.value.exit_code) == (slug, 4)
    assert caught.value.hint


def test_a_counter_overflow_alone_is_a_finding(profiled: ProfileDone) -> None:
    done: ProfileDone = run_stages(powered(profiled, "counter_overflow"), SETUP_STAGES[2:] + PROFILE_STAGES)
    assert [finding.slug for finding in done.profile.result.findings] == ["counter_overflow"]
    # the fault hooks cost some cycles per inference, the overflow none
    assert done.profile.result.clean_latency_s == pytest.approx(profiled.profile.result.clean_latency_s, rel=1e-3)


def test_a_fault_hits_its_repeat_only(profiled: ProfileDone) -> None:
    done = run_power(profiled, "infer_error@2", "terminal_missing@3", repeats=3)
    assert [c.observation.integrity for c in done.power.captures] == [Validity.VALID, Validity.INVALID, Validity.VALID]
    assert slugs(done.power.captures[2])[0] == "count_inferred"
    assert done.power_validity is Validity.VALID
    assert done.power_failure is None
    assert [finding.slug for finding in done.power.findings] == ["captures_dropped"]


def test_fewer_than_half_make_the_run_invalid(profiled: ProfileDone) -> None:
    done = run_power(profiled, "infer_error@1", "infer_error@3", repeats=3)
    assert done.power_validity is Validity.INVALID
    assert done.power_failure is not None
    assert done.power_failure.details["valid_captures"] == 1
    assert "capture 1 of 3" in done.power_failure.message


@pytest.mark.parametrize(
    ("fault", "slug"), [("instrument_lost@2", "instrument-lost"), ("probe_lost@2", "captures-dropped")]
)
def test_what_was_lost_ends_the_phase_with_what_is_there(profiled: ProfileDone, fault: str, slug: str) -> None:
    done = run_power(profiled, fault, repeats=5)
    assert [capture.index for capture in done.power.captures] == [1, 2]
    assert done.power_validity is Validity.INVALID
    assert done.power_failure is not None
    assert done.power_failure.slug == slug
    assert done.power_failure.hint


def test_a_probe_lost_late_leaves_a_valid_run(profiled: ProfileDone) -> None:
    done = run_power(profiled, "probe_lost@4", repeats=5)
    assert done.power_validity is Validity.VALID
    assert slugs(done.power.captures[3]) == ["count_inferred", "probe_lost", "output_unchecked"]


def test_without_lock_step_the_firmware_makes_the_idle_window(profiled: ProfileDone) -> None:
    done = run_power(profiled, lockstep=False)
    assert done.power_validity is Validity.VALID
    result = only(done).observation.result
    assert result is not None
    assert result.idle is not None
    assert result.idle.duration_s == pytest.approx(0.05, abs=2e-3)


def test_a_board_that_is_lost_is_told(model: Path) -> None:
    with open_profile(model, count=COUNT, repeats=3) as context:
        context.session.close()
        with pytest.raises(PowerError) as caught:
            run_power(context)
        assert caught.value.slug == "board-lost"
