"""Words and numbers of a result as text, in the one way that every output shows them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from joulemap.units import format_bytes, format_count, format_estimate, format_si

__all__ = [
    "DASH",
    "format_cycles",
    "format_macs",
    "format_measured",
    "format_memory",
    "format_quantity",
    "format_share",
    "format_supported",
    "format_time",
    "printable",
    "shorten",
]

DASH = "—"
"""Stands for what is not known; never 0."""


def printable(text: str) -> str:
    """Returns text from a file without what a terminal would obey: control characters become their escapes."""
    return "".join(c if _harmless(c) else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, limit: int = 80) -> str:
    """Returns text of at most ``limit`` characters: what does not fit is left out of its middle, the end stays."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}\u2026{text[len(text) - (limit - 1 - head) :]}"


def _harmless(character: str) -> bool:
    # a thin space is no printable character to Python, and no danger
    return character.isprintable() or unicodedata.category(character) == "Zs"


def format_quantity(quantity: Mapping[str, Any] | None, unit: str) -> str:
    """Returns an estimate of the contract's JSON as text; a dash for one that is unavailable."""
    if quantity is None or quantity.get("value") is None:
        return DASH
    if quantity["expanded"] == 0:  # a count of a model: there is no spread to show
        return format_si(quantity["value"], unit, digits=6)
    return format_estimate(quantity["value"], quantity["expanded"], unit)


def format_measured(quantity: Mapping[str, Any] | None, unit: str) -> str:
    """Returns a measured estimate as text; without any known U four digits stand alone, since more would claim one."""
    if quantity is not None and quantity.get("value") is not None and quantity["expanded"] == 0:
        return format_si(quantity["value"], unit, digits=4)
    return format_quantity(quantity, unit)


def format_supported(value: float, expanded: float, unit: str) -> str:
    """Returns a value with the digits that its U supports, without U itself: ``190.06 µJ`` for 190.06 ± 0.19 µJ."""
    if expanded <= 0:
        return format_si(value, unit, digits=6)
    head, _, tail = format_estimate(value, expanded, unit).partition(" ± ")
    doubt = tail.split("\u2009")[0]
    return f"{head.lstrip('(')}{tail.removeprefix(doubt)}" if ")" not in doubt else format_si(value, unit, digits=2)


def format_cycles(cycles: int | None) -> str:
    """Returns a whole number in groups of three; a dash for None."""
    return DASH if cycles is None else format_count(cycles)


def format_macs(macs: int) -> str:
    """Returns multiply-accumulates with a prefix and three digits, without the unit; a dash for none."""
    return format_si(macs, "MAC", digits=3).removesuffix("MAC").rstrip() if macs else DASH


def format_share(share: float | None, expanded: float | None) -> str:
    """Returns a share as per cent with no more decimals than its uncertainty supports."""
    if share is None:
        return DASH
    if 0 < share < 0.0005:
        return "<0.1\u2009%"
    decimals = 1 if expanded is None or expanded < 0.005 else 0
    return f"{100 * share:.{decimals}f}\u2009%"


def format_memory(size_b: int | None) -> str:
    """Returns a memory size; a dash for None."""
    return DASH if size_b is None else format_bytes(size_b)


def format_time(duration_s: float | None) -> str:
    """Returns a modelled or planned time with four digits; a dash for None."""
    return DASH if duration_s is None else format_si(duration_s, "s", digits=4)
