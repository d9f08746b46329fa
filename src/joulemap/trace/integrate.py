"""Exact energy of slices of a trace: fractional edges, uniform or not, means or points, gaps left out.

A mean (``INTERVAL_MEAN``, ``COUNTER``) is constant over its interval (zero-order hold over what the sample covers);
a ``POINT`` sample is the power at the *start* of its interval and power is linear from one to the next (trapezoid);
the last point of a run of samples is held to the end of its interval. A sensor's latency and clock are corrected
before, by alignment: here an instant means what the trace's clock says.

Slices that reach outside the trace or over lost samples keep the energy that was seen, and ``covered_s`` says how
much time that is: missing is never 0.

References:
    docs/numbers.md, "How energy is summed".
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.trace.channel import KernelKind
from joulemap.trace.instants import (
    Instants,
    Timed,
    clip_instants,
    locate_instants,
    relate_instants,
    relate_spans,
    sort_instants,
    split_instants,
)
from joulemap.trace.reference import Positions, Samples, integrate_positions
from joulemap.trace.trace import EnergyTrace

__all__ = [
    "Backend",
    "IntegratedEnergy",
    "covered_between_s",
    "covered_time",
    "cumulative_energy_j",
    "integrate_between",
    "integrate_energy",
    "integrate_offsets",
    "mean_power",
    "peak_power",
    "takes_compiled",
]

Backend = Literal["auto", "numpy", "numba"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# samples + 400 per slice: below it numpy is done before numba is imported (benchmarks/bench_integrate.py)
_NUMBA_PAYS = 1.5e9
_Spans = tuple[NDArray[Any], NDArray[Any]]
_SHARED_SLICES = 200_000  # from here on two threads share the slices,
_SHARED_SAMPLES = 64  # where there are at most so many samples to each: both read all of them
_WHOLE_NS_LIMIT = 2**53  # a float64 holds every integer of ns up to here (104 days)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegratedEnergy:
    """Energy of slices and the time that was really seen.

    Args:
        energy_j: (m,) J, of the covered time only.
        covered_s: (m,) s of each slice inside the trace and not lost.
    """

    energy_j: Floats
    covered_s: Floats


def integrate_energy(
    trace: EnergyTrace, start_ns: Instants, end_ns: Instants, *, backend: Backend = "auto"
) -> IntegratedEnergy:
    """Returns the exact energy of every slice [start, end), J, and the time of it that the trace covers, s.

    Args:
        trace: power over time.
        start_ns: (m,) ns on the trace's clock; int64 at any magnitude, float64 (fractional ns) up to 2**53.
        end_ns: (m,) ns, each >= its start, same dtype.
        backend: ``auto`` takes the compiled kernel when it is installed and the work is large enough to pay for it.

    Raises:
        ValueError: shapes differ, an end lies before its start, an instant is not finite, or float64 instants on a
            clock whose numbers they cannot hold (:func:`integrate_offsets` is the way then).
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """
    start, end = np.atleast_1d(np.asarray(start_ns)), np.atleast_1d(np.asarray(end_ns))
    if not (np.issubdtype(start.dtype, np.floating) or np.issubdtype(end.dtype, np.floating)):
        return _integrate(trace, (start, end), backend, lambda some: relate_spans(trace, *some))
    if abs(trace.start_ns) >= _WHOLE_NS_LIMIT or abs(trace.end_ns) >= _WHOLE_NS_LIMIT:
        raise ValueError(
            f"float64 cannot hold nanoseconds near {trace.start_ns}; give int64 instants, or seconds from the start"
            " of the trace to integrate_offsets"
        )
    origin = float(trace.start_ns)

    def relate(some: _Spans) -> tuple[Instants, Instants]:
        start, end = (clip_instants(trace, np.asarray(at_ns, np.float64) - origin) for at_ns in some)
        return start, end

    return _integrate(trace, (start, end), backend, relate)


def integrate_offsets(
    trace: EnergyTrace, start_s: Floats, end_s: Floats, *, backend: Backend = "auto"
) -> IntegratedEnergy:
    """Returns the same as :func:`integrate_energy` for slices given in seconds from the start of the trace.

    Args:
        trace: power over time.
        start_s: (m,) s from ``trace.start_ns``.
        end_s: (m,) s, each >= its start.
        backend: as there.

    Raises:
        ValueError: shapes differ, an end lies before its start, or an instant is not finite.
    """
    start, end = np.atleast_1d(np.asarray(start_s, np.float64)), np.atleast_1d(np.asarray(end_s, np.float64))

    def relate(some: _Spans) -> tuple[Instants, Instants]:
        start, end = (clip_instants(trace, np.asarray(at_s * 1e9, np.float64)) for at_s in some)
        return start, end

    return _integrate(trace, (start, end), backend, relate)


def integrate_between(trace: EnergyTrace, instants_ns: Ints, *, backend: Backend = "auto") -> IntegratedEnergy:
    """Returns what lies between each instant and the next one, (k - 1,) J and s, without sorting anything.

    Args:
        trace: power over time.
        instants_ns: (k,) int64 ns on the trace's clock, in order.
        backend: as for :func:`integrate_energy`.

    Raises:
        ValueError: the instants are not in order.
    """
    if instants_ns.size < 2:
        return IntegratedEnergy(energy_j=np.empty(0), covered_s=np.empty(0))
    at_ns = clip_instants(trace, relate_instants(trace, np.asarray(instants_ns, np.int64)))
    if bool(np.any(at_ns[1:] < at_ns[:-1])):
        raise ValueError("instants must be in order of time")
    covered_s = covered_time(trace, at_ns[:-1], at_ns[1:])
    samples = _samples(trace)
    if not takes_compiled(backend, trace.n, at_ns.size):
        index, offset_ns = locate_instants(trace, at_ns)
        positions = Positions(start=index[:-1], start_ns=offset_ns[:-1], end=index[1:], end_ns=offset_ns[1:])
        return IntegratedEnergy(energy_j=integrate_positions(samples, positions) * 1e-9, covered_s=covered_s)
    m = at_ns.size - 1
    order = np.empty(2 * m, np.int64)
    order[0::2], order[1::2] = np.arange(m), np.arange(m, 2 * m)
    if trace.edges_ns is None:
        where, part_ns = locate_instants(trace, at_ns)
    else:
        whole_ns, part_ns = split_instants(at_ns)
        where = whole_ns + np.int64(trace.start_ns)
    places = (np.repeat(where, 2)[1:-1], np.repeat(part_ns, 2)[1:-1] if part_ns.size else part_ns, order)
    energy_j = np.empty(m)
    _run_kernel(samples, places, energy_j)
    energy_j[at_ns[1:] == at_ns[:-1]] = 0.0
    return IntegratedEnergy(energy_j=energy_j, covered_s=covered_s)


def cumulative_energy_j(trace: EnergyTrace, at_s: Floats, *, backend: Backend = "auto") -> Floats:
    """Returns the energy from the start of the trace to each instant, (k,) J; lost time adds nothing.

    Args:
        trace: power over time.
        at_s: (k,) s from ``trace.start_ns``, in any order; those outside are clipped.
        backend: as for :func:`integrate_energy`.
    """
    at = np.maximum(np.atleast_1d(np.asarray(at_s, np.float64)), 0.0)
    return integrate_offsets(trace, np.zeros(at.shape), at, backend=backend).energy_j


def mean_power(trace: EnergyTrace, start_ns: Instants, end_ns: Instants, *, backend: Backend = "auto") -> Floats:
    """Returns the mean power over the covered time of every slice, (m,) W; NaN where nothing was covered."""
    integrated = integrate_energy(trace, start_ns, end_ns, backend=backend)
    power_w = np.full(integrated.energy_j.shape, np.nan)
    np.divide(integrated.energy_j, integrated.covered_s, out=power_w, where=integrated.covered_s > 0)
    return power_w


def peak_power(trace: EnergyTrace, start_ns: float, end_ns: float) -> float:
    """Returns the highest sample whose interval overlaps the window [start, end), W; NaN when all of it was lost.

    Args:
        trace: power over time.
        start_ns: ns on the trace's clock.
        end_ns: ns, > start_ns.
    """
    bounds = np.array([start_ns, end_ns])
    relative = relate_instants(trace, bounds) if bounds.dtype == np.int64 else bounds - float(trace.start_ns)
    index, offset_ns = locate_instants(trace, clip_instants(trace, relative))
    begin, end = int(index[0]), int(index[1]) + (1 if offset_ns[1] > 0 else 0)
    runs = np.clip(trace.runs, begin, end)
    peaks = [float(trace.power_w[a:b].max()) for a, b in runs if b > a]
    return max(peaks, default=float("nan"))


def _samples(trace: EnergyTrace) -> Samples:
    return Samples(
        power_w=trace.power_w,
        step_ns=trace.step_ns if trace.uniform else None,
        edges_ns=trace.edges_ns,
        runs=trace.runs,
        point=trace.channel.kernel.kind is KernelKind.POINT,
    )


def covered_between_s(trace: Timed, gaps: Ints, instants_ns: Ints) -> Floats:
    """Returns the seen time between each instant and the next one, (k - 1,) s.

    Args:
        trace: whose times count.
        gaps: (m, 2) half-open ranges of its lost samples.
        instants_ns: (k,) ns on its clock, in order.
    """
    at_ns = clip_instants(trace, relate_instants(trace, instants_ns))
    return _covered_s(trace, gaps, (at_ns[:-1], at_ns[1:]))


def covered_time(trace: EnergyTrace, start_ns: Instants, end_ns: Instants) -> Floats:
    """Returns how much of each slice was not lost, (m,) s; the slices in ns from the start of the trace, inside it."""
    return _covered_s(trace, trace.gaps, (start_ns, end_ns))


def _covered_s(trace: Timed, gaps: Ints, span_ns: tuple[Instants, Instants]) -> Floats:
    start_ns, end_ns = span_ns
    covered_ns = (end_ns - start_ns).astype(np.float64)
    if gaps.size:
        edges_ns = (
            trace.edges_ns[gaps] - np.int64(trace.start_ns) if trace.edges_ns is not None else gaps * trace.step_ns
        ).astype(np.float64)
        begins, lengths = edges_ns[:, 0], edges_ns[:, 1] - edges_ns[:, 0]
        before = np.concatenate([[0.0], np.cumsum(lengths)])

        def lost_ns(instants: Instants) -> Floats:
            gap = np.searchsorted(begins, instants, side="right")
            inside = np.minimum(instants - begins[np.maximum(gap - 1, 0)], lengths[np.maximum(gap - 1, 0)])
            return np.where(gap > 0, before[np.maximum(gap - 1, 0)] + inside, 0.0)

        covered_ns -= lost_ns(end_ns) - lost_ns(start_ns)
    return np.maximum(covered_ns, 0.0) * 1e-9


def takes_compiled(backend: Backend, samples: int, slices: int, *, pays: float = _NUMBA_PAYS) -> bool:
    """Returns True when work of that size goes to the compiled kernels.

    Args:
        backend: what was asked for.
        samples: to be read.
        slices: to be filled.
        pays: samples + 400 per slice from which loading numba costs less than it saves.

    Raises:
        SetupError: backend ``numba`` without numba (``missing-extra``).
    """
    installed = importlib.util.find_spec("numba") is not None
    if backend == "auto":
        loaded = "joulemap.trace.kernels" in sys.modules
        return installed and (loaded or samples + 400 * slices >= pays)
    if backend == "numba" and not installed:
        raise SetupError("numba is not installed", hint="pip install 'joulemap[fast]'", slug="missing-extra")
    return backend == "numba"


def _integrate(
    trace: EnergyTrace,
    span: _Spans,
    backend: Backend,
    relate: Callable[[_Spans], tuple[Instants, Instants]],
) -> IntegratedEnergy:
    """Returns the sums; ``relate`` turns instants as they were given into ns from the start of the trace, inside it."""
    start, end = span
    if start.shape != end.shape or start.ndim != 1:
        raise ValueError(f"starts and ends must be (m,), got {start.shape} and {end.shape}")
    m = start.size
    compiled = takes_compiled(backend, trace.n, m)
    held = IntegratedEnergy(energy_j=np.empty(m), covered_s=np.empty(m))

    def fill(rows: slice) -> None:
        _check((start[rows], end[rows]), rows.start)
        some = relate((start[rows], end[rows]))
        held.covered_s[rows] = covered_time(trace, *some)
        if compiled:
            _run_kernel(_samples(trace), _arrange(trace, *some), held.energy_j[rows])
            held.energy_j[rows][some[0] == some[1]] = 0.0  # the end of an empty slice may be visited before its start
        else:
            (first, first_ns), (last, last_ns) = (locate_instants(trace, at_ns) for at_ns in some)
            positions = Positions(start=first, start_ns=first_ns, end=last, end_ns=last_ns)
            held.energy_j[rows] = integrate_positions(_samples(trace), positions) * 1e-9

    if not compiled or m < _SHARED_SLICES or trace.n > _SHARED_SAMPLES * m:
        fill(slice(0, m))
        return held
    # the slices are the work, not the samples: two halves of them side by side; always two, so that no figure depends
    # on the machine
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, (slice(0, m // 2), slice(m // 2, m))))
    return held


def _check(span: _Spans, first: int) -> None:
    start_ns, end_ns = span
    if "f" in {start_ns.dtype.kind, end_ns.dtype.kind} and not (
        np.isfinite(start_ns).all() and np.isfinite(end_ns).all()
    ):
        raise ValueError("an instant is not finite")
    if bool(np.any(end_ns < start_ns)):
        raise ValueError(f"slice {first + int(np.argmax(end_ns < start_ns))} ends before it starts")


def _arrange(trace: EnergyTrace, start_ns: Instants, end_ns: Instants) -> tuple[Ints, Floats, Ints]:
    # the bounds in order of time as the kernels want them, and which bound each of them is
    bits = (2 * start_ns.size).bit_length()
    if (
        trace.edges_ns is None
        and trace.step_ns.is_integer()
        and start_ns.dtype == np.int64
        and (trace.end_ns - trace.start_ns).bit_length() <= min(52, 62 - bits)
    ):
        from joulemap.trace import kernels  # noqa: PLC0415  loaded already: only the kernels want this

        words = np.empty(2 * start_ns.size, np.int64)
        kernels.pack_bounds(np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64), bits, words)
        words.sort()
        where, part_ns = np.empty(words.size, np.int64), np.empty(words.size)
        kernels.unpack_bounds(words, bits, int(trace.step_ns), where, part_ns)
        return where, part_ns, words
    bounds_ns, order = sort_instants(np.concatenate([start_ns, end_ns]))
    if trace.edges_ns is None:
        index, offset_ns = locate_instants(trace, bounds_ns)
        return index, offset_ns, order
    whole_ns, part_ns = split_instants(bounds_ns)
    return whole_ns + np.int64(trace.start_ns), part_ns, order


def _run_kernel(samples: Samples, places: tuple[Ints, Floats, Ints], energy_j: Floats) -> None:
    from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

    opened = np.empty((energy_j.size, 4))
    if samples.edges_ns is None:
        assert samples.step_ns is not None  # exactly one of the two is given
        kernels.integrate_uniform(
            samples.power_w, samples.step_ns, *places, samples.runs, samples.point, 0.0, opened, energy_j
        )
    else:
        kernels.integrate_edges(
            samples.power_w, samples.edges_ns, *places, samples.runs, samples.point, 0.0, opened, energy_j
        )
    energy_j *= 1e-9
