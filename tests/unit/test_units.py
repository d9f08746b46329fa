"""Parsing and printing of SI quantities: known answers."""

from __future__ import annotations

import math

import pytest

from joulemap.errors import UsageError
from joulemap.units import (
    ASCII,
    PLAIN,
    format_bytes,
    format_count,
    format_duration,
    format_estimate,
    format_percent,
    format_si,
    parse_duration_s,
    parse_rate_hz,
    parse_si,
)


@pytest.mark.parametrize(
    ("value", "expanded", "text"),
    [
        (132.4e-6, 0.6e-6, "132.40 ± 0.60 µJ"),
        (132.4e-6, 5.96e-6, "132.4 ± 6.0 µJ"),
        (9.96, 9.96, "10 ± 10 J"),
        (9.94, 0.994, "9.94 ± 0.99 J"),
        (9.94, 0.996, "9.9 ± 1.0 J"),
        (1e-6, 9.96e-7, "1.0 ± 1.0 µJ"),
        (454, 250, "450 ± 250 J"),
        (0.0, 5e-7, "0 ± 500 nJ"),
        (0.3e-6, 5e-6, "0.3 ± 5.0 µJ"),
        (-3.2e-3, 1e-5, "-3.200 ± 0.010 mJ"),
        (-1e-9, 0.5, "0 ± 500 mJ"),
        (1.25, 0.0, "1.25 ± 0 J"),
        (0.0, 0.0, "0 ± 0 J"),
        (1 / 3, 0.0, "333.333 ± 0 mJ"),
        (999.99996e-6, 1e-8, "1.000000 ± 0.000010 mJ"),
        (1234.5, 1.24, "1.2345 ± 0.0012 kJ"),
        (1e-35, 3e-37, "(1.000 ± 0.030)e-35 J"),
        (1e40, 2e38, "(1.000 ± 0.020)e40 J"),
    ],
)
def test_value_and_uncertainty_share_unit_and_place(value: float, expanded: float, text: str) -> None:
    assert format_estimate(value, expanded, "J", typography=PLAIN) == text


def test_a_thin_space_stands_before_the_unit_unless_told_otherwise() -> None:
    assert format_estimate(132.4e-6, 0.6e-6, "J") == "132.40 ± 0.60\u2009µJ"
    assert format_estimate(132.4e-6, 0.6e-6, "J", typography=ASCII) == "132.40 +- 0.60 uJ"
    assert format_si(4.7e3, "Ω", digits=2, typography=ASCII) == "4.7 kOhm"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(132.44e-6, 4, "132.4 µW"), (999.96, 4, "1.000 kW"), (0.0, 3, "0 W"), (1e6, 1, "1 MW"), (12345, 2, "12 kW")],
)
def test_numbers_without_uncertainty_take_significant_digits(value: float, digits: int, text: str) -> None:
    assert format_si(value, "W", digits=digits, typography=PLAIN) == text


def test_bare_units_take_no_prefix() -> None:
    assert format_si(12345.0, "", digits=5) == "12345"
    assert format_percent(0.312, 0.004, typography=PLAIN) == "31.20 ± 0.40 %"
    assert format_percent(0.00012345, typography=PLAIN) == "0.0123 %"
    assert format_estimate(1234.0, 12.0, "", typography=PLAIN) == "1234 ± 12"


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (1.2e-8, "12.0 ns"),
        (3.14159, "3.14 s"),
        (59.4, "59.4 s"),
        (59.6, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (3599.6, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (360000, "100 h 00 min"),
        (-125, "-2 min 05 s"),
        (0, "0 s"),
    ],
)
def test_durations_from_ns_to_h(duration_s: float, text: str) -> None:
    assert format_duration(duration_s, typography=PLAIN) == text


def test_bytes_and_counts() -> None:
    assert [format_bytes(n, typography=PLAIN) for n in (0, 1023, 1024, 53658, 2 << 20, -2048)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "52.4 KiB",
        "2 MiB",
        "-2 KiB",
    ]
    assert [format_count(n, typography=PLAIN) for n in (0, 1234, 12345, -1234567)] == [
        "0",
        "1234",
        "12 345",
        "-1 234 567",
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_never_printed(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        format_si(value, "J")
    with pytest.raises(ValueError, match="finite"):
        format_estimate(1.0, abs(value), "J")
    with pytest.raises(ValueError, match=">= 0"):
        format_estimate(1.0, -1.0, "J")


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [("50 ms", 0.05), ("2", 2.0), ("1.5min", 90.0), ("1 h", 3600.0), ("3 µs", 3e-6), ("3us", 3e-6), ("0", 0.0)],
)
def test_durations_are_read(text: str, duration_s: float) -> None:
    assert parse_duration_s(text) == duration_s


@pytest.mark.parametrize(
    ("text", "rate_hz"), [("1 MS/s", 1e6), ("10kHz", 1e4), ("1000", 1000.0), ("2.5e3 Hz", 2500.0), ("1_000 S/s", 1e3)]
)
def test_rates_are_read(text: str, rate_hz: float) -> None:
    assert parse_rate_hz(text) == rate_hz


@pytest.mark.parametrize(
    "text", ["", "ms", "5 m", "5 J", "1 2", "nan", "inf", "5 Ms s", "-1 s", "1e999", "0x10", "५ s"]
)
def test_junk_is_a_usage_error_with_the_fix(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration_s(text)
    assert (caught.value.slug, caught.value.exit_code) == ("bad-quantity", 2)
    assert "50 ms" in caught.value.hint or "1.5" in caught.value.hint


@pytest.mark.parametrize("text", ["0 Hz", "-5 kHz", "5 mHz Hz", "5 s", "fast"])
def test_a_rate_is_above_zero(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rate_hz(text)
    assert caught.value.slug == "bad-quantity"


def test_a_prefix_is_never_guessed_from_its_case() -> None:
    assert parse_si("1 MW", "W") == 1e6
    assert parse_si("1 mW", "W") == 1e-3
    with pytest.raises(UsageError):
        parse_si("1 KW", "W")
    assert parse_si("0.1 µJ", "J") == 1e-7
    assert parse_si("5", "") == 5
