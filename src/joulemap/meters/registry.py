"""Names of instruments and drivers. The only module of this room that names a driver."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from joulemap.errors import UsageError
from joulemap.meters.base import PowerMeter
from joulemap.meters.spec_file import read_instrument_spec
from joulemap.records.fault import FaultPlan
from joulemap.records.instrument import InstrumentSpec
from joulemap.records.rail import RailActivity

__all__ = ["DEFAULT_INSTRUMENT", "instrument", "instrument_names", "open_simulated_meter"]

DEFAULT_INSTRUMENT = "virtual-shunt"
"""The meter of a virtual board when none is named."""

_SPECS = files("joulemap.meters") / "specs"


def instrument_names() -> tuple[str, ...]:
    """Returns the names of the shipped instruments, sorted: one TOML file each in ``meters/specs``."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _SPECS.iterdir() if entry.name.endswith(".toml")))


def instrument(name: str) -> InstrumentSpec:
    """Returns the declaration of a shipped instrument, or of a file when the name ends in ``.toml`` or is a path.

    Raises:
        UsageError: no shipped instrument has that name.
        InputError: the file is missing or breaks the rules of ``spec_file``.
    """
    if name.endswith(".toml") or "/" in name:
        return read_instrument_spec(Path(name))
    if name not in instrument_names():
        raise UsageError(
            f"no instrument is called {name!r}",
            hint=f"Shipped: {', '.join(instrument_names())}; or give a .toml file.",
            slug="instrument-unknown",
        )
    with as_file(_SPECS / f"{name}.toml") as path:
        return read_instrument_spec(path)


def open_simulated_meter(
    spec: InstrumentSpec,
    rail: Callable[[], RailActivity],
    seed: np.random.SeedSequence | int,
    faults: FaultPlan | None = None,
) -> PowerMeter:
    """Returns a simulated meter on a virtual rail; see ``drivers.simulated.SimulatedMeter``."""
    from joulemap.meters.drivers.simulated import SimulatedMeter  # noqa: PLC0415  # a driver is loaded when it is used

    return SimulatedMeter(spec, rail, seed, faults)
