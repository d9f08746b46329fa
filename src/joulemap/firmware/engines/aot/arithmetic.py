"""Quantisation constants, computed as TensorFlow Lite Micro computes them: doubles of float32 scales, then fixed point.

Pure; must not know tensors or operators.

References:
    Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
    CVPR 2018, section 2.2; tensorflow/lite/kernels/internal/quantization_util.cc for the rounding of each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = [
    "FixedMultiplier",
    "activation_range",
    "input_radius",
    "padding_before",
    "quantize_multiplier",
    "round_half_away",
    "windowed_extent",
]

INT8_MIN, INT8_MAX = -128, 127


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedMultiplier:
    """A positive real as multiplier / 2^31 times 2^shift.

    Args:
        multiplier: 0, or in [2^30, 2^31).
        shift: left shift when positive, right shift when negative.
    """

    multiplier: int
    shift: int


def round_half_away(value: float) -> int:
    """Returns the nearest integer, halves away from zero (C's ``round``)."""
    magnitude = math.floor(abs(value) + 0.5) if abs(value) < 2**52 else int(abs(value))
    return magnitude if value >= 0 else -magnitude


def quantize_multiplier(real: float) -> FixedMultiplier:
    """Returns the fixed-point form of ``real`` >= 0; too small a number becomes 0, as in the reference."""
    fraction, shift = math.frexp(real)
    multiplier = round_half_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if multiplier == 0 or shift < -31:
        return FixedMultiplier(multiplier=0, shift=0)
    return FixedMultiplier(multiplier=multiplier, shift=shift)


def activation_range(activation: str, scale: float, zero_point: int) -> tuple[int, int] | None:
    """Returns the clamp of a fused activation in quantised steps, or None for one that is not known.

    Args:
        activation: schema name of the fused activation.
        scale: of the output, a float32 value.
        zero_point: of the output.
    """

    def step(real: float) -> int:
        ratio = min(max(real / scale, -(2.0**31)), 2.0**31)  # a double quotient rounds to the float32 quotient
        return zero_point + round_half_away(float(np.float32(ratio)))

    match activation:
        case "NONE":
            return INT8_MIN, INT8_MAX
        case "RELU":
            return max(INT8_MIN, step(0.0)), INT8_MAX
        case "RELU6":
            return max(INT8_MIN, step(0.0)), min(INT8_MAX, step(6.0))
        case "RELU_N1_TO_1":
            return max(INT8_MIN, step(-1.0)), min(INT8_MAX, step(1.0))
    return None


def windowed_extent(extent: int, window: int, *, stride: int, dilation: int, same: bool) -> int:
    """Returns the output extent of a sliding window; not positive when the window does not fit."""
    if same:
        return (extent + stride - 1) // stride
    return (extent - ((window - 1) * dilation + 1)) // stride + 1


def padding_before(extent: int, window: int, *, stride: int, dilation: int, same: bool) -> int:
    """Returns the padding in front of an axis; the odd cell of SAME padding goes behind."""
    if not same:
        return 0
    out = windowed_extent(extent, window, stride=stride, dilation=dilation, same=True)
    return max(0, (out - 1) * stride + (window - 1) * dilation + 1 - extent) // 2


def input_radius(integer_bits: int, left_shift: int) -> int:
    """Returns the largest input step that a fixed-point function with ``integer_bits`` integer bits can tell apart."""
    largest = ((1 << integer_bits) - 1) * (1 << (31 - integer_bits)) / (1 << left_shift)
    return math.floor(largest)
