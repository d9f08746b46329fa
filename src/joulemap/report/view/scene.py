"""What the map of a report shows, as records: one time axis, tracks, lanes of slices, bands, a level, excerpts.

Nothing here knows where the numbers came from: a profile's bundle, a recording or a benchmark fills the same records.
Instants are seconds from the start of the scene. NaN in an envelope means that nothing was seen there, never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Band",
    "Excerpt",
    "Level",
    "Mark",
    "Origin",
    "PowerUncertainty",
    "Scene",
    "SliceName",
    "SliceTable",
    "Track",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerUncertainty:
    """Declared limits of a power track, from which the page says U of any window. All standard uncertainties.

    A window of energy E and length T has u² = (gain E)² + (clock E)² + (offset T)² + noise² T / rate.

    Args:
        gain_std: relative.
        clock_std: relative, of the rate of the clock.
        offset_std_w: W.
        noise_std_w: of one sample, W.
        rate_hz: of the samples, Hz.

    References:
        JCGM 100:2008, 5.1.2 (combined standard uncertainty of uncorrelated inputs).
    """

    gain_std: float
    clock_std: float
    offset_std_w: float
    noise_std_w: float
    rate_hz: float

    def __post_init__(self) -> None:
        limits = (self.gain_std, self.clock_std, self.offset_std_w, self.noise_std_w)
        if not all(limit >= 0 for limit in limits) or not self.rate_hz > 0:
            raise ValueError(f"declared limits must be >= 0 and the rate > 0, got {self}")

    def window_std_j(self, energy_j: float, duration_s: float) -> float:
        """Returns the standard uncertainty of a window's energy, J."""
        return math.hypot(
            energy_j * self.gain_std,
            energy_j * self.clock_std,
            duration_s * self.offset_std_w,
            self.noise_std_w * math.sqrt(duration_s / self.rate_hz),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """One quantity over the whole scene, in bins of one length.

    Args:
        name: shown at its left.
        unit: SI unit, ``1`` for a share.
        low: (b,) lowest value of each bin.
        high: (b,) highest value.
        mean: (b,) mean over the covered time.
        uncertainty: for power alone; None when nothing is declared.
        spread: what low and high are: extremes, or the band of repeats in a fold.
        note: a line for the tooltip; empty for none.
    """

    name: str
    unit: str
    low: Floats
    high: Floats
    mean: Floats
    uncertainty: PowerUncertainty | None = None
    spread: str = "min and max"
    note: str = ""

    def __post_init__(self) -> None:
        if self.low.ndim != 1 or not self.low.size or not self.low.shape == self.high.shape == self.mean.shape:
            raise ValueError(f"track {self.name}: low, high and mean must be (b,) arrays of one length")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excerpt:
    """A window in finer bins than the scene's; raw samples when low, high and mean are one array.

    Args:
        label: why it is here; empty for the window that the page opens on.
        track: index of its track.
        start_s: of its first bin.
        step_s: length of a bin, s.
        low: (m,) as in :class:`Track`.
        high: (m,).
        mean: (m,).
    """

    label: str
    track: int
    start_s: float
    step_s: float
    low: Floats
    high: Floats
    mean: Floats

    @property
    def raw(self) -> bool:
        """True when every bin is one sample."""
        return self.low is self.mean and self.high is self.mean

    @property
    def end_s(self) -> float:
        """End of the last bin."""
        return self.start_s + self.mean.size * self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceName:
    """What slices of one name are.

    Args:
        name: as shown.
        op: kind of operation; empty for what is none.
        color: index into the palette of the page.
        facts: lines for the tooltip, ready to print: the very texts of the hotspot table.
        no_energy: why one slice of the name has no energy of its own; empty when it was not wholly recorded.
    """

    name: str
    op: str
    color: int
    facts: tuple[str, ...] = ()
    no_energy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceTable:
    """Slices in order of their start.

    Args:
        start_s: (n,).
        duration_s: (n,).
        energy_j: (n,) J of the first track inside the slice; NaN when it was not wholly seen.
        name_index: (n,) into ``names``.
        lane_index: (n,) into ``lanes``.
        names: distinct names.
        lanes: lanes from top to bottom.
        expanded_j: (n,) U of the energy, J; None to have it from the limits of the first track.
    """

    start_s: Floats
    duration_s: Floats
    energy_j: Floats
    name_index: NDArray[np.int32]
    lane_index: NDArray[np.int32]
    names: tuple[SliceName, ...]
    lanes: tuple[str, ...]
    expanded_j: Floats | None = None

    def __len__(self) -> int:
        return int(self.start_s.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A shaded stretch of the map, for example GATE."""

    label: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An instant of the map, for example an edge of READY."""

    label: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What 0 of the time axis is.

    Args:
        label: for a person, for example ``0 = 2022-01-14 19:21:50.123 UTC``.
        utc_ns: the instant, ns UTC, when the clock says that; None for any other clock.
    """

    label: str
    utc_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A dashed line across the first track, for example the idle power."""

    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """One map.

    Args:
        label: what the time axis holds, in a few words.
        span_s: length, s.
        tracks: first the one that the slices are charged to.
        slices: what happened when.
        bands: shaded.
        level: dashed; None for none.
        excerpts: finer windows.
        open_s: window to open on.
        period_s: of a periodic run; None for one that is not.
        marks: instants.
        origin: what 0 is; None when that says nothing.
    """

    label: str
    span_s: float
    tracks: tuple[Track, ...]
    slices: SliceTable
    bands: tuple[Band, ...]
    level: Level | None
    excerpts: tuple[Excerpt, ...]
    open_s: tuple[float, float]
    period_s: float | None
    marks: tuple[Mark, ...] = ()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not (self.tracks and math.isfinite(self.span_s) and self.span_s > 0):
            raise ValueError("a scene needs a track and a length")
        if len({track.mean.size for track in self.tracks}) != 1:
            raise ValueError("the tracks of a scene must have one number of bins")
