"""SI quantities as people write and read them: parse ``50 ms``, print ``132.40 ± 0.60 µJ``.

The printing rule: a value and its expanded uncertainty share one unit and one decimal place, U has two significant
digits, and nothing ever shows more digits than U supports. Only what people read is rounded; files hold full numbers.
This module knows no trace, no estimate and no screen.

References:
    JCGM 100:2008 (GUM), 7.2.6: uncertainties to at most two significant digits, the value rounded to match.
    The International System of Units (SI), 9th ed. (2019, updated 2022), 3 (prefixes) and 5.4 (writing values).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

from joulemap.errors import UsageError

__all__ = [
    "ASCII",
    "PLAIN",
    "THIN",
    "Typography",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_estimate",
    "format_percent",
    "format_si",
    "parse_duration_s",
    "parse_rate_hz",
    "parse_si",
]

_PREFIXES: Final = {
    -30: "q", -27: "r", -24: "y", -21: "z", -18: "a", -15: "f", -12: "p", -9: "n", -6: "µ", -3: "m",
    0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E", 21: "Z", 24: "Y", 27: "R", 30: "Q",
}  # fmt: skip
_EXPONENTS: Final = {symbol: exponent for exponent, symbol in _PREFIXES.items()} | {"u": -6, "μ": -6}
_BARE_UNITS: Final = frozenset({"", "%", "ppm"})  # never take a prefix
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+(?:[_ ]\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII)
_WIDE: Final = Context(prec=1400, rounding=ROUND_HALF_EVEN)  # holds any pair of floats side by side
_LONG_UNITS_S: Final = {"min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typography:
    """How numbers are set.

    Args:
        space: between number and unit.
        plus_minus: between value and uncertainty.
        micro: the prefix for 1e-6.
        ohm: the unit sign.
        minus: the sign of a negative number.
    """

    space: str = "\u2009"
    plus_minus: str = "±"
    micro: str = "µ"
    ohm: str = "Ω"
    minus: str = "-"


THIN: Final = Typography()
PLAIN: Final = Typography(space=" ")
ASCII: Final = Typography(space=" ", plus_minus="+-", micro="u", ohm="Ohm")


def parse_si(text: str, unit: str) -> float:
    """Returns the number that the text means, in the unit.

    Args:
        text: a number, an SI prefix and the unit (``1 MS/s``), or a number alone, which is then in the unit.
        unit: the unit expected, without prefix.

    Raises:
        UsageError: not a finite number, or another unit (``bad-quantity``).
    """
    match = _NUMBER.fullmatch(text)
    if match is not None:
        number, rest = match[1].replace("_", "").replace(" ", ""), match[2]
        if rest == "":
            return _finite(text, float(number))
        prefix = rest.removesuffix(unit) if unit and rest.endswith(unit) else None
        if prefix is not None and prefix in _EXPONENTS:
            return _finite(text, float(Decimal(number).scaleb(_EXPONENTS[prefix])))
    example = f"1.5 k{unit}" if unit not in _BARE_UNITS else "1.5"
    raise _refuse(text, f"a quantity in {unit}" if unit else "a number", example)


def parse_duration_s(text: str) -> float:
    """Returns a duration, s, from ``50 ms``, ``2``, ``1.5 min`` or ``1 h``.

    Raises:
        UsageError: no such quantity, or a negative one (``bad-quantity``).
    """
    match = _NUMBER.fullmatch(text)
    if match is not None and match[2] in _LONG_UNITS_S:
        duration_s = _finite(text, float(match[1].replace("_", "").replace(" ", "")) * _LONG_UNITS_S[match[2]])
    else:
        try:
            duration_s = parse_si(text, "s")
        except UsageError:
            raise _refuse(text, "a duration", "50 ms, 2 s or 1.5 min") from None
    if duration_s < 0:
        raise _refuse(text, "a duration of 0 or more", "50 ms")
    return duration_s


def parse_rate_hz(text: str) -> float:
    """Returns a rate, Hz, from ``1 MS/s``, ``10 kHz`` or ``1000``.

    Raises:
        UsageError: no such quantity, or one that is not above 0 (``bad-quantity``).
    """
    for unit in ("S/s", "Hz"):
        try:
            rate_hz = parse_si(text, unit)
        except UsageError:
            continue
        if rate_hz > 0:
            return rate_hz
    raise _refuse(text, "a rate above 0", "1 MS/s or 10 kHz")


def format_si(value: float, unit: str, *, digits: int = 4, typography: Typography = THIN) -> str:
    """Returns the value with an SI prefix and so many significant digits: ``132.4 µJ``.

    Args:
        value: in the unit; finite.
        unit: without prefix.
        digits: significant digits, >= 1; for numbers without an uncertainty of their own.
        typography: spaces and signs.

    Raises:
        ValueError: the value is not finite.
    """
    number = _decimal(value)
    places = _places_of(number, digits) if number else 0
    exponent = _prefix_exponent(_round(number, places), unit)
    return _assemble(_round(number, places), "", unit, places=places, exponent=exponent, typography=typography)


def format_estimate(value: float, expanded: float, unit: str, *, typography: Typography = THIN) -> str:
    """Returns value and expanded uncertainty in one unit and one decimal place: ``132.40 ± 0.60 µJ``.

    With U = 0 the value shows at most six significant digits and the uncertainty is ``0``.

    Args:
        value: in the unit; finite.
        expanded: U, same unit, >= 0, finite.
        unit: without prefix.
        typography: spaces and signs.

    Raises:
        ValueError: not finite, or U < 0.
    """
    if expanded < 0:
        raise ValueError(f"an expanded uncertainty is >= 0, got {expanded}")
    number, doubt = _decimal(value), _decimal(expanded)
    places = _places_of(doubt, 2) if doubt else _exact_places(number)
    number, doubt = _round(number, places), _round(doubt, places)
    exponent = _prefix_exponent(max(abs(number), doubt), unit)
    shown = _fixed(doubt, places, exponent) if doubt else "0"
    shown = f" {typography.plus_minus} {shown}"
    return _assemble(number, shown, unit, places=places, exponent=exponent, typography=typography)


def format_percent(
    ratio: float, expanded: float | None = None, *, digits: int = 3, typography: Typography = THIN
) -> str:
    """Returns a ratio in percent, with its U when there is one: ``31.20 ± 0.40 %``.

    Args:
        ratio: 1 is 100 %.
        expanded: U of the ratio; None when it has none.
        digits: significant digits without a U.
        typography: spaces and signs.
    """
    if expanded is None:
        return format_si(float(_decimal(ratio) * 100), "%", digits=digits, typography=typography)
    return format_estimate(float(_decimal(ratio) * 100), float(_decimal(expanded) * 100), "%", typography=typography)


def format_duration(duration_s: float, *, digits: int = 3, typography: Typography = THIN) -> str:
    """Returns a duration from ns to h as fits: ``12.3 ms``, ``2 min 05 s``, ``1 h 02 min``.

    Raises:
        ValueError: not finite.
    """
    if abs(_decimal(duration_s)) < Decimal("59.5"):
        return format_si(duration_s, "s", digits=digits, typography=typography)
    sign = typography.minus if duration_s < 0 else ""
    seconds = round(abs(duration_s))
    space = typography.space
    if seconds < 3600:
        return f"{sign}{seconds // 60}{space}min {seconds % 60:02d}{space}s"
    minutes = round(abs(duration_s) / 60)
    return f"{sign}{minutes // 60}{space}h {minutes % 60:02d}{space}min"


def format_bytes(size_b: int, *, typography: Typography = THIN) -> str:
    """Returns a size in binary units: ``512 B``, ``52.4 KiB``, ``2 MiB``. Whole numbers of a unit show no decimals."""
    sign, size = (typography.minus if size_b < 0 else ""), abs(size_b)
    for power, symbol in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        scale = 1024**power
        if size >= scale:
            whole = size % scale == 0
            number = str(size // scale) if whole else f"{_round(Decimal(size) / scale, 1):f}"
            return f"{sign}{number}{typography.space}{symbol}"
    return f"{sign}{size}{typography.space}B"


def format_count(count: int, *, typography: Typography = THIN) -> str:
    """Returns a whole number in groups of three: ``12 345 678``; four digits stay together.

    References:
        SI brochure, 9th ed., 5.4.4 (grouping of digits).
    """
    sign, digits = (typography.minus if count < 0 else ""), str(abs(count))
    if len(digits) <= 4:
        return sign + digits
    return sign + f"{abs(count):,}".replace(",", typography.space)


def _refuse(text: str, wanted: str, example: str) -> UsageError:
    return UsageError(f"{text!r} is not {wanted}", hint=f"write it like {example}", slug="bad-quantity")


def _finite(text: str, value: float) -> float:
    if not math.isfinite(value):
        raise _refuse(text, "a finite number", "1.5")
    return value


def _decimal(value: float) -> Decimal:
    if not math.isfinite(value):
        raise ValueError(f"only finite numbers are printed, got {value}")
    return Decimal(repr(float(value)))  # the shortest text that means this float: 0.1 is 0.1


def _round(number: Decimal, places: int) -> Decimal:
    rounded = number.quantize(Decimal(1).scaleb(-places), context=_WIDE) if number else number
    return rounded or Decimal(0)  # never -0


def _places_of(number: Decimal, digits: int) -> int:
    # decimal places that leave so many significant digits, counted after rounding: 9.96 to two is 10, not 10.0
    places = digits - 1 - number.adjusted()
    return places - (_round(number, places).adjusted() - number.adjusted())


def _exact_places(number: Decimal) -> int:
    # as many as the number has, at most six significant digits in all
    if not number:
        return 0
    exponent = _round(number, _places_of(number, 6)).normalize(_WIDE).as_tuple().exponent
    assert isinstance(exponent, int)  # finite: held by _decimal
    return -exponent


def _prefix_exponent(number: Decimal, unit: str) -> int:
    # of the prefix that puts 1 to 3 digits before the point; the plain power of ten where SI has no prefix left
    if not number or unit in _BARE_UNITS:
        return 0
    exponent = 3 * (number.adjusted() // 3)
    return exponent if exponent in _PREFIXES else number.adjusted()


def _fixed(number: Decimal, places: int, exponent: int) -> str:
    # zeros before the point stand for what was rounded away when places + exponent is negative
    return f"{number.scaleb(-exponent, _WIDE):.{max(places + exponent, 0)}f}"


def _unit(exponent: int, unit: str, typography: Typography) -> str:
    prefix = _PREFIXES[exponent].replace("µ", typography.micro) if exponent else ""
    symbol = prefix + unit.replace("Ω", typography.ohm)
    return typography.space + symbol if symbol else ""


def _assemble(number: Decimal, doubt: str, unit: str, *, places: int, exponent: int, typography: Typography) -> str:
    text = _fixed(number, places, exponent).replace("-", typography.minus) + doubt
    if exponent in _PREFIXES:
        return text + _unit(exponent, unit, typography)
    return (f"({text})" if doubt else text) + f"e{exponent}" + _unit(0, unit, typography)
