"""Single values of recordings: numbers and their missing forms, units, time stamps, counters, polled duplicates.

Time stamps are parsed with integer arithmetic, without ``strptime`` and without a float: a nanosecond survives. It
must not know any format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING_FORMS",
    "CounterSteps",
    "Stamp",
    "Unit",
    "UnitKind",
    "decimal_ns",
    "difference_counter",
    "header_unit",
    "is_missing",
    "parse_clock_time",
    "parse_number",
    "parse_stamp",
    "parse_unit",
    "widen",
]

MISSING_FORMS: Final = frozenset({
    "", "-", "--", "n/a", "na", "[n/a]", "nan", "nil", "none", "null", "unavailable", "unknown", "?", "x",
    "[not supported]", "not supported", "[unknown error]", "[insufficient permissions]", "[gpu requires reset]",
    "<not counted>", "<not supported>", "n/a (secondary die)", "[requested functionality has been deprecated]",
    "requested functionality has been deprecated",
})  # fmt: skip
"""How sources write "no value", in lower case."""

_LATEST_NS: Final = 1 << 62
_SCALES: Final = tuple(10**places for places in range(41))
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def is_missing(text: str) -> bool:
    """Returns whether a field is one of the forms of "no value"."""
    return text.strip().lower() in MISSING_FORMS


def parse_number(text: str, decimal: str = ".") -> float:
    """Returns the number of a field; NaN when it is one of the missing forms, +-inf only when it says so.

    Args:
        text: the field; blanks around it do not matter.
        decimal: ``,`` when the table has a decimal comma.

    Raises:
        ValueError: neither a number nor a missing form.
    """
    body = text
    if decimal == "," and "," in text:
        body = text.replace(".", "").replace(",", ".")
    try:
        value = float(body)
    except ValueError:
        if is_missing(body):
            return math.nan
        raise
    if "_" in body or not body.isascii():  # float() takes 1_0 and foreign digits; no instrument writes them
        raise ValueError(f"not a number: {text!r}")
    return value


class UnitKind(StrEnum):
    """What a unit measures."""

    TIME = "time"
    CURRENT = "current"
    VOLTAGE = "voltage"
    POWER = "power"
    ENERGY = "energy"
    CHARGE = "charge"
    TEMPERATURE = "temperature"
    FREQUENCY = "frequency"
    SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit: what it measures and how many SI units one of it is (degrees Celsius stay degrees Celsius)."""

    kind: UnitKind
    factor: float


_PREFIX: Final = {"": 1.0, "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
_SYMBOL: Final = {
    "s": (UnitKind.TIME, 1.0),
    "A": (UnitKind.CURRENT, 1.0),
    "V": (UnitKind.VOLTAGE, 1.0),
    "W": (UnitKind.POWER, 1.0),
    "J": (UnitKind.ENERGY, 1.0),
    "Ws": (UnitKind.ENERGY, 1.0),
    "Wh": (UnitKind.ENERGY, 3600.0),
    "C": (UnitKind.CHARGE, 1.0),
    "Ah": (UnitKind.CHARGE, 3600.0),
    "Hz": (UnitKind.FREQUENCY, 1.0),
}
_WORD: Final = {
    "second": (UnitKind.TIME, 1.0), "seconds": (UnitKind.TIME, 1.0), "sec": (UnitKind.TIME, 1.0),
    "millisecond": (UnitKind.TIME, 1e-3), "milliseconds": (UnitKind.TIME, 1e-3), "msec": (UnitKind.TIME, 1e-3),
    "microsecond": (UnitKind.TIME, 1e-6), "microseconds": (UnitKind.TIME, 1e-6), "usec": (UnitKind.TIME, 1e-6),
    "nanosecond": (UnitKind.TIME, 1e-9), "nanoseconds": (UnitKind.TIME, 1e-9), "nsec": (UnitKind.TIME, 1e-9),
    "minute": (UnitKind.TIME, 60.0), "minutes": (UnitKind.TIME, 60.0), "min": (UnitKind.TIME, 60.0),
    "hour": (UnitKind.TIME, 3600.0), "hours": (UnitKind.TIME, 3600.0), "h": (UnitKind.TIME, 3600.0),
    "volt": (UnitKind.VOLTAGE, 1.0), "volts": (UnitKind.VOLTAGE, 1.0),
    "ampere": (UnitKind.CURRENT, 1.0), "amperes": (UnitKind.CURRENT, 1.0), "amp": (UnitKind.CURRENT, 1.0),
    "amps": (UnitKind.CURRENT, 1.0),
    "watt": (UnitKind.POWER, 1.0), "watts": (UnitKind.POWER, 1.0), "milliwatts": (UnitKind.POWER, 1e-3),
    "microwatts": (UnitKind.POWER, 1e-6),
    "joule": (UnitKind.ENERGY, 1.0), "joules": (UnitKind.ENERGY, 1.0), "microjoules": (UnitKind.ENERGY, 1e-6),
    "%": (UnitKind.SHARE, 0.01), "percent": (UnitKind.SHARE, 0.01),
    "degc": (UnitKind.TEMPERATURE, 1.0), "°c": (UnitKind.TEMPERATURE, 1.0), "celsius": (UnitKind.TEMPERATURE, 1.0),
}  # fmt: skip


@lru_cache(maxsize=256)
def parse_unit(text: str) -> Unit:
    """Returns the unit that a text names: ``mA``, ``µW``, ``kWh``, ``Volt``, ``microseconds``, ``V DC``, ``%``.

    Raises:
        ValueError: no unit that this product knows.
    """
    body = (
        text.strip().strip("[]()").replace("µ", "u").replace("μ", "u").removesuffix(" DC").removesuffix(" AC").strip()
    )
    if body.lower() in _WORD:
        kind, factor = _WORD[body.lower()]
        return Unit(kind=kind, factor=factor)
    for prefix, scale in _PREFIX.items():
        symbol = body[len(prefix) :]
        if body.startswith(prefix) and symbol in _SYMBOL:
            kind, factor = _SYMBOL[symbol]
            return Unit(kind=kind, factor=factor * scale)
    raise ValueError(f"unknown unit {text!r}")


def header_unit(label: str) -> tuple[str, Unit | None]:
    """Returns a column label without its unit, and the unit in its last brackets: ``Main Avg Current (mA)``.

    The unit is None when there are no brackets or they hold no unit.
    """
    body = label.strip()
    for left, right in (("(", ")"), ("[", "]")):
        if body.endswith(right) and left in body:
            name, _, unit = body[:-1].rpartition(left)
            try:
                return name.strip(), parse_unit(unit)
            except ValueError:
                return body, None
    return body, None


@dataclass(frozen=True, slots=True)
class Stamp:
    """A point in time as written.

    Args:
        ns: ns since 1970-01-01 of the calendar reading, as if it were UTC.
        offset_s: its zone, s east of UTC; None when the text has none (then it is local time, never UTC).
    """

    ns: int
    offset_s: int | None

    @property
    def utc_ns(self) -> int:
        """The instant in UTC, ns; only for a stamp with a zone."""
        if self.offset_s is None:
            raise ValueError("a stamp without a zone has no UTC")
        return self.ns - self.offset_s * 1_000_000_000


@lru_cache(maxsize=64)
def _day_ns(year: int, month: int, day: int) -> int:
    """Returns ns from 1970-01-01 to the start of a day of the proleptic Gregorian calendar."""
    if not 1900 <= year <= 2200:  # keeps ns inside int64
        raise ValueError(f"no such year: {year}")
    return (date(year, month, day).toordinal() - _EPOCH_DAY) * 86_400_000_000_000


def _clock_ns(text: str) -> int:
    """Returns ns since midnight of ``HH:MM:SS``, ``HH:MM:SS.fraction`` or ``HH:MM:SS:mmm``."""
    if len(text) < 8 or text[2] != ":" or text[5] != ":":
        raise ValueError(f"no time of day: {text!r}")
    hour, minute, second = _digits(text[:2]), _digits(text[3:5]), _digits(text[6:8])
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(f"no time of day: {text!r}")
    fraction = 0
    if len(text) > 8:
        digits = text[9:18]
        if text[8] not in ".,:" or not digits:
            raise ValueError(f"no time of day: {text!r}")
        fraction = _digits(digits.ljust(9, "0"))
    return ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"not digits: {text!r}")
    return int(text)


def parse_clock_time(text: str) -> int:
    """Returns ns since midnight of a time of day: ``HH:MM:SS``, with ``.fraction`` or ``:mmm``.

    Raises:
        ValueError: not a time of day.
    """
    return _clock_ns(text.strip())


def _split_zone(text: str) -> tuple[str, int | None]:
    if text[-1:] in "Zz" and text:
        return text[:-1], 0
    if text.endswith(" UTC"):
        return text[:-4], 0
    for sign, factor in (("+", 1), ("-", -1)):
        at = text.rfind(sign)
        zone = text[at + 1 :].replace(":", "") if at >= 8 else ""
        if at >= 8 and len(zone) in {2, 4} and zone.isdigit():
            return text[:at].rstrip(), factor * (int(zone[:2]) * 3600 + int(zone[2:] or 0) * 60)
    return text, None


def parse_stamp(text: str) -> Stamp:
    """Returns a calendar time stamp, to the nanosecond.

    Forms: ``2026-01-02T03:04:05.123Z`` (also a blank or a colon for the T, ``/`` for the ``-``, zones ``+01:00``,
    ``+0100``, `` UTC``), ``01-02-2026 03:04:05.123`` (month first, as PTDaemon and tegrastats write),
    ``20260102T030405.50Z``.

    Raises:
        ValueError: none of these.
    """
    body = text.strip()
    if len(body) >= 15 and body[8:9] in {"T", "t"} and body[:8].isdigit():  # compact
        clock, zone = _split_zone(body[9:]) if body[-1:] in "Zz" else (body[9:], None)
        return Stamp(
            _day_ns(_digits(body[:4]), _digits(body[4:6]), _digits(body[6:8]))
            + _clock_ns(f"{clock[:2]}:{clock[2:4]}:{clock[4:]}"),
            zone,
        )
    if len(body) < 19 or body[10] not in "T t:":
        raise ValueError(f"not a time stamp: {text!r}")
    date = body[:10]
    if date[4] in "-/" and date[7] in "-/":
        day_ns = _day_ns(_digits(date[:4]), _digits(date[5:7]), _digits(date[8:]))
    elif date[2] in "-/" and date[5] in "-/":
        day_ns = _day_ns(_digits(date[6:]), _digits(date[:2]), _digits(date[3:5]))
    else:
        raise ValueError(f"not a time stamp: {text!r}")
    if len(body) == 19:
        return Stamp(day_ns + _clock_ns(body[11:]), None)
    clock, offset_s = _split_zone(body[11:])
    return Stamp(day_ns + _clock_ns(clock), offset_s)


def decimal_ns(text: str, unit_ns: int = 1_000_000_000) -> int:
    """Returns a decimal number of units as integer ns, exact to the last written digit.

    Args:
        text: ``1767323045.123456``; a form with an exponent is rounded through float64.
        unit_ns: ns in one unit: 1e9 for seconds, 1e6 for ms, 1e3 for us, 1 for ns.

    Raises:
        ValueError: not a finite number, or beyond +-146 years.
    """
    body = text.strip()
    whole, _, fraction = body.partition(".")
    sign = 1
    if body[:1] in {"-", "+"}:
        sign, whole = (-1 if body[0] == "-" else 1), whole[1:]
    digits = whole + fraction
    value: int
    if digits.isdigit() and digits.isascii():
        places = len(fraction)
        if len(digits) > 40:
            if len(whole) > 20:
                raise ValueError(f"a time out of range: {text!r}")
            places = 24
            digits = whole + fraction[:24]
        scale = _SCALES[places]
        value = sign * ((2 * int(digits) * unit_ns + scale) // (2 * scale))
    else:
        number = parse_number(body)
        if not math.isfinite(number) or abs(number) * unit_ns >= _LATEST_NS:
            raise ValueError(f"not a time: {text!r}")
        value = round(number * unit_ns)
    if abs(value) >= _LATEST_NS:
        raise ValueError(f"a time out of range: {text!r}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterSteps:
    """A counter after differencing.

    Args:
        delta: (n - 1,) counts in each step, >= 0; 0 where ``lost``.
        wrapped: (n - 1,) True where the modulus was added.
        lost: (n - 1,) True where no honest value exists (fell without a known modulus, or impossibly large).
    """

    delta: NDArray[np.float64]
    wrapped: NDArray[np.bool_]
    lost: NDArray[np.bool_]


def difference_counter(
    count: NDArray[np.int64] | NDArray[np.float64],
    *,
    modulus: float | None = None,
    largest: NDArray[np.float64] | float | None = None,
) -> CounterSteps:
    """Returns the steps of a cumulative counter.

    A fall is a wrap when the modulus is known: the modulus is added. Without one the step is lost, never negative and
    never subtracted. A step above ``largest`` (the physical limit over the step) is lost too: a reset, a jump, or
    more than one wrap.

    Args:
        count: (n,) counter readings; NaN for a reading that is missing.
        modulus: counts per wrap; None when the source does not say.
        largest: largest possible step, counts; a scalar or (n - 1,).

    References:
        METHODS 1.2; Linux Documentation/power/powercap/powercap.rst (max_energy_range_uj).
    """
    readings = np.asarray(count)
    if readings.size < 2:
        empty = np.zeros(0, np.bool_)
        return CounterSteps(delta=np.zeros(0), wrapped=empty, lost=empty)
    delta = np.diff(readings).astype(np.float64)  # differenced in the counter's own type: int64 stays exact
    fell = delta < 0
    wrapped = np.zeros(delta.size, np.bool_)
    if modulus is not None:
        wrapped = fell.copy()
        delta[fell] += modulus
    lost = ~np.isfinite(delta) | (delta < 0)
    if largest is not None:
        with np.errstate(invalid="ignore"):
            lost |= delta > largest
    delta[lost] = 0.0
    return CounterSteps(delta=delta, wrapped=wrapped & ~lost, lost=lost)


def widen(values: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns samples as float64; damaged bytes may be a NaN that signals, which is missing and no fault."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)
