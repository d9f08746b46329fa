"""The rows of a map as a table for other tools: unrounded, what is refused empty, with its reason."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

__all__ = ["write_table_csv", "write_table_parquet"]

_TABLE = ("key", "count", "duration_s", "self_s", "energy_j", "energy_expanded_j", "self_j", "self_expanded_j", "share",
          "mean_power_w", "resolution", "reason", "runs_needed",
          "provenance")  # fmt: skip


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    energy, own = row["energy_j"], row["self_j"]
    return {
        **{key: row[key] for key in _TABLE if key in row},
        "energy_j": energy["value"],
        "energy_expanded_j": energy.get("expanded"),
        "self_j": own["value"],
        "self_expanded_j": own.get("expanded"),
        "mean_power_w": row["mean_power_w"]["value"],
        "provenance": energy.get("provenance", "unavailable"),
    }


def write_table_csv(file: IO[bytes], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the rows of a map as CSV; what is refused is empty, with its reason."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(_TABLE)
        for row in map(_flat, rows):
            writer.writerow(["" if row[key] is None else row[key] for key in _TABLE])
        text.seek(0)
        file.write(text.read().encode())


def write_table_parquet(file: IO[bytes], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the same as Parquet; what is refused is null, with its reason."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost
    import pyarrow.parquet as pq  # noqa: PLC0415  as above

    words = ("key", "resolution", "reason", "provenance")
    kinds = [(key, pa.string() if key in words else pa.int64() if key == "count" else pa.float64()) for key in _TABLE]
    table = pa.Table.from_pylist([_flat(row) for row in rows], schema=pa.schema(kinds))
    pq.write_table(table, file, compression="zstd")
