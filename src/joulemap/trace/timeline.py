"""What happened when: slices of named work on a clock, held as columns so that a million of them stay cheap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.clock import Clock

__all__ = ["Slice", "Timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One piece of work: the half-open interval [start_ns, end_ns) on its timeline's clock.

    Args:
        name: what ran, for example ``CONV_2D #3``.
        start_ns: first instant, ns.
        end_ns: first instant after it, ns, >= start_ns.
        track: where it ran; slices of one track nest.
        kind: ``run``, ``inference``, ``layer``, ``operator``, ``kernel`` or another word of the source.
    """

    name: str
    start_ns: int
    end_ns: int
    track: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise ValueError(f"slice {self.name!r} ends before it starts ({self.start_ns}..{self.end_ns} ns)")


def _column(values: NDArray[np.integer[Any]], dtype: type[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    if isinstance(values, np.ndarray) and values.dtype == dtype and not values.flags.writeable:
        return values  # handed over for good: ten million slices are not copied
    array: NDArray[np.integer[Any]] = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """Slices as read-only columns.

    Args:
        clock: the clock of start_ns and end_ns.
        start_ns: (n,) ns.
        end_ns: (n,) ns, each >= its start.
        name_index: (n,) index into ``names``.
        names: distinct slice names.
        track_index: (n,) index into ``tracks``.
        tracks: distinct track names.
        kind_index: (n,) index into ``kinds``.
        kinds: distinct kinds.
    """

    clock: Clock
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name_index: NDArray[np.int32]
    names: tuple[str, ...]
    track_index: NDArray[np.int32]
    tracks: tuple[str, ...]
    kind_index: NDArray[np.int32]
    kinds: tuple[str, ...]

    def __post_init__(self) -> None:
        for field, dtype in (
            ("start_ns", np.int64),
            ("end_ns", np.int64),
            ("name_index", np.int32),
            ("track_index", np.int32),
            ("kind_index", np.int32),
        ):
            object.__setattr__(self, field, _column(getattr(self, field), dtype))
        n = self.start_ns.size
        columns = (self.end_ns, self.name_index, self.track_index, self.kind_index)
        if self.start_ns.ndim != 1 or any(column.shape != (n,) for column in columns):
            raise ValueError("the columns of a timeline must be one-dimensional and of one length")
        if n and bool(np.any(self.end_ns < self.start_ns)):
            row = int(np.argmax(self.end_ns < self.start_ns))
            raise ValueError(f"timeline row {row} ends before it starts")
        for index, table, what in (
            (self.name_index, self.names, "name"),
            (self.track_index, self.tracks, "track"),
            (self.kind_index, self.kinds, "kind"),
        ):
            if n and (int(index.min()) < 0 or int(index.max()) >= len(table)):
                raise ValueError(f"a {what} index of the timeline points outside its table of {len(table)}")

    def __len__(self) -> int:
        return int(self.start_ns.size)

    def __iter__(self) -> Iterator[Slice]:
        for row in range(len(self)):
            yield Slice(
                name=self.names[self.name_index[row]],
                start_ns=int(self.start_ns[row]),
                end_ns=int(self.end_ns[row]),
                track=self.tracks[self.track_index[row]],
                kind=self.kinds[self.kind_index[row]],
            )

    @classmethod
    def from_slices(cls, clock: Clock, slices: Sequence[Slice]) -> Timeline:
        """Returns the timeline of the slices, in their order."""
        names = {name: k for k, name in enumerate(dict.fromkeys(s.name for s in slices))}
        tracks = {track: k for k, track in enumerate(dict.fromkeys(s.track for s in slices))}
        kinds = {kind: k for k, kind in enumerate(dict.fromkeys(s.kind for s in slices))}
        return cls(
            clock=clock,
            start_ns=np.array([s.start_ns for s in slices], np.int64),
            end_ns=np.array([s.end_ns for s in slices], np.int64),
            name_index=np.array([names[s.name] for s in slices], np.int32),
            names=tuple(names),
            track_index=np.array([tracks[s.track] for s in slices], np.int32),
            tracks=tuple(tracks),
            kind_index=np.array([kinds[s.kind] for s in slices], np.int32),
            kinds=tuple(kinds),
        )
