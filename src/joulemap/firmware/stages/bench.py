"""What a run works with: look-ups by name, a progress sink, a wall clock, and whatever must be closed at the end.

A bench is handed in; its defaults are the shipped registries, a test may hand in other look-ups. It must not know which
stage uses what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from joulemap.firmware.boards.base import Board, BoardSession
from joulemap.firmware.boards.registry import board
from joulemap.firmware.engines.base import Engine
from joulemap.firmware.engines.registry import engine
from joulemap.firmware.probes.base import Probe
from joulemap.firmware.probes.registry import resolve_probe
from joulemap.firmware.toolchains.base import Toolchain
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.firmware.transports.base import PowerTerminalTransport, ProfileTransport
from joulemap.firmware.transports.registry import profile_transport, terminal_transport
from joulemap.meters.base import PowerMeter
from joulemap.meters.registry import instrument, open_simulated_meter
from joulemap.records.fault import FaultPlan
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.progress import Phase, ProgressSink, ProgressUpdate
from joulemap.records.rail import RailActivity

__all__ = ["Bench", "MeterFactory"]

MeterFactory = Callable[
    [InstrumentSpec, Callable[[], RailActivity], np.random.SeedSequence, FaultPlan],
    PowerMeter,
]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _silence(_update: ProgressUpdate) -> None:
    """Takes an update and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """The services of a run.

    Args:
        engine: engine by name.
        toolchain: toolchain by name.
        board: board by target name.
        probe: probe by name, attached to a board.
        instrument: declaration by name or file.
        meter: a meter on a rail, from declaration, rail, seed and faults.
        profile_transport: link of the profile stream by name.
        terminal_transport: link of the terminal record by name.
        progress: takes status and checkpoints.
        now: wall time, UTC.
        resources: closed by whoever made the bench, whatever happens.
    """

    engine: Callable[[str], Engine] = engine
    toolchain: Callable[[str], Toolchain] = toolchain
    board: Callable[[str], Board] = board
    probe: Callable[[str, BoardSession], Probe] = resolve_probe
    instrument: Callable[[str], InstrumentSpec] = instrument
    meter: MeterFactory = open_simulated_meter
    profile_transport: Callable[[str], ProfileTransport] = profile_transport
    terminal_transport: Callable[[str], PowerTerminalTransport] = terminal_transport
    progress: ProgressSink = _silence
    now: Callable[[], datetime] = _utc_now
    resources: ExitStack = field(default_factory=ExitStack)

    def checkpoint(self, phase: Phase, name: str, message: str, **details: object) -> None:
        """Tells of a durable milestone."""
        self._tell(phase, name, message, details, checkpoint=True, min_verbosity=0)

    def status(self, phase: Phase, name: str, message: str, **details: object) -> None:
        """Tells what is going on, in real units."""
        self._tell(phase, name, message, details, checkpoint=False, min_verbosity=0)

    def diagnostic(self, phase: Phase, name: str, message: str, **details: object) -> None:
        """Tells what only a person looking for a cause wants to see (``-vv``)."""
        self._tell(phase, name, message, details, checkpoint=False, min_verbosity=2)

    def _tell(
        self,
        phase: Phase,
        name: str,
        message: str,
        details: Mapping[str, object],
        *,
        checkpoint: bool,
        min_verbosity: int,
    ) -> None:
        self.progress(
            ProgressUpdate(
                phase=phase,
                name=name,
                message=message,
                details=details,
                checkpoint=checkpoint,
                min_verbosity=min_verbosity,
            )
        )
