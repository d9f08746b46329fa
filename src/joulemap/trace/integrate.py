"""Exact energy of slices of a trace: fractional edges, uniform or not, means or points, gaps left out.

A mean (``INTERVAL_MEAN``, ``COUNTER``) is constant over its interval (zero-order hold over what the sample covers);
a ``POINT`` sample is the power at the *start* of its interval and power is linear from one to the next (trapezoid);
the last point of a run of samples is held to the end of its interval. A sensor's latency and clock are corrected
before, by alignment: here an instant means what the trace's clock says.

Slices that reach outside the trace or over lost samples keep the energy that was seen, and ``covered_s`` says how
much time that is: missing is never 0.

References:
    METHODS 1.1 in docs/methods.md (which rule for which sample).
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.channel import KernelKind
from joulemap.trace.reference import Positions, Samples, integrate_positions
from joulemap.trace.trace import EnergyTrace

__all__ = [
    "Backend",
    "IntegratedEnergy",
    "cumulative_energy_j",
    "integrate_energy",
    "integrate_offsets",
    "mean_power",
    "peak_power",
]

Backend = Literal["auto", "numpy", "numba"]
Instants = NDArray[np.int64] | NDArray[np.float64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NUMBA_PAYS = (
    1.5e8  # samples + 60 per slice: below it numpy is done before numba is imported (benchmarks/bench_integrate)
)
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
        ImportError: backend ``numba`` without numba.
    """
    start, end = np.atleast_1d(np.asarray(start_ns)), np.atleast_1d(np.asarray(end_ns))
    if not (np.issubdtype(start.dtype, np.floating) or np.issubdtype(end.dtype, np.floating)):
        return _integrate(trace, _relative(trace, start), _relative(trace, end), backend)
    if abs(trace.start_ns) >= _WHOLE_NS_LIMIT or abs(trace.end_ns) >= _WHOLE_NS_LIMIT:
        raise ValueError(
            f"float64 cannot hold nanoseconds near {trace.start_ns}; give int64 instants, or seconds from the start"
            " of the trace to integrate_offsets"
        )
    origin = float(trace.start_ns)
    return _integrate(trace, start.astype(np.float64) - origin, end.astype(np.float64) - origin, backend)


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
    start = np.atleast_1d(np.asarray(start_s, np.float64)) * 1e9
    return _integrate(trace, start, np.atleast_1d(np.asarray(end_s, np.float64)) * 1e9, backend)


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
    origin = trace.start_ns
    relative = _relative(trace, bounds) if bounds.dtype == np.int64 else bounds - float(origin)
    first, last = _clip(trace, relative)
    located, offset_ns = _locate(trace, np.array([first, last]))
    begin, end = int(located[0]), int(located[1]) + (1 if offset_ns[1] > 0 else 0)
    runs = np.clip(_runs(trace), begin, end)
    peaks = [float(trace.power_w[a:b].max()) for a, b in runs if b > a]
    return max(peaks, default=float("nan"))


def _relative(trace: EnergyTrace, instants: NDArray[np.number]) -> Ints:
    # ns from the start of the trace, clipped before the difference so that far-away instants cannot overflow
    whole = instants.astype(np.int64)
    clipped: Ints = np.clip(whole, trace.start_ns, trace.end_ns + 1)
    return np.asarray(clipped - np.int64(trace.start_ns), np.int64)


def _step_ns(trace: EnergyTrace) -> float:
    # 1e-6 s * 1e9 need not be 1000 to the last bit; a period that was meant as whole ns is taken as such
    assert trace.period_s is not None  # asked of uniform traces only
    step_ns = trace.period_s * 1e9
    whole = round(step_ns)
    return float(whole) if whole and abs(step_ns - whole) <= 4e-16 * whole else step_ns


def _clip(trace: EnergyTrace, relative_ns: Instants) -> Instants:
    if trace.edges_ns is not None:
        length_ns = int(trace.edges_ns[-1]) - int(trace.edges_ns[0])
        return _typed(np.clip(relative_ns, 0, length_ns))
    end_ns = trace.n * _step_ns(trace)
    if relative_ns.dtype == np.int64 and end_ns.is_integer():
        return _typed(np.clip(relative_ns, 0, int(end_ns)))
    return _typed(np.clip(relative_ns.astype(np.float64), 0.0, end_ns))


def _typed(instants: NDArray[Any]) -> Instants:
    return instants  # int64 stays int64: only numpy's stubs lose the width


def _split(relative_ns: Instants) -> tuple[Ints, Floats]:
    # whole ns and what rounding down took away; nothing when all are whole
    if relative_ns.dtype == np.int64:
        return np.asarray(relative_ns, np.int64), np.empty(0)
    whole_ns = np.floor(relative_ns)
    return whole_ns.astype(np.int64), np.asarray(relative_ns - whole_ns, np.float64)


def _locate(trace: EnergyTrace, relative_ns: Instants) -> tuple[Ints, Floats]:
    # interval and ns into it of every clipped instant; (n, 0) at the very end
    if trace.edges_ns is not None:
        whole_ns, part_ns = _split(relative_ns)
        whole_ns = whole_ns + np.int64(trace.start_ns)
        index = np.searchsorted(trace.edges_ns, whole_ns, side="right").astype(np.int64) - 1
        offset_ns = (whole_ns - trace.edges_ns[index]).astype(np.float64)
        return index, offset_ns + part_ns if part_ns.size else offset_ns
    step_ns = _step_ns(trace)
    if relative_ns.dtype == np.int64 and step_ns.is_integer():
        index = np.asarray(relative_ns // np.int64(step_ns), np.int64)
        return index, (relative_ns - index * np.int64(step_ns)).astype(np.float64)
    offset_ns = np.fmod(relative_ns.astype(np.float64), step_ns)  # exact, unlike the product of index and step
    return np.rint((relative_ns - offset_ns) / step_ns).astype(np.int64), offset_ns


def _runs(trace: EnergyTrace) -> Ints:
    inner = np.concatenate([[0], trace.gaps.ravel(), [trace.n]]).astype(np.int64).reshape(-1, 2)
    return inner[inner[:, 1] > inner[:, 0]]


def _samples(trace: EnergyTrace) -> Samples:
    return Samples(
        power_w=trace.power_w,
        step_ns=_step_ns(trace) if trace.uniform else None,
        edges_ns=trace.edges_ns,
        runs=_runs(trace),
        point=trace.channel.kernel.kind is KernelKind.POINT,
    )


def _covered_s(trace: EnergyTrace, start_ns: Instants, end_ns: Instants) -> Floats:
    covered_ns = (end_ns - start_ns).astype(np.float64)
    if trace.gaps.size:
        gaps = trace.gaps
        edges_ns = (
            trace.edges_ns[gaps] - np.int64(trace.start_ns) if trace.edges_ns is not None else gaps * _step_ns(trace)
        ).astype(np.float64)
        begins, lengths = edges_ns[:, 0], edges_ns[:, 1] - edges_ns[:, 0]
        before = np.concatenate([[0.0], np.cumsum(lengths)])

        def lost_ns(instants: Instants) -> Floats:
            gap = np.searchsorted(begins, instants, side="right")
            inside = np.minimum(instants - begins[np.maximum(gap - 1, 0)], lengths[np.maximum(gap - 1, 0)])
            return np.where(gap > 0, before[np.maximum(gap - 1, 0)] + inside, 0.0)

        covered_ns -= lost_ns(end_ns) - lost_ns(start_ns)
    return np.maximum(covered_ns, 0.0) * 1e-9


def _compiled_pays(samples: int, slices: int) -> bool:
    if importlib.util.find_spec("numba") is None:
        return False
    return "joulemap.trace.kernels" in sys.modules or samples + 60 * slices >= _NUMBA_PAYS


def _integrate(trace: EnergyTrace, start_ns: Instants, end_ns: Instants, backend: Backend) -> IntegratedEnergy:
    if start_ns.shape != end_ns.shape or start_ns.ndim != 1:
        raise ValueError(f"starts and ends must be (m,), got {start_ns.shape} and {end_ns.shape}")
    if not (np.isfinite(start_ns).all() and np.isfinite(end_ns).all()):
        raise ValueError("an instant is not finite")
    if bool(np.any(end_ns < start_ns)):
        raise ValueError(f"slice {int(np.argmax(end_ns < start_ns))} ends before it starts")
    start_ns, end_ns = _clip(trace, start_ns), _clip(trace, end_ns)
    covered_s = _covered_s(trace, start_ns, end_ns)
    if backend == "numba" or (backend == "auto" and _compiled_pays(trace.n, start_ns.size)):
        energy_j = _integrate_compiled(trace, start_ns, end_ns)
    else:
        start, start_in_ns = _locate(trace, start_ns)
        end, end_in_ns = _locate(trace, end_ns)
        positions = Positions(start=start, start_ns=start_in_ns, end=end, end_ns=end_in_ns)
        energy_j = integrate_positions(_samples(trace), positions) * 1e-9
    return IntegratedEnergy(energy_j=energy_j, covered_s=covered_s)


def _integrate_compiled(trace: EnergyTrace, start_ns: Instants, end_ns: Instants) -> Floats:
    from joulemap.trace import kernels  # noqa: PLC0415  imports numba, only when the work pays for it

    samples = _samples(trace)
    bounds_ns = np.concatenate([start_ns, end_ns])
    order = np.argsort(bounds_ns)
    energy_wns = np.empty(start_ns.size)
    if trace.edges_ns is None:
        index, offset_ns = _locate(trace, bounds_ns)
        del bounds_ns
        kernels.integrate_uniform(
            samples.power_w, _step_ns(trace), index, offset_ns, order, samples.runs, samples.point, 0.0, energy_wns
        )
    else:
        whole_ns, part_ns = _split(bounds_ns)
        del bounds_ns
        whole_ns += np.int64(trace.start_ns)
        kernels.integrate_edges(
            samples.power_w, trace.edges_ns, whole_ns, part_ns, order, samples.runs, samples.point, 0.0, energy_wns
        )
    energy_wns[start_ns == end_ns] = 0.0  # the end of an empty slice may be visited before its start
    energy_wns *= 1e-9
    return energy_wns
