"""From a specification or a calibration to standard uncertainties of one recording.

References:
    JCGM 100:2008, 4.3.7 (limits are rectangular: a / sqrt 3). A typical figure is taken as one standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from joulemap.analysis.intervals.uncertainty import limit_std
from joulemap.records.finding import Finding, Severity
from joulemap.records.mapping.calibration import Calibration, Evidence, InstrumentAccuracy

__all__ = ["MeterErrors", "errors_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterErrors:
    """Systematic errors of a recording.

    Args:
        name: of the instrument; empty when nothing is known.
        gain_std: relative standard uncertainty.
        offset_std_w: standard uncertainty, W.
        rectangular: both are rectangular.
        gain: reading per true power, to divide by.
        offset_w: to subtract first, W.
        source: where the figures come from.
        findings: what is not known.
    """

    name: str = ""
    gain_std: float = 0.0
    offset_std_w: float = 0.0
    rectangular: bool = True
    gain: float = 1.0
    offset_w: float = 0.0
    source: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def corrects(self) -> bool:
        """True when readings are to be corrected."""
        return self.gain != 1.0 or self.offset_w != 0.0


def errors_of(
    instrument: InstrumentAccuracy | None,
    calibration: Calibration | None,
    *,
    mean_power_w: float,
    voltage_v: float | None,
    day: date | None,
) -> MeterErrors:
    """Returns the errors of a recording of that mean power.

    Args:
        instrument: its specification; None when nothing is known.
        calibration: of the unit; replaces the specification while it holds.
        mean_power_w: W.
        voltage_v: supply, V; None when not known: offsets in amperes then cannot be budgeted.
        day: of the recording; None when not known.
    """
    findings: list[Finding] = []
    if calibration is not None:
        if day is not None and calibration.holds(day):
            return MeterErrors(
                name=f"{calibration.instrument} {calibration.serial}".strip(),
                gain_std=calibration.gain_std / calibration.gain,
                offset_std_w=calibration.offset_std_w / calibration.gain,
                rectangular=False,
                gain=calibration.gain,
                offset_w=calibration.offset_w,
                source=f"calibrated {calibration.calibrated} against {calibration.reference},"
                f" until {calibration.expires}",
            )
        when = "on a day that is not known" if day is None else f"on {day}"
        message = (
            f"the calibration of {calibration.instrument} ({calibration.calibrated} to {calibration.expires}) does"
        )
        findings.append(_warn("calibration_expired", f"{message} not hold for a recording made {when}; it is not used"))
    if instrument is None:
        message = (
            "nothing is known of the meter: the intervals leave its gain and offset out; name it with --instrument"
        )
        return MeterErrors(findings=(*findings, _warn("instrument_unknown", message)))
    current_a = None if not voltage_v else abs(mean_power_w) / voltage_v
    usable = [r for r in instrument.ranges if r.evidence is not Evidence.MEMORY]
    if current_a is not None:
        usable = [r for r in usable if r.max_a is None or r.min_a <= current_a <= r.max_a]
    if not usable:
        message = f"{instrument.title}: no figure is published for {current_a or 0:.3g} A; gain and offset are left out"
        return MeterErrors(findings=(*findings, _warn("instrument_unknown", message)))
    worst = max(usable, key=lambda r: (r.gain, r.offset_a, r.offset_w))
    if worst.offset_a and not voltage_v:
        message = f"{instrument.title}: an offset of {worst.offset_a:.2g} A needs a supply; import with --voltage"
        findings.append(_warn("offset_not_budgeted", message))
    offset_w = worst.offset_w + worst.offset_a * (voltage_v or 0.0)
    return MeterErrors(
        name=instrument.title,
        gain_std=worst.gain if worst.typical else limit_std(worst.gain),
        offset_std_w=offset_w if worst.typical else limit_std(offset_w),
        rectangular=not worst.typical,
        source=worst.source,
        findings=tuple(findings),
    )


def _warn(slug: str, message: str) -> Finding:
    return Finding(slug=slug, severity=Severity.WARNING, message=message)
