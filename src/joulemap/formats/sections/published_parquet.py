"""What a published scoring rule needs, as one Parquet file: its numbers bit for bit, its facts in the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.parquet import open_parquet, read_metadata, write_parquet
from joulemap.records.published import EnergyrunnerRun, EnergyrunnerTrial, EnergyrunnerTrials, MlperfRun, PublishedRun

__all__ = ["SCHEMA", "VERSION", "read_published", "write_published"]

SCHEMA = "joulemap.published"
VERSION = 1
_KEY = "joulemap.published"


def write_published(path: Path, run: PublishedRun) -> None:
    """Writes the run."""
    import pyarrow as pa  # noqa: PLC0415  0.2 s that only files should cost

    columns, head = _columns(run)
    write_parquet(path, pa.table(columns), metadata={_KEY: head}, encodings={})


def read_published(path: Path) -> PublishedRun:
    """Returns the run.

    Raises:
        FormatError: the file is damaged or holds no such run (``parquet-damaged``, ``published-damaged``).
    """
    head, columns = open_parquet(path, _read)
    try:
        return _build(head, columns)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FormatError(
            f"{path}: holds no run of a published rule: {error}",
            hint="take the bundle again from where it was made",
            slug="published-damaged",
        ) from error


def _columns(run: PublishedRun) -> tuple[dict[str, Any], dict[str, object]]:
    if isinstance(run, MlperfRun):
        facts = ("begin_ns", "end_ns", "scenario", "queries", "samples_per_query")
        head = {"kind": "mlperf"} | {name: getattr(run, name) for name in facts}
        return {"time_ns": run.time_ns, "power_w": run.power_w}, head
    if isinstance(run, EnergyrunnerRun):
        head = {
            "kind": "energyrunner",
            "rate_hz": run.rate_hz,
            "stamps_s": list(run.stamps_s),
            "iterations": run.iterations,
        }
        return {"energy_uj": run.energy_uj}, head
    energy_j = np.concatenate([trial.energy_j for trial in run.trials]) if run.trials else np.empty(0)
    trials = [[trial.energy_j.size, trial.begin, trial.end, trial.iterations] for trial in run.trials]
    return {"energy_j": energy_j}, {"kind": "energyrunner-json", "rate_hz": run.rate_hz, "trials": trials}


def _build(head: Any, columns: dict[str, Any]) -> PublishedRun:
    if head["kind"] == "mlperf":
        return MlperfRun(
            time_ns=np.array(columns["time_ns"], np.int64),
            power_w=np.array(columns["power_w"], np.float64),
            begin_ns=int(head["begin_ns"]),
            end_ns=int(head["end_ns"]),
            scenario=str(head["scenario"]),
            queries=head["queries"],
            samples_per_query=head["samples_per_query"],
        )
    if head["kind"] == "energyrunner":
        return EnergyrunnerRun(
            energy_uj=np.array(columns["energy_uj"], np.float32),
            rate_hz=float(head["rate_hz"]),
            stamps_s=tuple(float(stamp) for stamp in head["stamps_s"]),
            iterations=head["iterations"],
        )
    if head["kind"] != "energyrunner-json":
        raise ValueError(f"no rule is called {head['kind']!r}")
    trials, at = [], 0
    for size, begin, end, iterations in head["trials"]:
        samples = np.array(columns["energy_j"][at : at + size], np.float64)
        if samples.size != size:
            raise ValueError("it holds fewer samples than its trials say")
        trials.append(EnergyrunnerTrial(energy_j=samples, begin=begin, end=end, iterations=iterations))
        at += size
    return EnergyrunnerTrials(trials=tuple(trials), rate_hz=float(head["rate_hz"]))


def _read(file: Any) -> tuple[Any, dict[str, Any]]:
    table = file.read()
    return read_metadata(file, _KEY), {name: table.column(name).to_numpy() for name in table.column_names}
