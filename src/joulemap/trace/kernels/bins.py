"""Lowest, highest and energy of consecutive bins of a uniform trace, in one pass over the samples.

Extremes are taken over the bits: a float's bits, with all but the sign flipped where it is negative, are in the order
of the floats as whole numbers, and whole numbers have vector minima on every processor, whatever NaN would mean. So
one pass loads each sample once and is bound by memory. Sums are those of ``integrals``: plain within a block of
bounded length, double-double across blocks. The twin in plain numpy is in ``resample``.

References:
    IEEE 754-2019, 5.10 (total order of the formats' encodings).
"""

# ruff: noqa: PLR0913, PLR0917  compiled functions take plain positional arrays: numba knows no records
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.trace.kernels.compiling import borrowed, vectorised
from joulemap.trace.kernels.integrals import BLOCK, add, piece, run_at

__all__ = ["bin_uniform"]

_Power = NDArray[np.float32] | NDArray[np.float64]
_Bits = NDArray[np.int32] | NDArray[np.int64]


@vectorised
def _survey(power_w: _Power, bits: _Bits, sign: int, mask: int) -> tuple[float, int, int]:
    # (sum, lowest key, highest key) of a few thousand samples; sign and mask are of the type of the bits
    total = 0.0
    low = mask
    high = ~mask
    for k in range(len(power_w)):
        total += np.float64(power_w[k])
        key = bits[k] ^ ((bits[k] >> sign) & mask)
        low = min(low, key)
        high = max(high, key)
    return total, low, high


@borrowed
def bin_uniform(
    power_w: _Power,
    bits: _Bits,
    sign: int,
    mask: int,
    step_ns: float,
    index: NDArray[np.int64],
    offset_ns: NDArray[np.float64],
    runs: NDArray[np.int64],
    point: bool,
    energy_wns: NDArray[np.float64],
    keys: _Bits,
) -> None:
    """Fills energy and extremes of every bin.

    Args:
        power_w: (n,) W.
        bits: (n,) the same memory as whole numbers.
        sign: 31 or 63, a scalar of the type of ``bits``: the place of the sign.
        mask: all bits but the sign, a scalar of that type.
        step_ns: length of an interval, ns.
        index: (b + 1,) interval of every edge in order of time; n for an edge at the very end.
        offset_ns: (b + 1,) ns into that interval.
        runs: (r, 2) half-open ranges of samples that were not lost, sorted and disjoint.
        point: power is linear between samples (trapezoid) instead of constant over each interval.
        energy_wns: (b,) out, W ns.
        keys: (b, 2) out: lowest and highest sample that a bin overlaps, as ordered keys; the lowest above the highest
            where all are lost.
    """
    run = 0
    for k in range(len(energy_wns)):
        first, last = index[k], index[k + 1]
        lowest, highest = mask, ~mask
        high, low = 0.0, 0.0  # sum of whole intervals, in units of one
        ends_wns = 0.0
        # the interval that holds the bin's start, and the one that holds its end
        run, run_begin, run_end = run_at(runs, run, first)
        seen = run_begin <= first < run_end
        if seen and (last > first or offset_ns[k + 1] > offset_ns[k]):
            here_w = np.float64(power_w[first])
            next_w = np.float64(power_w[first + 1]) if point and first + 1 < run_end else here_w
            until_ns = step_ns if last > first else offset_ns[k + 1]
            ends_wns += piece(here_w, next_w, (offset_ns[k], until_ns), step_ns)
            _, lowest, highest = _survey(power_w[first : first + 1], bits[first : first + 1], sign, mask)
        position = first + 1
        while position < last:
            run, run_begin, run_end = run_at(runs, run, position)
            begin = max(position, run_begin)
            if run == len(runs) or begin >= last:
                break
            position = min(last, run_end, begin + BLOCK)
            total, least, most = _survey(power_w[begin:position], bits[begin:position], sign, mask)
            if point:
                following = position if position < run_end else position - 1
                total += 0.5 * (np.float64(power_w[following]) - np.float64(power_w[begin]))
            high, low = add(high, low, total)
            lowest, highest = min(lowest, least), max(highest, most)
        if last > first and offset_ns[k + 1] > 0.0:
            run, run_begin, run_end = run_at(runs, run, last)
            if run_begin <= last < run_end:
                here_w = np.float64(power_w[last])
                next_w = np.float64(power_w[last + 1]) if point and last + 1 < run_end else here_w
                ends_wns += piece(here_w, next_w, (0.0, offset_ns[k + 1]), step_ns)
                _, least, most = _survey(power_w[last : last + 1], bits[last : last + 1], sign, mask)
                lowest, highest = min(lowest, least), max(highest, most)
        energy_wns[k] = (high + low) * step_ns + ends_wns
        keys[k, 0], keys[k, 1] = lowest, highest
