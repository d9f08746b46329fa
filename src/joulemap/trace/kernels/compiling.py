"""The one place that imports numba: how plain loops over arrays are compiled and kept.

Whoever compiles with it is imported late, when the work pays for loading numba. It must not know what is compiled.

References:
    Numba documentation, "Fastmath" (each flag by name) and "Notes on caching".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["compiled", "vectorised"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Returns the function compiled without the interpreter's lock; every rounding is as written."""
    result: _Function = numba.njit(cache=True, nogil=True)(function)
    return result


def vectorised(function: _Function) -> _Function:
    """Returns the function compiled so that sums may be taken in any order, in vectors.

    NaN and infinity keep their meaning. Only for partial sums of bounded length: the order is not the written one.
    """
    result: _Function = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
    return result
