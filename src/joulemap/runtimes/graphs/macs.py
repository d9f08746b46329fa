"""Multiply-accumulates of an operator from the shapes of its inputs and outputs, for ONNX and TFLite kinds alike.

Padded positions are counted, elementwise work is not. A kind that is not listed has none: its energy is still
measured, only its operations are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["Shape", "count_macs"]

Shape = tuple[int, ...]
_Shapes = Sequence[Shape]


def count_macs(op: str, inputs: _Shapes, outputs: _Shapes) -> int:
    """Returns multiply-accumulates of one execution; 0 where the kind has none or the shapes do not tell.

    Args:
        op: kind of the operator, ``Conv`` or ``CONV_2D``.
        inputs: shapes in order; an empty shape is a scalar, a missing input is left out.
        outputs: shapes in order.
    """
    rule = _RULES.get(op)
    if rule is None or not outputs:
        return 0
    try:
        return max(rule(inputs, outputs), 0)
    except (IndexError, ZeroDivisionError):
        return 0


def _convolution(inputs: _Shapes, outputs: _Shapes) -> int:
    """Weights are (M, C / group, kernel...): each output element takes one row of them."""
    weights = next(shape for shape in inputs[1:] if len(shape) == len(inputs[0]))
    return math.prod(outputs[0]) * math.prod(weights[1:])


def _quantised_convolution(inputs: _Shapes, outputs: _Shapes) -> int:
    weights = max((shape for shape in inputs[1:] if len(shape) > 2), key=math.prod)
    return math.prod(outputs[0]) * math.prod(weights[1:])


def _transposed_convolution(inputs: _Shapes, outputs: _Shapes) -> int:
    del outputs
    return math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _product(inputs: _Shapes, outputs: _Shapes) -> int:
    return math.prod(outputs[0]) * inputs[0][-1]


def _general_product(inputs: _Shapes, outputs: _Shapes) -> int:
    """A may be transposed: its elements over the rows of the result are the inner dimension either way."""
    return math.prod(outputs[0]) * (math.prod(inputs[0]) // outputs[0][0])


def _recurrent(gates: int) -> Callable[[_Shapes, _Shapes], int]:
    def rule(inputs: _Shapes, outputs: _Shapes) -> int:
        """X is (steps, batch, input), W is (directions, gates * hidden, input), R is (directions, ., hidden)."""
        del outputs
        steps, batch, width = inputs[0]
        directions, _, hidden = inputs[2]
        return steps * batch * directions * gates * hidden * (width + hidden)

    return rule


def _attention(inputs: _Shapes, outputs: _Shapes) -> int:
    """Fused projection and attention: X is (batch, steps, width), the weights are (width, 3 * hidden)."""
    batch, steps, width = inputs[0]
    hidden = outputs[0][-1]
    return batch * steps * width * inputs[1][-1] + 2 * batch * steps * steps * hidden


def _heads(inputs: _Shapes, outputs: _Shapes) -> int:
    """Attention alone: every query meets every key, every score meets every value."""
    queries, keys = inputs[0], inputs[1] if len(inputs) > 1 else inputs[0]
    return 2 * math.prod(queries[:-1]) * keys[-2] * queries[-1] if outputs else 0


def _fully_connected(inputs: _Shapes, outputs: _Shapes) -> int:
    """TFLite's weights are (units, width)."""
    return math.prod(outputs[0]) * inputs[1][-1]


def _lite_convolution(inputs: _Shapes, outputs: _Shapes) -> int:
    """TFLite's weights are (M, height, width, C)."""
    return math.prod(outputs[0]) * math.prod(inputs[1][1:])


def _lite_depthwise(inputs: _Shapes, outputs: _Shapes) -> int:
    """TFLite's weights are (1, height, width, M)."""
    return math.prod(outputs[0]) * math.prod(inputs[1][1:3])


def _lite_transposed(inputs: _Shapes, outputs: _Shapes) -> int:
    """Inputs are the output's shape, weights (M, height, width, C), and X (batch, height, width, C)."""
    del outputs
    return math.prod(inputs[2]) * math.prod(inputs[1][:3])


def _lite_product(inputs: _Shapes, outputs: _Shapes) -> int:
    return math.prod(outputs[0]) * inputs[0][-1]


_RULES: Final[dict[str, Callable[[_Shapes, _Shapes], int]]] = {
    "Conv": _convolution,
    "FusedConv": _convolution,
    "NhwcFusedConv": _convolution,
    "ConvInteger": _convolution,
    "QLinearConv": _quantised_convolution,
    "ConvTranspose": _transposed_convolution,
    "MatMul": _product,
    "FusedMatMul": _product,
    "MatMulInteger": _product,
    "QLinearMatMul": _product,
    "MatMulNBits": _product,
    "DynamicQuantizeMatMul": _product,
    "MatMulIntegerToFloat": _product,
    "Gemm": _general_product,
    "FusedGemm": _general_product,
    "QGemm": _general_product,
    "LSTM": _recurrent(4),
    "DynamicQuantizeLSTM": _recurrent(4),
    "GRU": _recurrent(3),
    "RNN": _recurrent(1),
    "Attention": _attention,
    "MultiHeadAttention": _heads,
    "GroupQueryAttention": _heads,
    "CONV_2D": _lite_convolution,
    "DEPTHWISE_CONV_2D": _lite_depthwise,
    "TRANSPOSE_CONV": _lite_transposed,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _lite_product,
}
