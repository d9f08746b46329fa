"""What a user asked of a run on this machine, before anything is resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

__all__ = ["HostRequest", "SessionRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """What a runtime needs to load a model.

    Args:
        model: path of the file.
        batch: value of the dimensions that the model leaves open; None when none was given.
        threads: of the runtime's own pool; None for its default.
        precision: ``fp32``, ``fp16``, ``bf16``, ``int8``; empty for the model's own.
        provider: execution provider; empty for the runtime's own choice.
    """

    model: Path
    batch: int | None = None
    threads: int | None = None
    precision: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRequest:
    """The arguments of ``joulemap profile --target host``, checked for shape only.

    Args:
        session: model and how it is loaded.
        runtime: name of the runtime; empty to go by the file.
        meters: names of power meters; empty for every usable one.
        input: ``.npz`` with the model's inputs; None for seeded random input.
        window_s: wanted length of an energy window, s; None to go by the meter.
        repeats: R, blocks of windows, >= 2.
        operators: loads with repeated operators at most, the last of which holds all that are not alone in one; 0 for a
            split by time alone.
        tokens: tokens that one inference yields; None for a model that yields none.
        warm_up_s: longest warm-up, s.
        seed: drives input, order of windows and every simulated draw.
        options: of the simulated runtime and meter, as text.
    """

    session: SessionRequest
    runtime: str = ""
    meters: tuple[str, ...] = ()
    input: Path | None = None
    window_s: float | None = None
    repeats: int = 5
    operators: int = 12
    tokens: int | None = None
    warm_up_s: float = 30.0
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        if self.repeats < 2:
            raise ValueError(f"a run on this machine needs two repeats or more, got {self.repeats}")
