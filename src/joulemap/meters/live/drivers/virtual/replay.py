"""A recording played again against the clock: what an earlier meter read, as if it were read now.

Takes a CSV file with a column ``time_s`` and a column ``power_w`` (or ``energy_j``, cumulative), or a trace of a bundle
of joulemap. Replayed power is marked as simulated: nothing is measured now.
"""

from __future__ import annotations

import csv
import json
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.meters.live.ground.losses import lost_meter, refused_meter, try_meter
from joulemap.meters.live.ground.options import check_options, choose_option, number_option
from joulemap.records.live.domain import DomainReading, LiveDomain, MeterAddress, MeterCandidate

__all__ = ["EXAMPLE", "SUMMARY", "ReplayMeter", "build_meter", "discover_meters"]

SUMMARY = "a CSV file or a trace of a bundle, played again against the clock (simulated, never measured)"
EXAMPLE = "replay:file=power.csv"
_NAME = "replay"
_OPTIONS = ("file", "trace", "loop", "speed", "boundary")
_LIMIT_ROWS = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Track:
    """What is played: ends of intervals from the start, s, mean power of each, W, and energy up to each end, J."""

    name: str
    end_s: list[float]
    power_w: list[float]
    energy_j: list[float]


def discover_meters(options: Mapping[str, str] | None) -> tuple[MeterCandidate, ...]:
    """Returns the recording that was named; nothing when none was.

    Raises:
        UsageError: an option is wrong or ``file`` is missing (``meter-option``).
    """
    if options is None:
        return ()
    return (try_meter(build_meter(MeterAddress(driver=_NAME, options=options))),)


def build_meter(address: MeterAddress) -> ReplayMeter:
    """Returns the meter of a recording, not yet opened.

    Raises:
        UsageError: an option is wrong or ``file`` is missing (``meter-option``).
    """
    return ReplayMeter(address)


class ReplayMeter:
    """Plays one recording; its counter is the energy that was recorded up to the moment.

    Args:
        address: ``file``, a CSV file or a bundle; ``trace`` of the bundle (default: its first); ``loop`` (no, yes);
            ``speed`` (1); ``boundary`` of the power.
        now_ns: the clock.

    Raises:
        UsageError: an option is wrong or ``file`` is missing (``meter-option``).
    """

    def __init__(self, address: MeterAddress, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        check_options(address, _OPTIONS)
        if not address.options.get("file"):
            raise UsageError(f"meter {_NAME} needs a file", hint=f"write {EXAMPLE}", slug="meter-option")
        self._address = address
        self._now_ns = now_ns
        self._path = Path(address.options["file"])
        self._loop = choose_option(address, "loop", ("no", "yes")) == "yes"
        self._speed = number_option(address, "speed", 1.0, exclusive=True)
        self._boundary = Boundary(choose_option(address, "boundary", tuple(Boundary)))
        self._track: _Track | None = None
        self._start_ns = 0
        self.name = f"{_NAME}:{self._path.stem}"

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """Energy so far, and power inside it; empty before ``open``."""
        if self._track is None:
            return ()
        steps = np.diff(self._track.end_s)
        period_s = float(np.median(steps)) / self._speed if steps.size else None
        energy = self._describe(self._track.name, DomainReading.ENERGY_COUNTER, None)
        return energy, self._describe(f"{self._track.name} power", DomainReading.POWER, period_s, (self._track.name,))

    def open(self) -> None:
        """Reads the recording and starts it; no effect when it plays.

        Raises:
            SetupError: the file cannot be read, or holds no power (``meter-unusable``).
        """
        if self._track is not None:
            return
        try:
            track = self._load()
        except (OSError, ValueError, LookupError, TypeError, csv.Error) as error:
            raise refused_meter(self.name, f"{self._path} cannot be played ({error})", _FIX) from error
        self._track, self._start_ns = track, self._now_ns()

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes energy so far, J, and the power of the interval that ended last, W.

        Raises:
            PowerError: the recording is over (``meter-lost``).
        """
        if self._track is None:
            raise lost_meter(self.name, "it is not open")
        at_s = (self._now_ns() - self._start_ns) * 1e-9 * self._speed
        length_s, whole_j = self._track.end_s[-1], self._track.energy_j[-1]
        if at_s > length_s and not self._loop:
            raise lost_meter(self.name, "the recording is over")
        rounds = int(at_s // length_s) if self._loop else 0
        at_s -= rounds * length_s
        after = bisect_right(self._track.end_s, at_s)
        begin_s = self._track.end_s[after - 1] if after else 0.0
        begin_j = self._track.energy_j[after - 1] if after else 0.0
        last = max(after - 1, 0)
        now_w = self._track.power_w[min(after, len(self._track.power_w) - 1)]
        raw[0] = math.nan if math.isnan(now_w) else rounds * whole_j + begin_j + now_w * (at_s - begin_s)
        raw[1] = self._track.power_w[last]

    def close(self) -> None:
        """Lets the recording go; idempotent."""
        self._track = None

    def _load(self) -> _Track:
        if self._path.is_dir():
            return _read_bundle(self._path, self._address.options.get("trace"))
        return _read_csv(self._path)

    def _describe(
        self, name: str, reading: DomainReading, window_s: float | None, inside: tuple[str, ...] = ()
    ) -> LiveDomain:
        return LiveDomain(
            name=name,
            reading=reading,
            unit="J" if reading is DomainReading.ENERGY_COUNTER else "W",
            scale=1.0,
            provenance=Provenance.SIMULATED,
            boundary=self._boundary,
            update_period_s=window_s,
            window_s=window_s,
            inside=inside,
            source=f"replay of {self._path.name}",
        )


_FIX = "give a CSV file with the columns time_s and power_w, or a bundle with traces"


def _read_csv(path: Path) -> _Track:
    times: list[float] = []
    values: list[float] = []
    if path.exists() and not path.is_file():  # a device or a pipe may never end
        raise ValueError("it is no regular file")
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        columns = rows.fieldnames or ()
        column = next((name for name in ("power_w", "energy_j") if name in columns), None)
        if column is None or "time_s" not in columns:
            raise ValueError("it needs the columns time_s and power_w or energy_j")
        for row in rows:
            times.append(float(row["time_s"]))
            values.append(float(row[column] or "nan"))
            if len(times) > _LIMIT_ROWS:
                raise ValueError(f"it has more than {_LIMIT_ROWS} rows")
    end_s = np.asarray(times) - (times[0] if times else 0.0)
    value = np.asarray(values)
    steps_s = np.diff(end_s)
    power_w = np.diff(value) / np.where(steps_s > 0, steps_s, np.nan) if column == "energy_j" else value[1:]
    return _track(path.stem, end_s[1:], steps_s, power_w)


def _read_bundle(path: Path, trace: str | None) -> _Track:
    import pyarrow.parquet  # noqa: PLC0415  0.2 s that only a replayed bundle should cost

    names = sorted(file.name.removesuffix(".parquet") for file in (path / "traces").glob("*.parquet"))
    if not names or (trace is not None and trace not in names):
        raise ValueError(f"its traces are {', '.join(names) or 'none'}")
    name = trace or names[0]
    facts: Any = json.loads((path / "traces" / f"{name}.json").read_text("utf-8"))
    table = pyarrow.parquet.read_table(path / "traces" / f"{name}.parquet")
    power_w = np.array(table.column("power_w").to_numpy(), np.float64)
    for first, last in facts.get("gaps") or []:
        power_w[int(first) : int(last)] = np.nan
    if facts.get("period_s") is not None:
        steps_s = np.full(power_w.size, float(facts["period_s"]))
    else:
        starts = table.column("start_ns").to_numpy()
        steps_s = np.diff(np.append(starts, int(facts["end_ns"]))) * 1e-9
    return _track(name, np.cumsum(steps_s), steps_s, power_w)


def _track(name: str, end_s: NDArray[Any], steps_s: NDArray[Any], power_w: NDArray[Any]) -> _Track:
    if not power_w.size or not np.isfinite(end_s).all() or bool(np.any(steps_s <= 0)):
        raise ValueError("its times must rise, and there must be two of them")
    missing = ~np.isfinite(power_w)
    energy_j = np.cumsum(np.where(missing, 0.0, power_w) * steps_s)
    # the counter falls at every gap, so that nobody takes the time of the gap for time without energy
    energy_j -= (np.diff(missing.astype(np.int8), prepend=0) == 1).cumsum() * (energy_j[-1] + 1.0)
    return _Track(name=name, end_s=end_s.tolist(), power_w=power_w.tolist(), energy_j=energy_j.tolist())
