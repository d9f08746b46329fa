"""What an op's lowering may ask of the graph, with errors that name operator and tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import EngineError
from joulemap.firmware.engines.aot.arithmetic import FixedMultiplier, activation_range, quantize_multiplier
from joulemap.firmware.engines.aot.program import ConstantArray
from joulemap.firmware.engines.aot.tflite.graph import DTYPES, Operator, Quantization, Tensor, engine_error
from joulemap.firmware.engines.aot.tflite.schema import enum_names

__all__ = ["OpContext"]

_SHIFT_LIMIT = 30


class OpContext:
    """One operator with the tensors that it names.

    Args:
        operator: the operator.
        tensors: all tensors of the graph; those folded so far carry content.
    """

    def __init__(self, operator: Operator, tensors: Sequence[Tensor]) -> None:
        self.operator = operator
        self._tensors = tensors

    def error(self, slug: str, message: str, tensor: Tensor | None = None) -> EngineError:
        """Returns an error about this operator."""
        return engine_error(slug, message, operator=self.operator, tensor=tensor)

    def option(self, name: str) -> Any:
        """Returns a field of the options table."""
        return self.operator.options[name]

    def require_operands(self, inputs: range, outputs: int = 1) -> None:
        """Raises EngineError unless the operator has as many inputs and outputs as its kind takes."""
        count = len(self.operator.inputs)
        if count not in inputs or len(self.operator.outputs) != outputs:
            raise self.error("corrupt-model", f"{count} inputs and {len(self.operator.outputs)} outputs")

    def optional_input(self, position: int) -> Tensor | None:
        """Returns an input, or None when it is absent."""
        if position >= len(self.operator.inputs) or self.operator.inputs[position] < 0:
            return None
        return self._tensors[self.operator.inputs[position]]

    def input(self, position: int, *dtypes: str, rank: int | None = None) -> Tensor:
        """Returns an input of one of ``dtypes`` and, when given, of that rank.

        Raises:
            EngineError: absent, of another type or of another rank.
        """
        tensor = self.optional_input(position)
        if tensor is None:
            raise self.error("corrupt-model", f"input {position} is absent")
        return self._checked(tensor, dtypes, rank)

    def output(self, *dtypes: str, rank: int | None = None) -> Tensor:
        """Returns the output; raises as ``input`` does."""
        return self._checked(self._tensors[self.operator.outputs[0]], dtypes, rank)

    def _checked(self, tensor: Tensor, dtypes: tuple[str, ...], rank: int | None) -> Tensor:
        if tensor.dtype not in (dtypes or DTYPES):
            wanted = " or ".join(dtypes or DTYPES)
            raise self.error("unsupported-dtype", f"{tensor.dtype}, only {wanted} is taken here", tensor)
        if rank is not None and len(tensor.shape) != rank:
            raise self.error("corrupt-model", f"shape {tensor.shape} does not have {rank} dimensions", tensor)
        return tensor

    def constant(self, position: int, *dtypes: str, rank: int | None = None) -> tuple[Tensor, NDArray[Any]]:
        """Returns an input that must have content, and that content."""
        tensor = self.input(position, *dtypes, rank=rank)
        if tensor.data is None:
            raise self.error("unsupported-op", "it must be constant, and is computed at run time", tensor)
        return tensor, tensor.data

    def require_shape(self, tensor: Tensor, expected: tuple[int, ...]) -> None:
        """Raises EngineError unless the tensor has the shape that the operator implies."""
        if tensor.shape != expected:
            raise self.error("corrupt-model", f"shape {tensor.shape}, the operator makes {expected}", tensor)

    def quantization(self, tensor: Tensor) -> Quantization:
        """Returns the per-tensor quantisation of an activation.

        Raises:
            EngineError: none, per channel, a scale of 0, or a zero point outside the type.
        """
        quantization = tensor.quantization
        if quantization is None:
            raise self.error("unsupported-quantization", "it has no scale; only quantised tensors are taken", tensor)
        if len(quantization.scales) != 1:
            raise self.error("unsupported-quantization", "an activation is quantised per channel", tensor)
        if not np.float32(2.0**-100) < quantization.scales[0] < np.float32(2.0**100):
            raise self.error("unsupported-quantization", f"scale {quantization.scale:g}", tensor)
        limits = np.iinfo(DTYPES[tensor.dtype])
        if not limits.min <= quantization.zero_point <= limits.max:
            raise self.error(
                "unsupported-quantization", f"zero point {quantization.zero_point} outside {tensor.dtype}", tensor
            )
        return quantization

    def require_same_quantization(self, first: Tensor, second: Tensor) -> None:
        """Raises EngineError when an op that only moves values would change their meaning."""
        a, b = self.quantization(first), self.quantization(second)
        if a.zero_point != b.zero_point or abs(a.scale - b.scale) > 1e-6:
            raise self.error(
                "unsupported-quantization",
                f"input and output differ: scale {a.scale:g} and {b.scale:g}, zero point {a.zero_point} and"
                f" {b.zero_point}",
                second,
            )

    def multiplier(self, real: float, tensor: Tensor) -> FixedMultiplier:
        """Returns the fixed-point form of a scale ratio; raises EngineError for one that no real model has."""
        fixed = quantize_multiplier(real)
        if fixed.shift > _SHIFT_LIMIT:
            raise self.error("unsupported-quantization", f"scales whose ratio is {real:g}", tensor)
        return fixed

    def clamp(self, output: Tensor) -> tuple[int, int]:
        """Returns the range of the fused activation in steps of the output.

        Raises:
            EngineError: an activation that is not taken.
        """
        number = self.option("fusedActivationFunction")
        activation = enum_names("ActivationFunctionType").get(number, f"activation {number}")
        quantization = self.quantization(output)
        limits = activation_range(activation, quantization.scale, quantization.zero_point)
        if limits is None:
            raise self.error("unsupported-option", f"fused activation {activation}", output)
        return limits

    def same_padding(self) -> bool:
        """Returns True for SAME and False for VALID padding."""
        number = self.option("padding")
        name = enum_names("Padding").get(number)
        if name not in {"SAME", "VALID"}:
            raise self.error("unsupported-option", f"padding {number}")
        return name == "SAME"

    def positive(self, *names: str) -> tuple[int, ...]:
        """Returns options that must be positive, such as strides."""
        values = tuple(int(self.option(name)) for name in names)
        for name, value in zip(names, values, strict=True):
            if not 0 < value < 1 << 16:
                raise self.error("corrupt-model", f"{name} is {value}")
        return values

    def channel_tables(
        self, multipliers: Sequence[FixedMultiplier], bias: NDArray[Any]
    ) -> tuple[ConstantArray, ConstantArray, ConstantArray]:
        """Returns bias, multiplier and shift of every output channel as tables of a kernel."""
        return (
            ConstantArray(role="bias", values=np.ascontiguousarray(bias, np.int32)),
            ConstantArray(role="multiplier", values=np.array([m.multiplier for m in multipliers], np.int32)),
            ConstantArray(role="shift", values=np.array([m.shift for m in multipliers], np.int8)),
        )

    def bias(self, position: int, channels: int) -> NDArray[Any]:
        """Returns the bias of ``channels`` output channels, zeros when it is absent."""
        if self.optional_input(position) is None:
            return np.zeros(channels, np.int32)
        tensor, values = self.constant(position, "INT32")
        if tensor.elements != channels:
            raise self.error("corrupt-model", f"{tensor.elements} biases for {channels} channels", tensor)
        return values.reshape(-1)

    def filter_scales(self, tensor: Tensor, *, dimension: int, channels: int) -> Quantization:
        """Returns the quantisation of a filter, per tensor or per output channel along ``dimension``."""
        quantization = tensor.quantization
        if quantization is None:
            raise self.error("unsupported-quantization", "the filter has no scale", tensor)
        count = len(quantization.scales)
        if count not in {1, channels} or (count > 1 and quantization.dimension != dimension):
            raise self.error(
                "unsupported-quantization",
                f"{count} filter scales along dimension {quantization.dimension} for {channels} channels",
                tensor,
            )
        if np.any(quantization.scales > np.float32(2.0**100)):
            raise self.error("unsupported-quantization", "a filter scale beyond 2^100", tensor)
        return quantization
