"""The terminal record: complete or rejected, each rejection with a reason of its own."""

from __future__ import annotations

import pytest

from joulemap.errors import PowerError
from joulemap.firmware.wire.terminal import PowerTerminalParser
from joulemap.firmware.wire.vocabulary import MONITOR_KEYS, POWER_KEYS, KeyGroup
from joulemap.records.power import FirmwarePhase, TerminalStatus
from wire_text import terminal_record

MONITOR = {
    "MONITOR_SOURCE": "ina228",
    "MONITOR_ENERGY_NJ": 123456,
    "MONITOR_CHARGE_NC": 41152,
    "MONITOR_MEAN_VOLTAGE_UV": 3_000_000,
    "MONITOR_DURATION_US": 1949,
    "MONITOR_COUNT": 10,
    "MONITOR_OVERFLOW": 0,
}
parser = PowerTerminalParser()


def refusal(stream: bytes) -> PowerError:
    with pytest.raises(PowerError) as caught:
        parser.parse(stream)
    assert caught.value.phase == "power"
    assert caught.value.hint
    return caught.value


def test_a_whole_record_is_read() -> None:
    envelope = parser.parse(terminal_record())
    record = envelope.record
    assert (record.status, record.requested_count, record.completed_count) == (TerminalStatus.OK, 10, 10)
    assert (record.elapsed_us, record.final_phase, record.error_code) == (1948, FirmwarePhase.GATE_LOW, 0)
    assert record.gate_asserted
    assert record.gate_lowered
    assert envelope.output_crc32 == 3135200373
    assert envelope.on_device_summary is None


def test_an_error_record_keeps_phase_and_code() -> None:
    record = parser.parse(
        terminal_record(STATUS="error", ERROR_CODE=257, FINAL_PHASE=6, COMPLETED_COUNT=3, without=["OUTPUT_CRC32"])
    ).record
    assert (record.status, record.error_code, record.final_phase) == (
        TerminalStatus.ERROR,
        257,
        FirmwarePhase.RUN_FIXED_N,
    )


def test_a_missing_elapsed_time_is_none_and_not_zero() -> None:
    assert parser.parse(terminal_record(without=["ELAPSED_US"])).record.elapsed_us is None


@pytest.mark.parametrize("key", [key.name for key in POWER_KEYS if key.required and key.name != "RECORD_CRC32"])
def test_every_required_key_is_required(key: str) -> None:
    error = refusal(terminal_record(without=[key]))
    assert error.slug == "terminal-incomplete"
    assert key in str(error)


@pytest.mark.parametrize(
    ("stream", "slug"),
    [
        (b"", "terminal-missing"),
        (b"\x00" * 64, "terminal-missing"),
        (terminal_record()[:100], "terminal-truncated"),
        (terminal_record()[:-1], "terminal-truncated"),
        (terminal_record()[:20], "terminal-truncated"),
        (terminal_record(version=2), "terminal-version"),
        (terminal_record().replace(b"=1948", b"=1949"), "terminal-corrupt"),
        (terminal_record(STATUS="fine"), "terminal-corrupt"),
        (terminal_record(STATUS=""), "terminal-corrupt"),
        (terminal_record(FINAL_PHASE=11), "terminal-corrupt"),
        (terminal_record(ERROR_CODE=5), "terminal-corrupt"),
        (terminal_record(GATE_ASSERTED=0), "terminal-corrupt"),
        (terminal_record(GATE_LOWERED=2), "terminal-corrupt"),
        (terminal_record(REQUESTED_COUNT="-1"), "terminal-corrupt"),
        (terminal_record(REQUESTED_COUNT="9" * 20), "terminal-corrupt"),
        (terminal_record(MOOD=1), "terminal-unknown-key"),
        (terminal_record() + terminal_record(ELAPSED_US=1950), "terminal-corrupt"),
    ],
)
def test_each_defect_has_its_own_slug(stream: bytes, slug: str) -> None:
    assert refusal(stream).slug == slug


def test_a_key_that_appears_twice_is_refused() -> None:
    assert refusal(terminal_record(X_A="1\nSTATUS=ok")).slug == "terminal-duplicate-key"


def test_a_repeated_record_is_read_once_it_is_whole() -> None:
    record = terminal_record()
    assert parser.parse(record[60:] + record + record[:80]) == parser.parse(record)
    assert parser.is_complete(record)
    assert not parser.is_complete(record[:-3])


def test_an_extension_key_is_passed_over() -> None:
    assert parser.parse(terminal_record(X_TEMPERATURE_MC=25000)) == parser.parse(terminal_record())


def test_a_monitor_on_the_board_is_read() -> None:
    summary = parser.parse(terminal_record(MONITOR, MONITOR_CALIBRATION_ID="cal-7")).on_device_summary
    assert summary is not None
    assert (summary.source, summary.energy_nj, summary.charge_nc) == ("ina228", 123456, 41152)
    assert (summary.calibration_id, summary.configuration_id, summary.overflow) == ("cal-7", "", False)


@pytest.mark.parametrize("key", [key.name for key in MONITOR_KEYS if key.group is KeyGroup.MEASUREMENT])
def test_the_measurement_group_is_all_or_none(key: str) -> None:
    error = refusal(terminal_record({k: v for k, v in MONITOR.items() if k != key}))
    assert error.slug == "terminal-incomplete"
    assert key in str(error)


@pytest.mark.parametrize("change", [{"MONITOR_COUNT": 9}, {"MONITOR_DURATION_US": 2500}])
def test_a_monitor_must_agree_with_the_record(change: dict[str, int]) -> None:
    assert refusal(terminal_record({**MONITOR, **change})).slug == "terminal-corrupt"
