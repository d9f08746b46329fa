"""One colour per kind of operation, the same in every report: index into the palette of the page. Pure.

References:
    Okabe and Ito, Color Universal Design, 2008: eight colours that stay apart for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["NEUTRAL", "PALETTE", "assign_colors"]

PALETTE = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#f0e442", "#8a8f96")
"""Okabe and Ito without black, and grey for what is no operation."""

NEUTRAL = 7

_FIXED = {
    "CONV": 0,
    "CONV_2D": 0,
    "CONVOLUTION": 0,
    "DEPTHWISE_CONV_2D": 1,
    "TRANSPOSE_CONV": 1,
    "FULLY_CONNECTED": 2,
    "GEMM": 2,
    "MATMUL": 2,
    "BATCH_MATMUL": 2,
    "ADD": 3,
    "MUL": 3,
    "SUB": 3,
    "AVERAGE_POOL_2D": 4,
    "MAX_POOL_2D": 4,
    "MEAN": 4,
    "SOFTMAX": 5,
    "LOGISTIC": 5,
    "ATTENTION": 5,
    "RESHAPE": 6,
    "PAD": 6,
    "QUANTIZE": 6,
    "CONCATENATION": 6,
    "TRANSPOSE": 6,
}


def assign_colors(ops: Iterable[str]) -> dict[str, int]:
    """Returns the colour of each kind: the fixed one where it has one, else the first that is still free.

    When none is free the kinds that are left share grey: a colour never stands for two kinds of one report unless
    both have it by convention.

    Args:
        ops: kinds of operation, the most important first.
    """
    kinds = list(dict.fromkeys(ops))
    colors = {op: _FIXED[op.upper()] for op in kinds if op.upper() in _FIXED}
    free = [k for k in range(NEUTRAL) if k not in colors.values()]
    for op in kinds:
        if op not in colors:
            colors[op] = free.pop(0) if op and free else NEUTRAL
    return colors
