"""Compiled steps of a pass over streamed samples: products without what is lost, and sums between instants.

Their twin in plain numpy is in :mod:`joulemap.trace.passes`, which imports this late, when the work pays for it. A
part is a few hundred thousand samples: what is made of it stays in the cache. It must not know clocks or traces.

References:
    D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2 (TwoSum).
"""

# ruff: noqa: PLR0913, PLR0917  compiled functions take plain positional arrays: numba knows no records
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import compiled, vectorised
from joulemap.trace.kernels.integrals import BLOCK, add

__all__ = ["fill_between", "multiply_samples"]

_Power = NDArray[np.float32] | NDArray[np.float64]


@vectorised
def _span_sum(power_w: NDArray[np.float64]) -> float:
    total = 0.0
    for k in range(len(power_w)):
        total += power_w[k]
    return total


@vectorised
def _multiply_block(first: _Power, second: _Power, out: NDArray[np.float64]) -> tuple[float, float]:
    # 0 for what is not finite; a difference with itself is 0 for every other number
    total, lost = 0.0, 0.0
    for k in range(len(out)):
        watts = np.float64(first[k]) * np.float64(second[k])
        good = watts - watts == 0.0
        kept = watts if good else 0.0
        out[k] = kept
        total += kept
        lost += 0.0 if good else 1.0
    return total, lost


@vectorised
def _correct_block(
    first: _Power, second: _Power, scale: float, offset_w: float, gain: float, out: NDArray[np.float64]
) -> tuple[float, float]:
    total, lost = 0.0, 0.0
    for k in range(len(out)):
        watts = np.float64(first[k])
        if len(second):
            watts *= np.float64(second[k])
        watts = (watts * scale - offset_w) / gain
        good = watts - watts == 0.0
        kept = watts if good else 0.0
        out[k] = kept
        total += kept
        lost += 0.0 if good else 1.0
    return total, lost


@compiled
def multiply_samples(
    first: _Power, second: _Power, scale: float, offset_w: float, gain: float, out: NDArray[np.float64]
) -> tuple[float, float]:
    """Fills the power of samples, W, 0 where it is not finite, and returns its sum and how many were lost.

    Args:
        first: (n,) one factor.
        second: (n,) or (0,) the other one.
        scale: W per unit of the product.
        offset_w: taken out then, W.
        gain: divided by then.
        out: (n,) W.
    """
    plain = len(second) > 0 and scale == 1.0 and offset_w == 0.0 and gain == 1.0
    high, low, lost = 0.0, 0.0, 0.0
    for at in range(0, len(out), BLOCK):
        end = min(at + BLOCK, len(out))
        if plain:
            total, bad = _multiply_block(first[at:end], second[at:end], out[at:end])
        else:
            total, bad = _correct_block(first[at:end], second[at:end], scale, offset_w, gain, out[at:end])
        high, low = add(high, low, total)
        lost += bad
    return high + low, lost


@compiled
def fill_between(
    power_w: NDArray[np.float64],
    first: int,
    step_ns: float,
    index: NDArray[np.int64],
    offset_ns: NDArray[np.float64],
    done: int,
    at: NDArray[np.int64],
    rest: NDArray[np.float64],
    energy_wns: NDArray[np.float64],
) -> int:
    """Fills the energies up to the instants that a part of the samples reaches, W ns, and returns how many are filled.

    Args:
        power_w: (n,) W, the part; 0 where lost.
        first: index of its first sample.
        step_ns: length of an interval, ns.
        index: (k,) interval of every instant, in order.
        offset_ns: (k,) ns into that interval.
        done: instants that were filled before.
        at: (1,) interval of the last instant or, while more of them are wanted, the end of the part; in and out.
        rest: (3,) ns into it; energy since the last instant as a double-double; in and out.
        energy_wns: (k,) out.
    """
    end = first + len(power_w)
    here, here_ns, high, low = at[0], rest[0], rest[1], rest[2]
    while done <= len(index):
        more = done < len(index) and (index[done] < end or (index[done] == end and offset_ns[done] == 0.0))
        if more:
            there, there_ns = index[done], offset_ns[done]
        elif done < len(index) and here < end:
            there, there_ns = end, 0.0  # the rest of the part
        else:
            break
        if there == here:
            if there_ns > here_ns:
                high, low = add(high, low, power_w[here - first] * (there_ns - here_ns))
        else:
            if here_ns > 0.0:
                high, low = add(high, low, power_w[here - first] * (step_ns - here_ns))
                here += 1
            while here < there:
                stop = min(there, here + BLOCK)
                high, low = add(high, low, step_ns * _span_sum(power_w[here - first : stop - first]))
                here = stop
            if there_ns > 0.0:
                high, low = add(high, low, power_w[there - first] * there_ns)
        here, here_ns = there, there_ns
        if not more:
            break
        energy_wns[done] = high + low
        high, low = 0.0, 0.0
        done += 1
    at[0], rest[0], rest[1], rest[2] = here, here_ns, high, low
    return done
