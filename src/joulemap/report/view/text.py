"""Words and numbers of a result as text, in the one way that every output shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joulemap.units import format_estimate, format_si

__all__ = ["format_bytes", "format_count", "format_quantity", "format_share", "printable"]


def printable(text: str) -> str:
    """Returns text from a file without what a terminal would obey: control characters become their escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_quantity(quantity: Mapping[str, Any] | None, unit: str) -> str:
    """Returns an estimate of the contract's JSON as text; one that is unavailable is a dash, never 0."""
    if quantity is None or quantity.get("value") is None:
        return "—"
    return format_estimate(quantity["value"], quantity["expanded"], unit)


def format_count(value: int | None) -> str:
    """Returns a whole number in groups of three; a dash for None."""
    return "—" if value is None else f"{value:,}".replace(",", "\u2009")


def format_share(share: float | None, expanded: float | None) -> str:
    """Returns a share as per cent with no more decimals than its uncertainty supports."""
    if share is None:
        return "—"
    percent = 100 * share
    decimals = 1 if expanded is None or 100 * expanded < 0.5 else 0
    return f"{percent:.{decimals}f}\u2009%"


def format_bytes(size_b: int | None) -> str:
    """Returns a memory size in KiB or MiB with three digits or so; a dash for None."""
    if size_b is None:
        return "—"
    if size_b < 1024:
        return f"{size_b}\u2009B"
    size, unit = (size_b / 1024, "KiB") if size_b < 1 << 20 else (size_b / (1 << 20), "MiB")
    return f"{size:.1f}\u2009{unit}" if size < 100 else f"{size:.0f}\u2009{unit}"


def format_time(duration_s: float | None) -> str:
    """Returns a modelled or planned time with four digits; a dash for None."""
    return "—" if duration_s is None else format_si(duration_s, "s", digits=4)
