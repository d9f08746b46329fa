"""Damaged Arrow data as our own errors, for every reader that goes through pyarrow."""

from __future__ import annotations

from pathlib import Path

from joulemap.errors import FormatError

__all__ = ["arrow_failures", "damaged_table"]


def arrow_failures() -> tuple[type[Exception], ...]:
    """Returns what pyarrow raises on damaged files."""
    import pyarrow as pa  # noqa: PLC0415  # loaded when a table is read

    return (pa.ArrowException, OSError, ValueError, OverflowError, RuntimeError, KeyError, TypeError)


def damaged_table(path: Path, error: Exception) -> FormatError:
    """Returns the error of a table that cannot be read."""
    return FormatError(
        f"{path.name}: the table is damaged ({type(error).__name__}: {str(error)[:200]})",
        hint="Write it again.",
        slug="table-damaged",
    )
