"""Parses the terminal record of ``hpx_profiler_power``, whichever link it came over."""

from __future__ import annotations

from joulemap.errors import PowerError
from joulemap.firmware.wire import vocabulary
from joulemap.firmware.wire.lines import BlockGrammar, Defect, WireBlock, WireDefectError, find_blocks, parse_block
from joulemap.records.firmware import ArtifactRole
from joulemap.records.power import (
    OnDevicePowerSummary,
    PowerTerminalEnvelope,
    PowerTerminalRecord,
    TerminalStatus,
)

__all__ = ["TERMINAL_GRAMMAR", "PowerTerminalParser"]

TERMINAL_GRAMMAR = BlockGrammar(
    start=vocabulary.POWER_BEGIN,
    end=vocabulary.POWER_END,
    keys=(*vocabulary.POWER_KEYS, *vocabulary.MONITOR_KEYS),
    checksum="RECORD_CRC32",
)
_LINK_HINT = "check the link; a record with a fault is never used in part"
_REASONS = {
    Defect.MISSING: ("terminal-missing", "check that the transport is powered after GATE and that the probe reads it"),
    Defect.TRUNCATED: ("terminal-truncated", "raise the size of the transport's buffer or read it for longer"),
    Defect.VERSION: ("terminal-version", "build the firmware and joulemap from one version"),
    Defect.CORRUPT: ("terminal-corrupt", _LINK_HINT),
    Defect.INCOMPLETE: ("terminal-incomplete", _LINK_HINT),
    Defect.DUPLICATE_KEY: ("terminal-duplicate-key", _LINK_HINT),
    Defect.UNKNOWN_KEY: ("terminal-unknown-key", _LINK_HINT),
}
_DURATION_SLACK_US = 2
_DURATION_SLACK = 1e-3


class PowerTerminalParser:
    """Turns received bytes into one envelope; links that repeat the record are read up to the first intact copy."""

    def is_complete(self, stream: bytes) -> bool:
        """True when the end marker has arrived."""
        return b"\n" + vocabulary.POWER_END.encode() + b"\n" in stream

    def parse(self, stream: bytes) -> PowerTerminalEnvelope:
        """Returns the record with its checksum and, where a monitor sent one, the on-device summary.

        Raises:
            PowerError: nothing was received (``terminal-missing``), or the record is rejected: ``terminal-truncated``,
                ``terminal-version``, ``terminal-corrupt``, ``terminal-incomplete``, ``terminal-duplicate-key``,
                ``terminal-unknown-key``.
        """
        try:
            return self._first_intact(find_blocks(stream, TERMINAL_GRAMMAR))
        except WireDefectError as error:
            slug, hint = _REASONS[error.defect]
            raise PowerError(
                f"no terminal record: {error}",
                hint=hint,
                slug=slug,
                phase="power",
                artifact_role=ArtifactRole.POWER,
            ) from error

    def _first_intact(self, blocks: list[bytes]) -> PowerTerminalEnvelope:
        envelopes: list[PowerTerminalEnvelope] = []
        defects: list[WireDefectError] = []
        for block in blocks:
            try:
                envelopes.append(_build_envelope(parse_block(block, TERMINAL_GRAMMAR)))
            except WireDefectError as error:
                defects.append(error)
        if not envelopes:
            raise defects[0]
        if any(envelope != envelopes[0] for envelope in envelopes):
            raise WireDefectError(Defect.CORRUPT, f"{len(envelopes)} records were received and they differ")
        return envelopes[0]


def _build_envelope(block: WireBlock) -> PowerTerminalEnvelope:
    record = _build_record(block)
    return PowerTerminalEnvelope(
        record=record,
        output_crc32=block.optional_number("OUTPUT_CRC32"),
        on_device_summary=_build_summary(block, record),
    )


def _build_record(block: WireBlock) -> PowerTerminalRecord:
    status = block.word("STATUS")
    phase = vocabulary.phase_of(block.number("FINAL_PHASE"))
    code = block.number("ERROR_CODE")
    if status not in tuple(TerminalStatus) or phase is None:
        raise WireDefectError(
            Defect.CORRUPT, f"STATUS={status}, FINAL_PHASE={block.number('FINAL_PHASE')}: no such status or phase"
        )
    if (status == TerminalStatus.OK) != (code == 0):
        raise WireDefectError(Defect.CORRUPT, f"STATUS={status} contradicts ERROR_CODE={code}")
    asserted, lowered = bool(block.number("GATE_ASSERTED")), bool(block.number("GATE_LOWERED"))
    if lowered and not asserted:
        raise WireDefectError(Defect.CORRUPT, "GATE_LOWERED=1 contradicts GATE_ASSERTED=0")
    return PowerTerminalRecord(
        version=vocabulary.PROTOCOL_VERSION,
        status=TerminalStatus(status),
        requested_count=block.number("REQUESTED_COUNT"),
        completed_count=block.number("COMPLETED_COUNT"),
        elapsed_us=block.optional_number("ELAPSED_US"),
        final_phase=phase,
        error_code=code,
        gate_asserted=asserted,
        gate_lowered=lowered,
    )


def _build_summary(block: WireBlock, record: PowerTerminalRecord) -> OnDevicePowerSummary | None:
    if "MONITOR_SOURCE" not in block.plain:
        return None
    summary = OnDevicePowerSummary(
        source=block.word("MONITOR_SOURCE"),
        energy_nj=block.number("MONITOR_ENERGY_NJ"),
        charge_nc=block.number("MONITOR_CHARGE_NC"),
        mean_voltage_uv=block.number("MONITOR_MEAN_VOLTAGE_UV"),
        duration_us=block.number("MONITOR_DURATION_US"),
        count=block.number("MONITOR_COUNT"),
        overflow=bool(block.number("MONITOR_OVERFLOW")),
        calibration_id=block.word("MONITOR_CALIBRATION_ID"),
        configuration_id=block.word("MONITOR_CONFIGURATION_ID"),
    )
    if summary.count != record.completed_count:
        raise WireDefectError(
            Defect.CORRUPT, f"the monitor covers {summary.count} inferences, the record {record.completed_count}"
        )
    if record.elapsed_us is not None:
        slack_us = max(_DURATION_SLACK_US, _DURATION_SLACK * record.elapsed_us)
        if abs(summary.duration_us - record.elapsed_us) > slack_us:
            raise WireDefectError(
                Defect.CORRUPT, f"the monitor covers {summary.duration_us} µs, the record {record.elapsed_us} µs"
            )
    return summary
