"""Numbers, units, time stamps, counters and repeats."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulemap.formats.ground.values import (
    UnitKind,
    decimal_ns,
    difference_counter,
    header_unit,
    is_missing,
    parse_clock_time,
    parse_number,
    parse_stamp,
    parse_unit,
    widen,
)


@pytest.mark.parametrize(
    "text",
    ["", " ", "-", "--", "N/A", "n/a", "[N/A]", "[Not Supported]", "nan", "NaN", "null", "None", "<not counted>",
     "<not supported>", "unavailable", "N/A (Secondary die)", "[Unknown Error]"],
)  # fmt: skip
def test_missing_is_not_a_number_and_never_zero(text: str) -> None:
    assert is_missing(text)
    assert math.isnan(parse_number(text))


@pytest.mark.parametrize("text", ["1_000", "١٢", "0x10", "12 W", "1,5", "1.2.3", "--5", "half"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the float parser's own words
        parse_number(text)


def test_a_decimal_comma_is_read_where_the_table_has_one() -> None:
    assert parse_number("1,5", ",") == 1.5
    assert parse_number("1.234,5", ",") == 1234.5
    assert parse_number("1.5", ",") == 1.5


@pytest.mark.parametrize(
    ("text", "kind", "factor"),
    [
        ("mA", UnitKind.CURRENT, 1e-3), ("µA", UnitKind.CURRENT, 1e-6), ("uA", UnitKind.CURRENT, 1e-6),
        ("nA", UnitKind.CURRENT, 1e-9), ("mW", UnitKind.POWER, 1e-3), ("W", UnitKind.POWER, 1.0),
        ("MW", UnitKind.POWER, 1e6), ("kWh", UnitKind.ENERGY, 3.6e6), ("mJ", UnitKind.ENERGY, 1e-3),
        ("uWs", UnitKind.ENERGY, 1e-6), ("mV", UnitKind.VOLTAGE, 1e-3), ("V DC", UnitKind.VOLTAGE, 1.0),
        ("Volt", UnitKind.VOLTAGE, 1.0), ("milliseconds", UnitKind.TIME, 1e-3), ("us", UnitKind.TIME, 1e-6),
        ("kHz", UnitKind.FREQUENCY, 1e3), ("%", UnitKind.SHARE, 0.01), ("(ms)", UnitKind.TIME, 1e-3),
        ("mAh", UnitKind.CHARGE, 3.6), ("°C", UnitKind.TEMPERATURE, 1.0),
    ],
)  # fmt: skip
def test_units_are_known_by_symbol_and_word(text: str, kind: UnitKind, factor: float) -> None:
    unit = parse_unit(text)
    assert unit.kind is kind
    assert unit.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize("text", ["", "furlong", "mm", "AA", "WW"])
def test_an_unknown_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown unit"):
        parse_unit(text)


def test_a_header_tells_its_unit_in_brackets() -> None:
    name, unit = header_unit("Main Avg Current (mA)")
    assert name == "Main Avg Current"
    assert unit is not None
    assert unit.factor == 1e-3
    assert header_unit("Time [s]")[0] == "Time"
    assert header_unit("rail (main)") == ("rail (main)", None)
    assert header_unit("plain") == ("plain", None)


@pytest.mark.parametrize(
    ("text", "iso", "offset_s"),
    [
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456789", 0),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05", None),
        ("2024/10/30 18:42:33.189", "2024-10-30T18:42:33.189", None),
        ("02-17-2022 13:17:14.749", "2022-02-17T13:17:14.749", None),
        ("2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05", 3600),
        ("2026-01-02T03:04:05.5-0730", "2026-01-02T03:04:05.5", -27000),
        ("2026-01-02 03:04:05 UTC", "2026-01-02T03:04:05", 0),
        ("2026-01-02:03:04:05.0000", "2026-01-02T03:04:05", None),
        ("20260102T030405.50Z", "2026-01-02T03:04:05.5", 0),
        ("20260102T030405", "2026-01-02T03:04:05", None),
    ],
)
def test_stamps_are_read_to_the_nanosecond_and_keep_their_zone(text: str, iso: str, offset_s: int | None) -> None:
    stamp = parse_stamp(text)
    assert stamp.ns == int(np.datetime64(iso, "ns").astype(np.int64))
    assert stamp.offset_s == offset_s
    if offset_s is None:
        with pytest.raises(ValueError, match="zone"):
            _ = stamp.utc_ns
    else:
        assert stamp.utc_ns == stamp.ns - offset_s * 10**9


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01 00:00:00", "2026-02-30 00:00:00", "2026-01-02 24:00:00", "2026-01-02 03:04",
     "9999-01-01 00:00:00", "02-17-2022T13-17-14", "2026-01-02 03:04:xx"],
)  # fmt: skip
def test_what_is_no_stamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # several causes, each with its own words
        parse_stamp(text)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))  # noqa: DTZ001  # a calendar reading without a zone
def test_every_stamp_of_the_calendar_agrees_with_the_standard_library(moment: datetime) -> None:
    elapsed = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert parse_stamp(moment.strftime("%m-%d-%Y %H:%M:%S.%f")).ns == elapsed // timedelta(microseconds=1) * 1000
    assert (
        parse_stamp(moment.isoformat(sep=" ", timespec="microseconds")).ns
        == elapsed // timedelta(microseconds=1) * 1000
    )


def test_a_time_of_day_may_have_a_colon_before_its_milliseconds() -> None:
    assert parse_clock_time("12:00:00:100") == 43_200_100_000_000
    assert parse_clock_time("23:59:59.5") == 86_399_500_000_000
    with pytest.raises(ValueError, match="time of day"):
        parse_clock_time("25:00:00")


@pytest.mark.parametrize(
    ("text", "unit_ns", "ns"),
    [
        ("1767323045.123456789", 10**9, 1767323045123456789),
        ("0.07", 10**6, 70_000),
        ("-0.001000000", 10**9, -1_000_000),
        (".5", 10**9, 500_000_000),
        ("9.999999999999999547e-07", 10**9, 1000),
        ("1695835542481129", 1000, 1695835542481129000),
        ("-1.0000E-03", 10**9, -1_000_000),
    ],
)
def test_decimal_times_are_exact(text: str, unit_ns: int, ns: int) -> None:
    assert decimal_ns(text, unit_ns) == ns


@given(st.integers(-(10**18), 10**18))
def test_every_nanosecond_survives_its_decimal_form(ns: int) -> None:
    whole, rest = divmod(abs(ns), 10**9)
    assert decimal_ns(f"{'-' if ns < 0 else ''}{whole}.{rest:09d}") == ns


@pytest.mark.parametrize("text", ["", "nan", "inf", "N/A", "1e30", "9" * 30, "1_0.5"])
def test_an_impossible_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # several causes
        decimal_ns(text)


def test_a_wrapped_counter_gets_its_modulus() -> None:
    # a package counter whose range is 262143328850 uJ, and the unit that the range leaves out (61 uJ)
    steps = difference_counter(np.array([262143000000, 1000000], np.int64), modulus=262143328850 + 61)
    assert steps.delta.tolist() == [1328911.0]
    assert steps.wrapped.tolist() == [True]
    assert not steps.lost.any()


def test_a_fall_without_a_known_modulus_is_lost_and_never_negative() -> None:
    steps = difference_counter(np.array([4000000000, 10000, 20000], np.int64))
    assert steps.lost.tolist() == [True, False]
    assert steps.delta.tolist() == [0.0, 10000.0]


def test_a_step_beyond_the_physical_limit_is_lost() -> None:
    steps = difference_counter(np.array([0.0, 5.0, 300_005.0]), largest=1000.0)
    assert steps.lost.tolist() == [False, True]


def test_a_missing_reading_loses_both_its_steps() -> None:
    steps = difference_counter(np.array([1.0, math.nan, 3.0, 4.0]))
    assert steps.lost.tolist() == [True, True, False]


def test_a_big_counter_is_differenced_exactly() -> None:
    steps = difference_counter(np.array([2**62, 2**62 + 1], np.int64))
    assert steps.delta.tolist() == [1.0]
    assert difference_counter(np.array([1])).delta.size == 0


def test_a_signalling_nan_is_missing_and_no_fault() -> None:
    raw = np.frombuffer(b"\x01\x00\x80\x7f", "<f4")
    assert math.isnan(widen(raw)[0])
