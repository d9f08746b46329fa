"""What a user asked for, before anything is resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from joulemap.records.fault import FaultPlan

__all__ = ["ProfileRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """The arguments of ``joulemap profile``, checked for shape only.

    Args:
        model: path of the model file.
        target: target name.
        engine: engine name.
        toolchain: toolchain name.
        power: run the power phase too.
        count: N inferences inside GATE; None to derive it from window_s.
        window_s: wanted gate length, s; None for the default of the target.
        repeats: R captures, >= 1.
        input: ``.npz`` with the model's inputs; None for seeded random input.
        transport: terminal transport name.
        lockstep: host waits for READY and gives GO.
        instrument: a shipped instrument's name or a TOML file; None for the target's default.
        faults: planted faults (virtual targets only).
        contrast: multiply each layer's power by a seeded factor (virtual targets only).
        seed: drives input, run factors, instrument draws and contrast.
    """

    model: Path
    target: str = "virtual-m33"
    engine: str = "aot"
    toolchain: str = "zig"
    power: bool = True
    count: int | None = None
    window_s: float | None = None
    repeats: int = 5
    input: Path | None = None
    transport: str = "rtt"
    lockstep: bool = True
    instrument: str | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    contrast: bool = False
    seed: int = 0
