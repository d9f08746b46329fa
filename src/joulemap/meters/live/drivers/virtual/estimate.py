"""Power guessed from utilisation: idle power plus a share of the rest. An estimate, labelled so, only when asked for.

It knows nothing of clocks, caches or the workload; it is here for machines without any meter, and for showing how far
such a figure is from a measured one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from joulemap.errors import UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.cpu_load import CpuLoad
from joulemap.meters.live.ground.file_meter import FileMeter, Survey
from joulemap.meters.live.ground.options import check_options, number_option
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "build_meter", "discover_meters"]

SUMMARY = "power guessed from the processors' utilisation and two declared powers (estimated, never measured)"
EXAMPLE = "estimate:idle_w=8,full_w=45"
_NAME = "estimate"
_OPTIONS = ("idle_w", "full_w", "proc", "every_s")


class _Guess:
    """Power by utilisation: a source.

    Args:
        load: utilisation of the processors.
        idle_w: W.
        full_w: W.
    """

    def __init__(self, load: CpuLoad, idle_w: float, full_w: float) -> None:
        self._load = load
        self._idle_w, self._full_w = idle_w, full_w

    @property
    def gone(self) -> bool:
        """True when utilisation cannot be read any more."""
        return self._load.gone

    def open(self) -> None:
        """Begins the first interval.

        Raises:
            OSError: utilisation cannot be read.
        """
        self._load.open()

    def read(self) -> float:
        """Returns W, over the interval since the last reading; the last one again when no time passed."""
        return self._idle_w + (self._full_w - self._idle_w) * self._load.read()

    def close(self) -> None:
        """Lets go."""
        self._load.close()


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the model that was asked for; nothing when nobody asked.

    Raises:
        UsageError: an option is wrong, or one of the two powers is missing (``meter-option``).
    """
    if options is None:
        return ()
    return (build_meter(MeterAddress(driver=_NAME, options=options)).candidate(),)


def build_meter(address: MeterAddress) -> FileMeter:
    """Returns the meter of the model.

    Args:
        address: ``idle_w`` and ``full_w``, both needed; ``proc``, the folder with ``stat``; ``every_s``, the interval
            of one utilisation (0.1).

    Raises:
        UsageError: an option is wrong, or one of the two powers is missing (``meter-option``).
    """
    check_options(address, _OPTIONS)
    if not {"idle_w", "full_w"} <= set(address.options):
        raise UsageError(
            f"meter {_NAME} needs the power of the idle and of the busy machine",
            hint=f"write {EXAMPLE}",
            slug="meter-option",
        )
    idle_w, full_w = number_option(address, "idle_w", 0.0), number_option(address, "full_w", 0.0)
    if full_w < idle_w:
        raise UsageError(f"meter {_NAME}: full_w is below idle_w", hint=f"write {EXAMPLE}", slug="meter-option")
    every_s = number_option(address, "every_s", 0.1, exclusive=True)
    stat = Path(address.options.get("proc", "/proc")) / "stat"

    def look() -> Survey:
        if CpuLoad(stat).absent:
            return Survey(problem=f"{stat} cannot be read: there is no utilisation")
        domain = LiveDomain(
            name="node",
            reading=DomainReading.POWER,
            unit="W",
            scale=1.0,
            provenance=Provenance.ESTIMATED,
            boundary=Boundary.NODE,
            largest_w=max(full_w * 1.001, 1e-3),
            update_period_s=every_s,
            window_s=every_s,
            source=f"model: {idle_w:g} W idle to {full_w:g} W busy, by utilisation",
        )
        return Survey(domains=(domain,), sources=(_Guess(CpuLoad(stat, every_s=every_s), idle_w, full_w),))

    return FileMeter(address, _NAME, look)
