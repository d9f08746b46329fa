"""Room for the samples of a long recording that does not grow the memory of the process."""

from __future__ import annotations

import mmap
import tempfile
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["release_pages", "sample_store"]

_STORE_B: Final = 64 << 20


def sample_store(count: int) -> NDArray[np.float32]:
    """Returns room for samples; beyond 64 MiB it lies in an unnamed temporary file, so that memory stays bounded."""
    if count * 4 <= _STORE_B:
        return np.zeros(count, np.float32)
    with tempfile.TemporaryFile(prefix="joulemap-") as handle:
        handle.truncate(count * 4)
        return np.memmap(handle, np.float32, "r+", shape=(count,))


def release_pages(store: NDArray[np.float32] | NDArray[np.float64]) -> None:
    """Lets the system take back the memory of samples that lie in a temporary file; their values stay."""
    mapped = getattr(store, "_mmap", None)
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)
