"""What is printed can be read back, and never claims more than U supports."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from joulemap.units import PLAIN, format_estimate, format_si, parse_si

magnitudes = st.floats(min_value=1e-29, max_value=9e31)
values = st.one_of(magnitudes, magnitudes.map(lambda x: -x), st.just(0.0))
_TEXT = re.compile(r"(\(?)(-?[\d.]+) ± ([\d.]+)\)?(?:e(-?\d+))? ?([^\d\s]*)J")


def read_back(text: str) -> tuple[Decimal, Decimal, str, str]:
    match = _TEXT.fullmatch(text)
    assert match is not None, text
    scale = Decimal(str(parse_si(f"1 {match[5]}J", "J"))).scaleb(int(match[4] or 0))
    return Decimal(match[2]) * scale, Decimal(match[3]) * scale, match[2], match[3]


@given(value=values, expanded=magnitudes)
@example(value=0.0, expanded=9.96)
@example(value=9.995e-4, expanded=9.95e-6)
@example(value=1e31, expanded=1e-29)
def test_printed_estimates_are_the_numbers_rounded_to_two_digits_of_u(value: float, expanded: float) -> None:
    shown, doubt, value_text, doubt_text = read_back(format_estimate(value, expanded, "J", typography=PLAIN))
    exact = Decimal(repr(expanded))
    assert abs(doubt - exact) <= exact * Decimal("0.0500001")
    # the value is off by at most half a unit of U's last place
    place = Decimal(1).scaleb(exact.adjusted() - 1)
    assert abs(shown - Decimal(repr(value))) <= place * 5 + Decimal(repr(value)).copy_abs() * Decimal("1e-15")
    assert value_text.partition(".")[2].__len__() == doubt_text.partition(".")[2].__len__() or "." not in doubt_text
    significant = doubt_text.replace(".", "").lstrip("0")
    assert len(significant.rstrip("0")) <= 2


@given(value=values, digits=st.integers(1, 12))
def test_printed_numbers_read_back_to_their_digits(value: float, digits: int) -> None:
    text = format_si(value, "W", digits=digits, typography=PLAIN)
    if "e" in text:
        return
    back = parse_si(text, "W")
    assert math.isclose(back, value, rel_tol=0.5000001 * 10.0 ** (1 - digits) + 1e-15)
    mantissa = re.match(r"-?([\d.]+)", text)
    assert mantissa is not None
    assert value == 0 or 1 <= float(mantissa[1]) < 1000


@given(
    value=st.floats(allow_nan=False, allow_infinity=False), expanded=st.floats(0, allow_nan=False, allow_infinity=False)
)
def test_every_pair_of_finite_floats_can_be_printed(value: float, expanded: float) -> None:
    text = format_estimate(value, expanded, "J")
    assert "±" in text
    assert not text.startswith("-0 ")
