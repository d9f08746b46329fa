"""A model as an engine sees it: tensors, layers in execution order, sizes. No weights, no files."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layer", "ModelSummary", "TensorSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """An input or output of a model.

    Args:
        name: name in the model file.
        dtype: ``int8``, ``float32``, ...
        shape: dimensions.
        scale: quantisation scale, 0.0 when the tensor is not quantised.
        zero_point: quantisation zero point.
        size_b: bytes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    size_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One executed operator, one never-inlined function of the firmware.

    Args:
        index: position in execution order, from 0, dense.
        op: builtin operator name, for example ``CONV_2D``.
        name: name of its output tensor in the model file.
        symbol: linker symbol of its function, for example ``hpx_layer_003``.
        macs: multiply-accumulates, padded positions counted; 0 for ops without any.
        bytes: bytes of constants, inputs and outputs that it must touch at least once.
    """

    index: int
    op: str
    name: str
    symbol: str
    macs: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """What an engine knows of a model after preparation.

    Args:
        name: file stem.
        sha256: digest of the file.
        size_b: bytes of the file.
        engine: engine name.
        layers: in execution order.
        inputs: tensors to be fed.
        outputs: tensors produced.
        arena_b: activation arena, bytes.
        constants_b: weights and tables in flash, bytes.
    """

    name: str
    sha256: str
    size_b: int
    engine: str
    layers: tuple[Layer, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_b: int
    constants_b: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(layer.macs for layer in self.layers)

    @property
    def ops(self) -> int:
        """Operations of one inference, one MAC counted as two."""
        return 2 * self.macs
