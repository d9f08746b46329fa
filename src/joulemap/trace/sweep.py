"""Energy of nested, overlapping and concurrent slices over a trace, in one pass with bounded memory.

At each instant a busy track gives what it holds to its innermost slice, the one that started last; that is the slice's
*own* (self) energy. A slice *holds* (inclusive) what its track holds from its start to its end. Tracks that are busy
at the same time share the power by the split rule; time in which no track is busy is idle. So with a rule that splits,
own energies and idle add up to the trace.

References:
    docs/map.md, "Which slice has the energy".
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.trace import sweep_steps
from joulemap.trace.instants import Timed
from joulemap.trace.integrate import Backend, covered_between_s, integrate_between
from joulemap.trace.pages import release_samples
from joulemap.trace.passes import InstantEnergies, Part, run_pass
from joulemap.trace.streamed import StreamedTrace, Trace
from joulemap.trace.trace import EnergyTrace

__all__ = [
    "MAX_PATHS",
    "GroupedSlices",
    "Split",
    "StreamedSweep",
    "Swept",
    "list_events",
    "sweep_energy",
    "sweep_lost_time",
    "sweep_trace",
]

MAX_PATHS = 1 << 16
"""Distinct paths that a map by path may have."""

_CHUNK = 1 << 16  # events at a time: their energies stay in the cache
_NUMBA_PAYS = 150_000  # slices from which compiling (or loading what was compiled) costs less than it saves

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Split(StrEnum):
    """How tracks that are busy at the same time share the power."""

    EQUAL = "equal"
    DURATION = "duration"
    NONE = "none"


_SPLITS = {Split.NONE: 0, Split.EQUAL: 1, Split.DURATION: 2}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedSlices:
    """Slices as the sweep takes them, on the trace's clock.

    Args:
        start_ns: (n,) ns, in order, the longer slice first where two start together.
        end_ns: (n,) ns, each >= its start.
        group: (n,) group of each slice, or its name with ``by_path``; below 0 for a slice that is left out.
        groups: number of groups (of names).
        track: (n,) track of each slice.
        tracks: number of tracks.
        by_path: groups are the paths of names from the outermost slice.
    """

    start_ns: Ints
    end_ns: Ints
    group: NDArray[np.int32]
    groups: int
    track: NDArray[np.int32]
    tracks: int
    by_path: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """What the groups hold.

    Args:
        count: (g,) slices.
        pieces: (g,) stretches of time in which a slice of the group is innermost.
        energy_j: (g,) J held by slices that are not inside another one of their group.
        self_j: (g,) J of their own.
        square_j2: (g,) sum of the squares of what each such slice holds, J^2.
        duration_s: (g,) s of slices that are not inside another one of their group.
        self_s: (g,) s in which a slice of the group is innermost on its track.
        busy_j: in which a track is busy, J.
        busy_s: the same, s.
        idle_j: the rest of the trace, J.
        concurrent: most tracks busy at once.
        path_parent: (g,) group above; empty unless by path.
        path_name: (g,) last name; empty unless by path.
        slice_energy_j: (n,) J held by each slice; empty unless asked.
        slice_self_j: (n,) J of each slice's own; empty unless asked.
    """

    count: Ints
    pieces: Ints
    energy_j: Floats
    self_j: Floats
    square_j2: Floats
    duration_s: Floats
    self_s: Floats
    busy_j: float
    busy_s: float
    idle_j: float
    concurrent: int
    path_parent: Ints
    path_name: Ints
    slice_energy_j: Floats
    slice_self_j: Floats


def sweep_energy(
    trace: EnergyTrace,
    slices: GroupedSlices,
    *,
    split: Split = Split.EQUAL,
    per_slice: bool = False,
    backend: Backend = "auto",
) -> Swept:
    """Returns what the groups and the idle time hold.

    Args:
        trace: power over time.
        slices: on the trace's clock; those outside it hold what was seen, so leave them out by their group.
        split: between tracks that are busy at once.
        per_slice: keep the energies of every slice.
        backend: ``auto`` compiles when numba is installed and the slices are many.

    Raises:
        ValueError: the slices are not in order, or there are more than ``MAX_PATHS`` paths.
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """

    def energy(at_ns: Ints) -> Floats:
        energy_j = integrate_between(trace, at_ns, backend=backend).energy_j
        release_samples(trace)
        return energy_j

    return _sweep(energy, (trace.start_ns, trace.end_ns), slices, (split, per_slice, backend))


def sweep_lost_time(trace: Timed, gaps: Ints, slices: GroupedSlices, *, backend: Backend = "auto") -> Swept:
    """Returns the same with lost time in place of energy: ``energy_j`` and the like are s in which nothing was seen.

    Args:
        trace: whose times count.
        gaps: (m, 2) half-open ranges of its lost samples.
        slices: on the trace's clock.
        backend: as for :func:`sweep_energy`.

    Raises:
        ValueError, SetupError: as :func:`sweep_energy`.
    """

    def lost(at_ns: Ints) -> Floats:
        covered_s = covered_between_s(trace, gaps, at_ns)
        return np.maximum(np.diff(at_ns) * 1e-9 - covered_s, 0.0)

    return _sweep(lost, (trace.start_ns, trace.end_ns), slices, (Split.NONE, False, backend))


class StreamedSweep:
    """A sweep that takes the samples of a streamed trace part by part: a consumer of its pass.

    Args:
        trace: whose times count.
        slices: on the trace's clock.
        split: between tracks that are busy at once.
        per_slice: keep the energies of every slice.
        backend: as for :func:`sweep_energy`.
        idle: the time before the first slice and after the last one counts; else only that between slices does.

    Raises:
        ValueError, SetupError: as :func:`sweep_energy`.
    """

    def __init__(
        self,
        trace: StreamedTrace,
        slices: GroupedSlices,
        *,
        split: Split = Split.EQUAL,
        per_slice: bool = False,
        backend: Backend = "auto",
        idle: bool = True,
    ) -> None:
        self._sweep = _Sweep(slices, trace.start_ns, (split, per_slice, backend))
        counted = slices.group >= 0 if not idle else np.empty(0, np.bool_)
        first = trace.start_ns if idle or not counted.any() else int(slices.start_ns[counted].min())
        self._energies = InstantEnergies(trace, first)
        self._events = self._sweep.events()
        self._end_ns, self._idle = trace.end_ns, idle
        self._now: tuple[Ints, Ints] | None = None
        self._over = False
        self._next()

    def _next(self) -> None:
        self._now = next(self._events, None)
        self._over = self._now is None and not self._idle
        if not self._over:
            self._energies.ask(np.array([self._end_ns], np.int64) if self._now is None else self._now[0])

    def take(self, part: Part) -> None:
        """Takes the next part."""
        while not self._over and self._energies.fill(part):
            if self._now is None:
                self._over = True
            else:
                self._sweep.take(*self._now, self._energies.energy_j)
                self._next()

    def result(self) -> Swept:
        """Returns what the groups hold, after the last part."""
        return self._sweep.result(float(self._energies.energy_j[0]) if self._idle else 0.0)


def sweep_trace(trace: Trace, slices: GroupedSlices, *, split: Split = Split.EQUAL, per_slice: bool = False) -> Swept:
    """Returns what the groups and the idle time hold of a trace in memory or, by one pass, of a streamed one.

    Raises:
        ValueError, SetupError: as :func:`sweep_energy`.
    """
    if not isinstance(trace, StreamedTrace):
        return sweep_energy(trace, slices, split=split, per_slice=per_slice)
    sweep = StreamedSweep(trace, slices, split=split, per_slice=per_slice)
    run_pass(trace, [sweep])
    return sweep.result()


class _Table:
    """The arrays of :mod:`sweep_steps` between two chunks of events.

    Args:
        slices: to be swept.
        start_ns: of the trace.
    """

    def __init__(self, slices: GroupedSlices, start_ns: int) -> None:
        groups = MAX_PATHS if slices.by_path else slices.groups
        slots, paths = 256, 4 * MAX_PATHS if slices.by_path else 1
        self.path_key = np.full(paths, -1, np.int64)
        self.path_of = np.zeros(paths, np.int64)
        self.path_parent = np.full(groups if slices.by_path else 1, -1, np.int64)
        self.path_name = np.zeros(groups if slices.by_path else 1, np.int64)
        self.whole = np.array([slots, 0, 0, start_ns, 0, 0], np.int64)
        self.total = np.zeros(7)
        self.top = np.full(slices.tracks, -1, np.int64)
        self.last_ns = np.zeros(slices.tracks, np.int64)
        self.tracks = np.zeros((slices.tracks, 4))
        self.slot = np.zeros((slots, 5), np.int64)
        self.kept = np.zeros((slots, 5))
        self.free = np.arange(slots, dtype=np.int64)[::-1].copy()
        self.counts = np.zeros((groups, 2), np.int64)
        self.sums = np.zeros((groups, 7))

    def widen(self) -> None:
        """Doubles the slots for open slices."""
        slots = self.free.size
        self.slot = np.concatenate([self.slot, np.zeros_like(self.slot)])
        self.kept = np.concatenate([self.kept, np.zeros_like(self.kept)])
        self.free = np.concatenate([np.arange(slots, 2 * slots, dtype=np.int64), self.free])
        self.whole[0] += slots


class _Sweep:
    """A sweep between two chunks of events."""

    def __init__(self, slices: GroupedSlices, start_ns: int, how: tuple[Split, bool, Backend]) -> None:
        split, per_slice, backend = how
        _check(slices)
        self._slices, self._split = slices, _SPLITS[split]
        self._advance, self._accumulate = _steps(slices.start_ns.size, backend)
        self._table = _Table(slices, start_ns)
        size = slices.start_ns.size if per_slice else 0
        self._per_slice = np.zeros(size), np.zeros(size)

    def events(self) -> Iterator[tuple[Ints, Ints]]:
        """Yields the events in order of time, a chunk at a time; the next step overwrites a chunk."""
        return _events(self._slices, self._advance)

    def take(self, time_ns: Ints, code: Ints, held: Floats) -> None:
        """Takes a chunk of events with what each holds since the one before."""
        slices, table, done = self._slices, self._table, 0
        while done < time_ns.size:
            done += self._accumulate(
                time_ns, code, held, done, slices.start_ns, slices.end_ns, slices.group, slices.track, self._split,
                slices.by_path, table.path_key, table.path_of, table.path_parent, table.path_name, slices.groups,
                table.whole, table.total, table.top, table.last_ns, table.tracks, table.slot, table.kept, table.free,
                table.counts, table.sums, *self._per_slice,
            )  # fmt: skip
            if done < time_ns.size:
                if slices.by_path and table.whole[2] >= MAX_PATHS:
                    raise ValueError(f"more than {MAX_PATHS} distinct paths")
                table.widen()

    def result(self, tail: float) -> Swept:
        """Returns the sums; ``tail`` lies after the last event."""
        return _result(self._table, tail, self._per_slice, self._slices)


def _sweep(
    amount: Callable[[Ints], Floats],
    span_ns: tuple[int, int],
    slices: GroupedSlices,
    how: tuple[Split, bool, Backend],
) -> Swept:
    sweep, at_ns = _Sweep(slices, span_ns[0], how), span_ns[0]
    for time_ns, code in sweep.events():
        held = amount(np.concatenate([np.array([at_ns], np.int64), time_ns]))
        at_ns = int(time_ns[-1])
        sweep.take(time_ns, code, held)
    return sweep.result(float(amount(np.array([at_ns, max(span_ns[1], at_ns)], np.int64))[0]))


def _result(table: _Table, tail: float, per_slice: tuple[Floats, Floats], slices: GroupedSlices) -> Swept:
    groups = int(table.whole[2]) if slices.by_path else slices.groups
    sums = table.sums[:groups]
    return Swept(
        count=table.counts[:groups, 0].copy(),
        pieces=table.counts[:groups, 1].copy(),
        energy_j=sums[:, 0] + sums[:, 1],
        self_j=sums[:, 2] + sums[:, 3],
        square_j2=sums[:, 4].copy(),
        duration_s=sums[:, 5] * 1e-9,
        self_s=sums[:, 6] * 1e-9,
        busy_j=float(table.total[3] + table.total[4]),
        busy_s=float(table.whole[5]) * 1e-9,
        idle_j=float(table.total[5] + (table.total[6] + tail)),
        concurrent=int(table.whole[4]),
        path_parent=table.path_parent[:groups].copy() if slices.by_path else np.empty(0, np.int64),
        path_name=table.path_name[:groups].copy() if slices.by_path else np.empty(0, np.int64),
        slice_energy_j=per_slice[0],
        slice_self_j=per_slice[1],
    )


def list_events(start_ns: Ints, end_ns: Ints, *, backend: Backend = "auto") -> Iterator[tuple[Ints, Ints]]:
    """Yields the starts and ends of slices in order of time, ends before starts of one instant, a chunk at a time.

    Args:
        start_ns: (n,) ns, in order, the longer slice first where two start together.
        end_ns: (n,) ns, each >= its start.
        backend: as for :func:`sweep_energy`.

    Yields:
        Instants, ns, and twice the slice, plus 1 for its end; a slice without length has a start alone. The next step
        overwrites both.
    """
    group = np.zeros(start_ns.size, np.int32)
    slices = GroupedSlices(start_ns=start_ns, end_ns=end_ns, group=group, groups=1, track=group, tracks=1)
    yield from _events(slices, _steps(start_ns.size, backend)[0])


def _events(slices: GroupedSlices, advance: Callable[..., int]) -> Iterator[tuple[Ints, Ints]]:
    """Yields the events in order of time, a chunk at a time."""
    cursor, heap = np.zeros(3, np.int64), np.zeros(1024, np.int64)
    time_ns, code = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    while True:
        count = advance(slices.start_ns, slices.end_ns, slices.group, cursor, heap, time_ns, code)
        if cursor[2]:
            heap = np.concatenate([heap, np.zeros_like(heap)])
        elif not count:
            return
        if count:
            yield time_ns[:count], code[:count]


def _steps(slices: int, backend: Backend) -> tuple[Callable[..., int], Callable[..., int]]:
    installed = importlib.util.find_spec("numba") is not None
    if backend == "numba" and not installed:
        raise SetupError("numba is not installed", hint="pip install 'joulemap[fast]'", slug="missing-extra")
    loaded = "joulemap.trace.kernels" in sys.modules
    if backend == "numba" or (backend == "auto" and installed and (slices >= _NUMBA_PAYS or (loaded and slices > 999))):
        from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

        return kernels.advance_events, kernels.accumulate_events
    return sweep_steps.advance_events, sweep_steps.accumulate_events


def _check(slices: GroupedSlices) -> None:
    start_ns = slices.start_ns
    for at in range(0, max(start_ns.size - 1, 0), 1 << 20):
        block = start_ns[at : at + (1 << 20) + 1]
        if bool(np.any(block[1:] < block[:-1])):
            raise ValueError("slices must be in order of start")
