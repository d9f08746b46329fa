"""The outcome table, a test per row, and the order in which its rows win. Data in, verdict out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from joulemap.firmware.stages.capture_facts import BoardEnd, CaptureFacts, CaptureVerdict, Cause, Outcome
from joulemap.firmware.stages.outcomes import judge_capture, judge_run
from joulemap.records.finding import Severity, Validity
from joulemap.records.power import FirmwarePhase, ObservationMode, PowerTerminalRecord, TerminalStatus

N, PLANNED_S = 10, 1.0
RECORD = PowerTerminalRecord(
    version=1,
    status=TerminalStatus.OK,
    requested_count=N,
    completed_count=N,
    elapsed_us=1_000_000,
    final_phase=FirmwarePhase.GATE_LOW,
    error_code=0,
    gate_asserted=True,
    gate_lowered=True,
)
GOOD = CaptureFacts(
    requested_count=N,
    planned_s=PLANNED_S,
    tolerance_s=1e-3,
    deadline_s=9.0,
    gate_s=1.0,
    terminal=RECORD,
    output_crc32=0xCAFE,
    expected_crc32=0xCAFE,
)
MISSING = Cause(slug="terminal-missing", message="no terminal record: nothing", hint="check the probe")
SILENT = replace(GOOD, terminal=None, terminal_fault=MISSING, output_crc32=None)
NO_EDGES: dict[str, Any] = {"rise_seen": False, "fall_seen": False, "gate_s": None}
NO_FALL: dict[str, Any] = {"fall_seen": False, "gate_s": None}


def slugs(verdict: CaptureVerdict) -> list[str]:
    return [finding.slug for finding in verdict.findings]


def refused(facts: CaptureFacts, slug: str, integrity: Validity, *, hard: bool) -> CaptureVerdict:
    verdict = judge_capture(facts)
    assert verdict.failure is not None
    assert (verdict.failure.slug, verdict.integrity, verdict.hard) == (slug, integrity, hard)
    assert slugs(verdict)[0] == slug.replace("-", "_")
    assert verdict.failure.hint
    assert verdict.findings[0].severity is (Severity.ERROR if integrity is Validity.INVALID else Severity.WARNING)
    return verdict


def test_everything_agrees() -> None:
    verdict = judge_capture(GOOD)
    assert (verdict.mode, verdict.integrity) == (ObservationMode.GPIO_GATED, Validity.VALID)
    assert verdict.findings == ()
    assert verdict.failure is None


@pytest.mark.parametrize(("edges", "slug"), [(NO_EDGES, "no-gate-rise"), (NO_FALL, "no-gate-fall")])
def test_a_missing_edge_with_a_good_terminal_is_free_form_and_degraded(edges: dict[str, Any], slug: str) -> None:
    verdict = refused(replace(GOOD, **edges), slug, Validity.DEGRADED, hard=False)
    assert verdict.mode is ObservationMode.FREE_FORM


@pytest.mark.parametrize("off_s", [0.0, 9e-4, -9e-4])
def test_no_terminal_is_valid_when_the_duration_proves_the_count(off_s: float) -> None:
    verdict = judge_capture(replace(SILENT, gate_s=PLANNED_S + off_s))
    assert (verdict.mode, verdict.integrity) == (ObservationMode.GPIO_GATED, Validity.VALID)
    assert slugs(verdict) == ["count_inferred", "terminal_missing", "output_unchecked"]


@pytest.mark.parametrize(("off_s", "tolerance_s"), [(1.1e-3, 1e-3), (-0.1, 1e-3), (0.06, 0.2), (-0.051, 0.2)])
def test_no_terminal_is_degraded_when_it_does_not(off_s: float, tolerance_s: float) -> None:
    facts = replace(SILENT, gate_s=PLANNED_S + off_s, tolerance_s=tolerance_s)
    verdict = refused(facts, "count-unknown", Validity.DEGRADED, hard=False)
    assert verdict.mode is ObservationMode.GPIO_GATED


def test_a_tolerance_wider_than_half_an_inference_proves_nothing() -> None:
    lost_one = replace(SILENT, gate_s=0.9, tolerance_s=0.2)
    assert judge_capture(lost_one).integrity is Validity.DEGRADED
    assert judge_capture(replace(lost_one, gate_s=0.96)).integrity is Validity.VALID


@pytest.mark.parametrize("slug", ["terminal-truncated", "terminal-corrupt", "terminal-version", "terminal-late"])
def test_a_rejected_terminal_counts_as_none_with_its_own_finding(slug: str) -> None:
    verdict = judge_capture(replace(SILENT, terminal_fault=Cause(slug=slug, message="why")))
    assert verdict.integrity is Validity.VALID
    assert slugs(verdict)[:2] == ["count_inferred", slug.replace("-", "_")]


def test_a_wrong_output_is_invalid() -> None:
    verdict = refused(replace(GOOD, output_crc32=0xBEEF), "output-differs", Validity.INVALID, hard=False)
    assert "0000beef" in verdict.findings[0].message


@pytest.mark.parametrize("lack", [{"expected_crc32": None}, {"output_crc32": None}])
def test_an_output_that_was_not_compared_is_a_finding(lack: dict[str, Any]) -> None:
    verdict = judge_capture(replace(GOOD, **lack))
    assert verdict.integrity is Validity.VALID
    assert slugs(verdict) == ["output_unchecked"]


@pytest.mark.parametrize(
    ("gate_s", "elapsed_us", "said"),
    [
        (1.002, 1_002_000, ["+2000.0 µs off N times"]),
        (1.0, 1_002_000, ["-2000.0 µs off what the firmware counted"]),
        (0.5, 1_000_000, ["-500000.0 µs off what the firmware counted", "-500000.0 µs off N times"]),
        (2.0, 1_500_000, ["+500000.0 µs off what the firmware counted", "+1000000.0 µs off N times"]),
    ],
)
def test_durations_that_disagree_are_invalid_and_say_by_how_much(
    gate_s: float, elapsed_us: int, said: list[str]
) -> None:
    facts = replace(GOOD, gate_s=gate_s, terminal=replace(RECORD, elapsed_us=elapsed_us))
    verdict = refused(facts, "gate-disagrees", Validity.INVALID, hard=True)
    for words in said:
        assert words in verdict.findings[0].message
    assert ("counted" in verdict.findings[0].message) == any("counted" in words for words in said)


def test_without_an_elapsed_time_the_reference_alone_decides() -> None:
    unknown = replace(GOOD, terminal=replace(RECORD, elapsed_us=None))
    assert judge_capture(unknown).integrity is Validity.VALID
    assert slugs(judge_capture(unknown)) == ["elapsed_unavailable"]
    refused(replace(unknown, gate_s=1.01), "gate-disagrees", Validity.INVALID, hard=True)


@pytest.mark.parametrize(("requested", "completed"), [(N, N - 1), (N - 1, N - 1), (N + 1, N)])
def test_counts_that_differ_from_the_plan_are_invalid(requested: int, completed: int) -> None:
    record = replace(RECORD, requested_count=requested, completed_count=completed)
    refused(replace(GOOD, terminal=record), "count-mismatch", Validity.INVALID, hard=False)


@pytest.mark.parametrize(
    ("phase", "code", "words"),
    [
        (FirmwarePhase.MODEL_INIT, 17, "the model's own code"),
        (FirmwarePhase.RUN_FIXED_N, 257, "an inference failed"),
        (FirmwarePhase.WAIT_GO, 256, "no GO before"),
    ],
)
def test_a_terminal_error_is_invalid_and_keeps_phase_and_code(phase: FirmwarePhase, code: int, words: str) -> None:
    record = replace(RECORD, status=TerminalStatus.ERROR, final_phase=phase, error_code=code, completed_count=3)
    verdict = refused(replace(GOOD, terminal=record), "terminal-error", Validity.INVALID, hard=False)
    assert verdict.details["firmware_phase"] == str(phase)
    assert verdict.details["error_code"] == code
    assert verdict.details["completed_count"] == 3
    assert words in verdict.findings[0].message


def test_no_ready_is_hard_and_tells_the_phase() -> None:
    facts = replace(SILENT, **NO_EDGES, ready_seen=False, firmware_phase=FirmwarePhase.WAIT_GO)
    verdict = refused(facts, "no-ready", Validity.INVALID, hard=True)
    assert verdict.details["firmware_phase"] == "WAIT_GO"
    assert verdict.mode is ObservationMode.FREE_FORM


def test_without_lock_step_ready_is_not_asked_for() -> None:
    assert judge_capture(replace(GOOD, ready_seen=False, lockstep=False)).integrity is Validity.VALID


@pytest.mark.parametrize("slug", ["capture-empty", "instrument-lost"])
def test_nothing_from_the_instrument_is_hard(slug: str) -> None:
    refused(replace(GOOD, meter=Cause(slug=slug, message="m", hint="h")), slug, Validity.INVALID, hard=True)


def test_a_small_loss_is_a_finding_and_a_large_one_degrades() -> None:
    small = judge_capture(replace(GOOD, lost_share=0.01))
    assert small.integrity is Validity.VALID
    assert slugs(small) == ["samples_lost"]
    refused(replace(GOOD, lost_share=0.0101), "samples-lost", Validity.DEGRADED, hard=False)


def test_a_hard_fault_keeps_the_registers() -> None:
    facts = replace(
        SILENT,
        **NO_FALL,
        board=BoardEnd.HARD_FAULT,
        registers={"pc": 0x1234},
        firmware_phase=FirmwarePhase.RUN_FIXED_N,
    )
    verdict = refused(facts, "hard-fault", Validity.INVALID, hard=True)
    assert verdict.details["registers"] == {"pc": 0x1234}
    assert "RUN_FIXED_N" in verdict.findings[0].message


def test_a_brown_out_is_hard() -> None:
    refused(replace(SILENT, **NO_FALL, board=BoardEnd.BROWN_OUT), "brown-out", Validity.INVALID, hard=True)


def test_a_lost_board_is_hard() -> None:
    facts = replace(SILENT, **NO_EDGES, board=BoardEnd.LOST, board_message="gone")
    refused(facts, "board-lost", Validity.INVALID, hard=True)


@pytest.mark.parametrize("edges", [NO_EDGES, NO_FALL])
def test_a_stuck_firmware_is_hard_and_tells_deadline_and_phase(edges: dict[str, Any]) -> None:
    facts = replace(SILENT, **edges, board=BoardEnd.RUNNING, firmware_phase=FirmwarePhase.RUN_FIXED_N)
    verdict = refused(facts, "firmware-stuck", Validity.INVALID, hard=True)
    assert "9.00 s" in verdict.findings[0].message
    assert verdict.details["firmware_phase"] == "RUN_FIXED_N"


def test_neither_gate_nor_terminal_is_hard() -> None:
    refused(replace(SILENT, **NO_EDGES), "nothing-observed", Validity.INVALID, hard=True)


def test_throttling_degrades_and_explains_a_gate_that_is_too_long() -> None:
    facts = replace(GOOD, throttled_share=0.25, gate_s=1.5)
    verdict = refused(facts, "throttled", Validity.DEGRADED, hard=False)
    assert verdict.details["throttled_share"] == 0.25


ERROR: dict[str, Any] = {"terminal": replace(RECORD, status=TerminalStatus.ERROR, error_code=257, completed_count=3)}
COUNTS: dict[str, Any] = {"terminal": replace(RECORD, completed_count=9)}
OUTPUT: dict[str, Any] = {"output_crc32": 1}
GATE: dict[str, Any] = {"gate_s": 0.5}


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ((GATE, NO_EDGES, OUTPUT, COUNTS, ERROR), "terminal-error"),
        ((GATE, NO_EDGES, OUTPUT, COUNTS), "count-mismatch"),
        ((GATE, NO_EDGES, OUTPUT), "output-differs"),
        ((GATE, NO_EDGES), "no-gate-rise"),
        ((GATE,), "gate-disagrees"),
        ((), None),
    ],
)
def test_the_precedence(changes: tuple[dict[str, Any], ...], slug: str | None) -> None:
    facts = GOOD
    for change in changes:
        facts = replace(facts, **change)
    failure = judge_capture(facts).failure
    assert (failure and failure.slug) == slug


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((OUTPUT, {"throttled_share": 0.2}), ["output_differs", "throttled"]),
        ((OUTPUT, {"lost_share": 0.2}), ["output_differs", "samples_lost"]),
        ((NO_EDGES, {"throttled_share": 0.2, "lost_share": 0.2}), ["no_gate_rise", "throttled", "samples_lost"]),
        (({"throttled_share": 0.2, "lost_share": 0.2},), ["throttled", "samples_lost"]),
        ((COUNTS, OUTPUT), ["count_mismatch", "output_differs"]),
        ((ERROR, OUTPUT, {"lost_share": 0.2}), ["terminal_error", "samples_lost"]),
        (({"board": BoardEnd.BROWN_OUT, "throttled_share": 0.2},), ["brown_out", "throttled"]),
        ((GATE, {"lost_share": 0.2}), ["gate_disagrees", "samples_lost"]),
    ],
)
def test_a_fault_of_its_own_is_told_beside_the_one_that_decides(
    changes: tuple[dict[str, Any], ...], expected: list[str]
) -> None:
    facts = GOOD
    for change in changes:
        facts = replace(facts, **change)
    verdict = judge_capture(facts)
    assert slugs(verdict) == expected
    assert verdict.failure is not None
    assert verdict.failure.slug == expected[0].replace("_", "-")


def test_a_known_count_does_not_excuse_a_large_loss() -> None:
    verdict = judge_capture(replace(SILENT, lost_share=0.2))
    assert verdict.integrity is Validity.DEGRADED
    assert slugs(verdict) == ["samples_lost", "count_inferred", "terminal_missing"]


@pytest.mark.parametrize(
    ("integrities", "requested", "expected", "finding"),
    [
        ("vvvvv", 5, Validity.VALID, None),
        ("vvvvi", 5, Validity.VALID, "captures_dropped"),
        ("vvvid", 5, Validity.VALID, "captures_dropped"),
        ("vvddd", 5, Validity.INVALID, "captures_dropped"),
        ("vvv", 5, Validity.VALID, "captures_dropped"),
        ("vv", 5, Validity.INVALID, "captures_dropped"),
        ("vi", 2, Validity.VALID, "captures_dropped"),
        ("ddddd", 5, Validity.DEGRADED, "captures_dropped"),
        ("ddddi", 5, Validity.INVALID, "captures_dropped"),
        ("i", 1, Validity.INVALID, "captures_dropped"),
        ("", 5, Validity.INVALID, "captures_dropped"),
    ],
)
def test_what_captures_claim_together(
    integrities: str, requested: int, expected: Validity, finding: str | None
) -> None:
    names = {"v": Validity.VALID, "d": Validity.DEGRADED, "i": Validity.INVALID}
    validity, findings = judge_run([names[letter] for letter in integrities], requested)
    assert validity is expected
    assert [f.slug for f in findings] == ([finding] if finding else [])


def test_each_outcome_has_an_error_of_the_same_words() -> None:
    rows = {
        Outcome.BOARD_LOST: replace(SILENT, **NO_EDGES, board=BoardEnd.LOST),
        Outcome.CAPTURE_EMPTY: replace(GOOD, meter=Cause(slug="capture-empty", message="m")),
        Outcome.INSTRUMENT_LOST: replace(GOOD, meter=Cause(slug="instrument-lost", message="m")),
        Outcome.HARD_FAULT: replace(SILENT, **NO_FALL, board=BoardEnd.HARD_FAULT),
        Outcome.BROWN_OUT: replace(SILENT, **NO_FALL, board=BoardEnd.BROWN_OUT),
        Outcome.TERMINAL_ERROR: replace(GOOD, **ERROR),
        Outcome.COUNT_MISMATCH: replace(GOOD, **COUNTS),
        Outcome.OUTPUT_DIFFERS: replace(GOOD, **OUTPUT),
        Outcome.NO_READY: replace(SILENT, **NO_EDGES, ready_seen=False),
        Outcome.FIRMWARE_STUCK: replace(SILENT, **NO_FALL, board=BoardEnd.RUNNING),
        Outcome.NOTHING_OBSERVED: replace(SILENT, **NO_EDGES),
        Outcome.NO_GATE_RISE: replace(GOOD, **NO_EDGES),
        Outcome.NO_GATE_FALL: replace(GOOD, **NO_FALL),
        Outcome.THROTTLED: replace(GOOD, throttled_share=0.1),
        Outcome.COUNT_UNKNOWN: replace(SILENT, gate_s=2.0),
        Outcome.GATE_DISAGREES: replace(GOOD, **GATE),
        Outcome.SAMPLES_LOST: replace(GOOD, lost_share=0.5),
    }
    assert set(rows) == set(Outcome)
    for outcome, facts in rows.items():
        verdict = judge_capture(facts)
        assert verdict.failure is not None
        assert verdict.findings[0].slug == outcome
        assert verdict.failure.slug == outcome.replace("_", "-")
