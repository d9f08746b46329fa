"""The one place that imports numba: how plain loops over arrays are compiled and kept.

Whoever compiles with it is imported late, when the work pays for loading numba. It must not know what is compiled.

References:
    Numba documentation, "Fastmath" (each flag by name) and "Notes on caching".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir  # numba's own
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["borrowed", "compiled", "prefetch_row", "vectorised"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Returns the function compiled without the interpreter's lock; every rounding is as written."""
    result: _Function = numba.njit(cache=True, nogil=True)(function)
    return result


def borrowed(function: _Function) -> _Function:
    """Returns the same as :func:`compiled` for a function that makes no array and keeps none: nothing is counted.

    Handing arrays on counts their users by atomic operations; in a loop over small things that costs more than they do.
    """
    result: _Function = numba.njit(cache=True, nogil=True, _nrt=False)(function)
    return result


def vectorised(function: _Function) -> _Function:
    """Returns the function compiled so that sums may be taken in any order, in vectors.

    NaN and infinity keep their meaning. Only for partial sums of bounded length: the order is not the written one.
    """
    result: _Function = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
    return result


@intrinsic  # type: ignore[untyped-decorator]
def prefetch_row(_typing: Any, table: Any, row: Any) -> Any:  # noqa: ARG001  typed below, as every index is
    """Asks for a row of a (m, k) table that will be read or written soon; changes nothing.

    References:
        LLVM Language Reference, "llvm.prefetch" (write, high locality, data cache).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        byte = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(array.data, byte), [builder.mul(stride, arguments[1])])
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(function, [address, *(ir.Constant(word, value) for value in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(table, types.intp), generate
