"""One pass over the samples of a streamed trace for everything that is wanted of them: sums, energies between instants.

Each consumer sees every part once, in order of time, as power in W with 0 where a sample was lost. A consumer keeps
what it needs between two parts, so that memory does not grow with the recording.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.instants import Instants, clip_instants, locate_instants, relate_instants
from joulemap.trace.integrate import (
    Backend,
    IntegratedEnergy,
    covered_between_s,
    integrate_between,
    integrate_energy,
    takes_compiled,
)
from joulemap.trace.pages import release_samples
from joulemap.trace.reference import Positions, Samples, accumulate, integrate_positions
from joulemap.trace.streamed import Factor, Found, StreamedTrace, Trace, cut_window, gap_ranges, multiply

__all__ = ["NUMBA_PAYS", "Consumer", "InstantEnergies", "Part", "list_parts", "run_pass", "sum_between", "sum_slices"]

_BLOCK = 1 << 20
NUMBA_PAYS = 20_000_000
"""Samples from which importing numba costs less than it saves."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Samples that follow each other.

    Args:
        first: index of the first one.
        power_w: (k,) W; 0 where a sample was lost. Overwritten by the next part.
        compiled: the compiled steps are to be used.
    """

    first: int
    power_w: Floats
    compiled: bool


class Consumer(Protocol):
    """Takes the parts of a pass."""

    def take(self, part: Part) -> None:
        """Takes the next part."""
        ...


def run_pass(trace: StreamedTrace, consumers: Sequence[Consumer], *, backend: Backend = "auto") -> Found:
    """Streams the samples through the consumers; without one, what a pass found before is given again.

    Args:
        trace: whose samples are wanted.
        consumers: each takes every part.
        backend: ``auto`` compiles when numba is installed and the samples are many.

    Raises:
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """
    if not consumers and trace.correction in trace.found:
        return trace.found[trace.correction]
    compiled = takes_compiled(backend, trace.n, 0, pays=NUMBA_PAYS)
    room = np.empty(0)
    sums: list[float] = []
    gaps: list[Ints] = []
    lost, low_w, high_w = 0, 0.0, 0.0
    for first, factors in trace.source.stream(0, trace.n):
        if room.size < factors[0].size:
            room = np.empty(factors[0].size)
        power_w = room[: factors[0].size]
        total_w, bad = _clean(factors, trace.correction, power_w, compiled)
        sums.append(total_w)
        low_w, high_w = min(low_w, float(power_w.min())), max(high_w, float(power_w.max()))
        if bad is not None:
            lost += int(np.count_nonzero(bad))
            gaps.append(gap_ranges(bad) + first)
        part = Part(first=first, power_w=power_w, compiled=compiled)
        for consumer in consumers:
            consumer.take(part)
    energy_j = math.fsum(sums) * trace.step_ns * 1e-9
    found = Found(energy_j=energy_j, lost=lost, gaps=_join(gaps), low_w=low_w, high_w=high_w)
    trace.found[trace.correction] = found
    return found


def list_parts(trace: Trace) -> Iterator[tuple[int, Floats, NDArray[np.bool_]]]:
    """Yields (index of the first sample, power in W, which samples were seen) part by part, in one pass.

    Args:
        trace: in memory or streamed; a lost sample is 0 W.
    """
    if isinstance(trace, StreamedTrace):
        for first, factors in trace.source.stream(0, trace.n):
            power_w = np.empty(factors[0].size)
            multiply(factors, trace.correction, power_w)
            seen = np.isfinite(power_w)
            power_w[~seen] = 0.0
            yield first, power_w, seen
        return
    for first in range(0, trace.n, _BLOCK):
        yield first, *cut_window(trace, first, first + _BLOCK)
        release_samples(trace)


def _clean(
    factors: tuple[Factor, ...], correction: tuple[float, float, float], out: Floats, compiled: bool
) -> tuple[float, NDArray[np.bool_] | None]:
    """Fills the power, 0 where lost; returns the sum of the samples, W, and where they were lost, if anywhere."""
    if compiled:
        from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

        other = factors[1] if len(factors) == 2 else factors[0][:0]
        total_w, lost = kernels.multiply_samples(factors[0], other, *correction, out)
        if not lost:
            return float(total_w), None
    multiply(factors, correction, out)
    finite = np.isfinite(out)
    if finite.all():
        return _sum(out), None
    out[~finite] = 0.0
    return _sum(out), ~finite


def _sum(power_w: Floats) -> float:
    return math.fsum(float(power_w[at : at + 4096].sum()) for at in range(0, power_w.size, 4096))


def _join(parts: list[Ints]) -> Ints:
    """Returns the ranges in order; one that crosses the border of two parts is one range."""
    if not parts:
        return np.empty((0, 2), np.int64)
    gaps = np.concatenate(parts)
    apart = gaps[1:, 0] != gaps[:-1, 1]
    first, last = np.concatenate(([True], apart)), np.concatenate((apart, [True]))
    return np.stack([gaps[first, 0], gaps[last, 1]], axis=1)


class InstantEnergies:
    """Energy between each instant and the next one, found part by part.

    Args:
        trace: where the instants lie; only its times count.
        start_ns: the first instant.
    """

    def __init__(self, trace: StreamedTrace, start_ns: int) -> None:
        self._trace = trace
        index, offset_ns = self._locate(np.array([start_ns], np.int64))
        self._at = index.copy()  # the last instant that was reached
        self._rest = np.array([offset_ns[0], 0.0, 0.0])  # ns into its interval; energy since then as a double-double
        self._index, self._offset_ns = np.empty(0, np.int64), np.empty(0)
        self._energy_wns = np.empty(0)
        self._done = 0

    def _locate(self, instants_ns: Ints) -> tuple[Ints, Floats]:
        trace = self._trace
        index, offset_ns = locate_instants(trace, clip_instants(trace, relate_instants(trace, instants_ns)))
        offset_ns[index >= trace.n] = 0.0  # a period that is no whole number of ns may leave a trace of rounding there
        return index, offset_ns

    def ask(self, instants_ns: Ints) -> None:
        """Asks for the energies up to each of the instants, (k,) ns, in order and after those before."""
        self._index, self._offset_ns = self._locate(instants_ns)
        self._energy_wns = np.empty(instants_ns.size)
        self._done = 0

    @property
    def energy_j(self) -> Floats:
        """(k,) J up to each instant from the one before."""
        return self._energy_wns * 1e-9

    def fill(self, part: Part) -> bool:
        """Takes a part as far as the instants go; returns True when all of them were reached.

        A part may be given again after the next :meth:`ask`.
        """
        if part.compiled:
            from joulemap.trace import kernels  # noqa: PLC0415  as above

            self._done = kernels.fill_between(
                part.power_w, part.first, self._trace.step_ns, self._index, self._offset_ns, self._done, self._at,
                self._rest, self._energy_wns,
            )  # fmt: skip
        else:
            self._fill_plain(part)
        return self._done == self._index.size

    def _fill_plain(self, part: Part) -> None:
        end = part.first + part.power_w.size
        reached = int(np.searchsorted(self._index, end))
        while reached < self._index.size and self._index[reached] == end and self._offset_ns[reached] == 0.0:
            reached += 1
        rest = reached < self._index.size and int(self._at[0]) < end  # then the part is used up
        index = np.concatenate([self._at, self._index[self._done : reached], np.full(int(rest), end)]) - part.first
        offset_ns = np.concatenate([self._rest[:1], self._offset_ns[self._done : reached], np.zeros(int(rest))])
        if index.size < 2:
            return
        samples = Samples(
            power_w=part.power_w,
            step_ns=self._trace.step_ns,
            edges_ns=None,
            runs=np.array([[0, part.power_w.size]], np.int64),
            point=False,
        )
        positions = Positions(start=index[:-1], start_ns=offset_ns[:-1], end=index[1:], end_ns=offset_ns[1:])
        energy_wns = integrate_positions(samples, positions)
        high, low = self._rest[1], self._rest[2]
        total = high + energy_wns[0]
        back = total - high
        low += (high - (total - back)) + (energy_wns[0] - back)
        self._rest[1], self._rest[2] = total, low
        if reached > self._done:
            energy_wns[0] = total + low
            self._energy_wns[self._done : reached] = energy_wns[: reached - self._done]
            self._rest[1], self._rest[2] = energy_wns[-1] if rest else 0.0, 0.0
        self._at[0], self._rest[0] = index[-1] + part.first, offset_ns[-1]
        self._done = reached


class _Between:
    """A consumer that finds the energies between instants."""

    def __init__(self, trace: StreamedTrace, instants_ns: Ints) -> None:
        self.found = InstantEnergies(trace, int(instants_ns[0]))
        self.found.ask(instants_ns[1:])
        self._whole = False

    def take(self, part: Part) -> None:
        """Takes the next part."""
        self._whole = self._whole or self.found.fill(part)


def sum_between(trace: Trace, instants_ns: Ints, *, backend: Backend = "auto") -> IntegratedEnergy:
    """Returns what lies between each instant and the next one, (k - 1,) J and s, in one pass over any trace.

    Args:
        trace: in memory or streamed.
        instants_ns: (k,) int64 ns on the trace's clock, in order.
        backend: as for :func:`joulemap.trace.integrate.integrate_between`.

    Raises:
        ValueError: the instants are not in order.
    """
    if not isinstance(trace, StreamedTrace):
        return integrate_between(trace, instants_ns, backend=backend)
    at_ns = np.asarray(instants_ns, np.int64)
    if at_ns.size < 2:
        return IntegratedEnergy(energy_j=np.empty(0), covered_s=np.empty(0))
    if bool(np.any(at_ns[1:] < at_ns[:-1])):
        raise ValueError("instants must be in order of time")
    between = _Between(trace, at_ns)
    found = run_pass(trace, [between], backend=backend)
    covered_s = covered_between_s(trace, found.gaps, at_ns)
    return IntegratedEnergy(energy_j=between.found.energy_j, covered_s=covered_s)


def sum_slices(trace: Trace, start_ns: Instants, end_ns: Instants, *, backend: Backend = "auto") -> IntegratedEnergy:
    """Returns the energy of every slice, (m,) J, and its seen time, (m,) s, in one pass over any trace.

    Args:
        trace: in memory or streamed.
        start_ns: (m,) ns on the trace's clock; int64 for a streamed one.
        end_ns: (m,) ns, each >= its start.
        backend: as for :func:`joulemap.trace.integrate.integrate_energy`.

    Raises:
        ValueError: an end lies before its start, or instants of a streamed trace are no int64.
    """
    if not isinstance(trace, StreamedTrace):
        return integrate_energy(trace, start_ns, end_ns, backend=backend)
    if not (start_ns.dtype == np.int64 and end_ns.dtype == np.int64):
        raise ValueError("instants on a streamed trace are int64 nanoseconds")
    if bool(np.any(end_ns < start_ns)):
        raise ValueError(f"slice {int(np.argmax(end_ns < start_ns))} ends before it starts")
    instants_ns, place = np.unique(np.asarray(np.concatenate([start_ns, end_ns]), np.int64), return_inverse=True)
    held = sum_between(trace, instants_ns, backend=backend)
    first, last = place[: start_ns.size], place[start_ns.size :]
    energy_j, covered_s = (_differences(part, first, last) for part in (held.energy_j, held.covered_s))
    return IntegratedEnergy(energy_j=energy_j, covered_s=covered_s)


def _differences(between: Floats, first: Ints, last: Ints) -> Floats:
    """Returns the sums of what lies between two instants each, (m,), by running sums that keep their digits."""
    high, low = (np.concatenate([np.zeros(1), part]) for part in accumulate(between))
    return np.asarray((high[last] - high[first]) + (low[last] - low[first]), np.float64)
