"""Samples that lie in a mapped file: their pages are given back while a pass goes on, so that memory stays bounded."""

from __future__ import annotations

import mmap

import numpy as np

from joulemap.trace.trace import EnergyTrace

__all__ = ["release_samples"]


def release_samples(trace: EnergyTrace) -> None:
    """Lets the system take back the memory of samples that lie in a mapped file; their values stay."""
    array: object = trace.power_w
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap):
        array.madvise(mmap.MADV_DONTNEED)
