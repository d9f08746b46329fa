"""What is known, or must be assumed, of the gain of a live meter.

References:
    METHODS 2: RAPL and NVML publish no accuracy; +-5 % rectangular until the unit is calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.uncertainty import limit_std
from joulemap.estimate import Provenance
from joulemap.records.finding import Finding, Severity

__all__ = ["ASSUMED_GAIN_LIMIT", "live_errors", "stated_gain"]

ASSUMED_GAIN_LIMIT: Final = 0.05
"""Limit of the relative gain error of a meter of which nothing is declared."""


def live_errors(channel: str, gain_std: float | None, provenance: Provenance) -> MeterErrors:
    """Returns the errors of a live meter's channel.

    Args:
        channel: its name.
        gain_std: declared relative standard uncertainty of its gain; None when the maker declares none.
        provenance: of its readings; a model of unknown gain is assumed no better than a meter.
    """
    if gain_std is not None:
        return MeterErrors(name=channel, gain_std=gain_std, source="declared by the meter")
    what = "model" if provenance in (Provenance.MODELLED, Provenance.ESTIMATED) else "meter"
    message = (
        f"{channel}: the {what} declares no accuracy; its gain is taken as known to +-{ASSUMED_GAIN_LIMIT:.0%}"
        " (rectangular) until it is calibrated"
    )
    return MeterErrors(
        name=channel,
        gain_std=limit_std(ASSUMED_GAIN_LIMIT),
        source="assumed",
        findings=(Finding(slug="gain_assumed", severity=Severity.INFO, message=message),),
    )


def stated_gain(metadata: Mapping[str, str], channel: str) -> float | None:
    """Returns the gain's relative standard uncertainty that a capture's facts hold for a channel; None without one."""
    text = metadata.get(f"gain_std {channel}")
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
