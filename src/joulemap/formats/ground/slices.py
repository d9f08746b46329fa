"""Millions of slices gathered as columns: begins and ends matched per track, instants as marks, tables of names.

Readers of timelines drop events into it one at a time; 28 bytes a slice stay. It knows no format.

References:
    Trace Event Format (Chromium), "Duration Events": begins and ends nest per thread.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.levels import MARKER_LIMIT
from joulemap.records.finding import Severity
from joulemap.records.recording import MarkerTrack
from joulemap.trace import Clock, Marker, Timeline
from joulemap.trace.instants import order_slices

__all__ = ["SliceColumns"]

_LIMIT_NS: Final = 1 << 62
_MARKS = ("\0marks",)


class _Table:
    """Distinct values in order of first use."""

    def __init__(self) -> None:
        self.index: dict[Hashable, int] = {}

    def put(self, value: Hashable) -> int:
        """Returns the index of a value, new or known."""
        at = self.index.get(value)
        if at is None:
            at = self.index[value] = len(self.index)
        return at


class SliceColumns:
    """Slices and marks of one clock.

    Args:
        clock: of the stamps.
        log: takes ``slice_unclosed``, ``slice_unopened``, ``slice_misnested``, ``backward_stamp``, ``marks_as_slices``.
    """

    def __init__(self, clock: Clock, log: FindingLog) -> None:
        self.clock = clock
        self.log = log
        self._start = array("q")
        self._end = array("q")
        self._name = array("i")
        self._track = array("i")
        self._kind = array("i")
        self._names, self._tracks, self._kinds = _Table(), _Table(), _Table()
        self._open: dict[int, list[tuple[int, int, int]]] = {}
        self._mark_time = array("q")
        self._mark_name = array("i")

    def __len__(self) -> int:
        return len(self._start)

    def add(self, track: Hashable, name: str, span: tuple[int, int], kind: str = "") -> None:
        """Appends a slice; one that ends before it starts is said and left out."""
        start_ns, end_ns = span
        if not -_LIMIT_NS < start_ns <= end_ns < _LIMIT_NS:
            self._refuse(start_ns)
            return
        tracks, names, kinds = self._tracks.index, self._names.index, self._kinds.index
        self._start.append(start_ns)
        self._end.append(end_ns)
        self._track.append(tracks.setdefault(track, len(tracks)))
        self._name.append(names.setdefault(name, len(names)))
        self._kind.append(kinds.setdefault(kind, len(kinds)))

    def name_number(self, name: str) -> int:
        """Returns the number of a name, new or known."""
        return self._names.put(name)

    def kind_number(self, kind: str) -> int:
        """Returns the number of a kind, new or known."""
        return self._kinds.put(kind)

    def track_number(self, track: Hashable) -> int:
        """Returns the number of a track, new or known."""
        return self._tracks.put(track)

    def append_numbered(
        self, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], numbers: tuple[NDArray[np.int32], ...]
    ) -> None:
        """Appends slices that end after they start, (n,) ns, with the numbers of names, kinds and tracks, (n,) each."""
        for target, values in (
            (self._start, start_ns), (self._end, end_ns), (self._name, numbers[0]), (self._kind, numbers[1]),
            (self._track, numbers[2]),
        ):  # fmt: skip
            target.frombytes(np.ascontiguousarray(values).tobytes())

    def _refuse(self, start_ns: int) -> None:
        self.log.add("backward_stamp", "a slice ends before it starts, or beyond 146 years; left out", f"{start_ns} ns")

    def put(self, row: tuple[int, int, int], start_ns: int, end_ns: int) -> None:
        """Appends a slice by its indices of name, track and kind; one out of range is said and left out."""
        if not -_LIMIT_NS < start_ns <= end_ns < _LIMIT_NS:
            self._refuse(start_ns)
            return
        self._start.append(start_ns)
        self._end.append(end_ns)
        for column, index in zip((self._name, self._track, self._kind), row, strict=True):
            column.append(index)

    def intern(self, what: str, words: Sequence[Hashable]) -> list[int]:
        """Returns the indices of names, tracks or kinds (``what``: ``name``, ``track``, ``kind``), new or known."""
        table = {"name": self._names, "track": self._tracks, "kind": self._kinds}[what]
        return [table.put(word) for word in words]

    def append(self, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], *indices: NDArray[Any]) -> None:
        """Appends slices that are in range, by their indices of name, track and kind, each (n,)."""
        columns: list[Any] = [self._start, self._end, self._name, self._track, self._kind]
        for column, values in zip(columns, [start_ns, end_ns, *indices], strict=True):
            column.frombytes(values.tobytes())

    def extend(self, tracks: list[str], names: list[str], kinds: list[str], columns: tuple[NDArray[Any], ...]) -> None:
        """Appends a block of slices at once.

        Args:
            tracks: the block's own table of tracks.
            names: the block's own table of names.
            kinds: the block's own table of kinds.
            columns: start_ns, end_ns, then indices into names, tracks and kinds, each (n,).
        """
        start_ns, end_ns, name, track, kind = columns
        good = (end_ns >= start_ns) & (start_ns > -_LIMIT_NS) & (end_ns < _LIMIT_NS)
        bad = int((~good).sum())
        if bad:
            self.log.add("backward_stamp", f"{bad} slices end before they start, or beyond 146 years; left out")
            start_ns, end_ns, name, track, kind = (column[good] for column in columns)
        indices = []
        for what, own, index in (("name", names, name), ("track", tracks, track), ("kind", kinds, kind)):
            lookup = np.array(self.intern(what, own), np.int32)
            indices.append(lookup[np.asarray(index, np.int64)])
        self.append(np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64), *indices)

    def shift(self, offset_ns: int) -> None:
        """Moves everything in time: a trace may say its base at its end."""
        for column in (self._start, self._end, self._mark_time):
            if column:
                view = np.frombuffer(column, np.int64)
                view += offset_ns
        for stack in self._open.values():
            stack[:] = [(name, start_ns + offset_ns, kind) for name, start_ns, kind in stack]

    def bounds(self) -> tuple[int, int] | None:
        """Returns the first start and the last end so far; None without slices."""
        if not self._start:
            return None
        return int(np.frombuffer(self._start, np.int64).min()), int(np.frombuffer(self._end, np.int64).max())

    def begin(self, track: Hashable, name: str, time_ns: int, kind: str = "") -> None:
        """Opens a slice on a track."""
        at = self._tracks.put(track)
        stack = self._open.get(at)
        if stack is None:
            stack = self._open[at] = []
        stack.append((self._names.put(name), time_ns, self._kinds.put(kind)))

    def end(self, track: Hashable, time_ns: int, name: str | None = None) -> None:
        """Closes the innermost open slice of a track, or the innermost of that name when one is given."""
        at = self._tracks.put(track)
        stack = self._open.get(at)
        if not stack:
            self.log.add("slice_unopened", "an end without a begin; left out", f"{time_ns} ns")
            return
        if name is not None:
            wanted = self._names.index.get(name)
            if wanted != stack[-1][0]:
                depth = next((k for k in range(len(stack) - 1, -1, -1) if stack[k][0] == wanted), None)
                if depth is None:
                    self.log.add("slice_unopened", f"the end of {name!r} without its begin; left out", f"{time_ns} ns")
                    return
                self.log.add(
                    "slice_misnested",
                    f"{name!r} ends while slices inside it are open; those are left out",
                    f"{time_ns} ns",
                )
                del stack[depth + 1 :]
        opened, start_ns, kind = stack.pop()
        self.put((opened, at, kind), start_ns, time_ns)

    def mark(self, name: str, time_ns: int) -> None:
        """Appends an instant."""
        if abs(time_ns) < _LIMIT_NS:
            self._mark_time.append(time_ns)
            self._mark_name.append(self._names.put(name))

    def timelines(
        self, namer: Callable[[Any], str] = str, kinder: Callable[[str], str] | None = None
    ) -> tuple[Timeline, ...]:
        """Returns the slices, in order of start and the outer before the inner, as one timeline; empties this.

        Args:
            namer: from a track's key to its name; equal names of different tracks get a number.
            kinder: from a kind as written to the kind that is kept.
        """
        self._close()
        if not self._start:
            return ()
        marks = tuple(self._tracks.index)
        columns: list[NDArray[Any]] = []
        for name in ("_start", "_end", "_name", "_track", "_kind"):
            columns.append(np.frombuffer(getattr(self, name), np.int64 if name in ("_start", "_end") else np.int32))
            setattr(self, name, array("q" if name in ("_start", "_end") else "i"))
        start_ns, end_ns = columns[0], columns[1]
        if start_ns.size > 1 and not _ordered(start_ns, end_ns):
            order = order_slices(start_ns, end_ns)
            del start_ns, end_ns  # each column is let go as soon as it was put in order
            for at in range(len(columns)):
                columns[at] = columns[at][order]
            del order
        for column in columns:
            column.setflags(write=False)
        kinds = [_word(kind) for kind in self._kinds.index]
        timeline = Timeline(
            clock=self.clock,
            start_ns=columns[0],
            end_ns=columns[1],
            name_index=columns[2],
            names=tuple(_word(name) for name in self._names.index),
            track_index=columns[3],
            tracks=_unique([_word(namer(key)) if key != _MARKS else "marks" for key in marks]),
            kind_index=columns[4],
            kinds=tuple(kinder(kind) for kind in kinds) if kinder else tuple(kinds),
        )
        return (timeline,)

    def _close(self) -> None:
        left = [(at, name) for at, stack in sorted(self._open.items()) for name, _, _ in stack]
        self._open.clear()
        if left:
            names = list(self._names.index)
            some = ", ".join(repr(names[name]) for _, name in left[:3])
            self.log.add(
                "slice_unclosed",
                f"{len(left)} slices have no end (such as {some}); how long they were is unknown, so they are left out",
            )
        if len(self._mark_time) > MARKER_LIMIT:
            self.log.add(
                "marks_as_slices",
                f"{len(self._mark_time)} instants: kept as slices without length, not as markers",
                severity=Severity.INFO,
            )
            track, kind = self._tracks.put(_MARKS), self._kinds.put("instant")
            for time_ns, name in zip(self._mark_time, self._mark_name, strict=True):
                self.put((name, track, kind), time_ns, time_ns)
            self._mark_time, self._mark_name = array("q"), array("i")

    def markers(self, name: str = "marks") -> tuple[MarkerTrack, ...]:
        """Returns the instants as one track in order of time; none when they became slices."""
        if not self._mark_time or len(self._mark_time) > MARKER_LIMIT:
            return ()
        names = [_word(item) for item in self._names.index]
        order = sorted(range(len(self._mark_time)), key=self._mark_time.__getitem__)
        marks = tuple(Marker(time_ns=self._mark_time[k], name=names[self._mark_name[k]]) for k in order)
        return (MarkerTrack(name=name, clock=self.clock, markers=marks),)


def _word(value: object) -> str:
    """Returns a word as text that UTF-8 can hold: half a surrogate pair, which JSON may spell, stands as its escape."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _ordered(start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> bool:
    """Returns True when slices stand in order of start, the longer first; in blocks, so that no big mask is made."""
    block = 1 << 20
    for at in range(0, start_ns.size - 1, block):
        one, two = start_ns[at : at + block], start_ns[at + 1 : at + block + 1]
        one = one[: two.size]
        wrong = (two < one) | ((two == one) & (end_ns[at + 1 : at + 1 + two.size] > end_ns[at : at + two.size]))
        if bool(wrong.any()):
            return False
    return True


def _unique(names: list[str]) -> tuple[str, ...]:
    used: dict[str, int] = {}
    result = []
    for name in names:
        used[name] = used.get(name, 0) + 1
        result.append(name if used[name] == 1 else f"{name} #{used[name]}")
    return tuple(result)
