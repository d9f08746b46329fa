"""Reads the firmware's phase word by an attach without reset."""

from __future__ import annotations

from joulemap.errors import PipelineError
from joulemap.firmware.stages.sources import PHASE_SYMBOL
from joulemap.firmware.transports.base import TargetMemory
from joulemap.firmware.wire.vocabulary import phase_of
from joulemap.records.firmware import FirmwareArtifact
from joulemap.records.power import FirmwarePhase

__all__ = ["read_phase"]


def read_phase(memory: TargetMemory, artifact: FirmwareArtifact) -> FirmwarePhase | None:
    """Returns the phase of the running image; None before BOOT, for nonsense, or when memory cannot be reached."""
    entry = artifact.symbols.get(PHASE_SYMBOL)
    if entry is None:
        return None
    try:
        return phase_of(int.from_bytes(memory.read_memory(entry[0], 4), "little"))
    except PipelineError:
        return None  # the phase is a help for the reader of a failure; the failure itself is told elsewhere
