"""What the host does through the probe while an image runs: read the phase word, and pull the link off on demand."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from joulemap.errors import PipelineError
from joulemap.firmware.probes.base import Probe
from joulemap.firmware.stages.sources import PHASE_SYMBOL
from joulemap.firmware.transports.base import TargetMemory
from joulemap.firmware.wire.vocabulary import phase_of
from joulemap.records.firmware import FirmwareArtifact
from joulemap.records.power import FirmwarePhase

__all__ = ["read_phase", "unplug_probe"]


@runtime_checkable
class _Unpluggable(Protocol):
    def disconnect(self) -> None:
        """Pulls the link off."""
        ...


def read_phase(memory: TargetMemory, artifact: FirmwareArtifact) -> FirmwarePhase | None:
    """Returns the phase of the running image, read by an attach without reset.

    None before BOOT, for a number that no phase has, or when memory cannot be reached: the phase helps the reader of a
    failure, the failure itself is told elsewhere.
    """
    entry = artifact.symbols.get(PHASE_SYMBOL)
    if entry is None:
        return None
    try:
        return phase_of(int.from_bytes(memory.read_memory(entry[0], 4), "little"))
    except PipelineError:
        return None


def unplug_probe(probe: Probe) -> None:
    """Plants ``probe_lost``: pulls the link off; every later call of the probe then finds out by itself.

    Raises:
        TypeError: the probe is a real one; preflight refuses faults there.
    """
    if not isinstance(probe, _Unpluggable):
        raise TypeError(f"probe {probe.name} cannot be unplugged by software")
    probe.disconnect()
