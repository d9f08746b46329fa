"""The engine ``aot``: an int8 ``.tflite`` file becomes C that calls the project's kernels, one function per layer."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.emit import emit_sources
from joulemap.firmware.engines.aot.inputs import check_inputs, draw_inputs
from joulemap.firmware.engines.aot.lowering import lower_graph
from joulemap.firmware.engines.aot.oracle import oracle_name, reference_output
from joulemap.firmware.engines.aot.program import LayerCall, Program
from joulemap.firmware.engines.aot.tflite.graph import Tensor
from joulemap.firmware.engines.aot.tflite.reader import parse_model, read_model_bytes
from joulemap.firmware.engines.base import PreparedModel
from joulemap.records.model import Layer, ModelSummary, TensorSpec

__all__ = ["AotEngine"]


class AotEngine:
    """Ahead-of-time compilation of int8 TensorFlow Lite models, bit for bit as TensorFlow Lite Micro computes them."""

    @property
    def name(self) -> str:
        """Registry name."""
        return "aot"

    def prepare(
        self, path: Path, *, inputs: Mapping[str, NDArray[np.number]] | None = None, seed: int = 0
    ) -> PreparedModel:
        """Returns the model as C sources with its input and the oracle's output; see ``Engine.prepare``."""
        content = read_model_bytes(path)
        program = lower_graph(parse_model(content))
        fed = draw_inputs(program, seed) if inputs is None else check_inputs(program, inputs)
        reference = reference_output(content, program, fed)
        return PreparedModel(
            summary=_summary(path, content, program),
            files=emit_sources(program, fed),
            inputs=fed,
            reference_output=reference,
            reference_crc32=None if reference is None else zlib.crc32(reference),
            oracle=None if reference is None else oracle_name(),
        )


def _summary(path: Path, content: bytes, program: Program) -> ModelSummary:
    names = program.input_names
    return ModelSummary(
        name=path.stem,
        sha256=hashlib.sha256(content).hexdigest(),
        size_b=len(content),
        engine="aot",
        layers=tuple(_layer(program, layer) for layer in program.layers),
        inputs=tuple(_spec(program.tensor(i), names[i]) for i in program.graph.inputs),
        outputs=tuple(_spec(program.tensor(i), program.tensor(i).name) for i in program.graph.outputs),
        arena_b=program.arena_b,
        constants_b=program.constants_b,
    )


def _layer(program: Program, layer: LayerCall) -> Layer:
    """Returns the record of a layer; a layer that moves nothing touches no bytes."""
    touched_b = 0
    if layer.call.kernel is not None:
        touched_b = sum(program.tensor(i).size_b for i in {*layer.call.activations, layer.output})
        touched_b += sum(array.values.nbytes for array in layer.call.constants)
    return Layer(
        index=layer.index,
        op=layer.op,
        name=program.tensor(layer.output).name,
        symbol=layer.symbol,
        macs=layer.call.macs,
        bytes=touched_b,
    )


def _spec(tensor: Tensor, name: str) -> TensorSpec:
    quantization = tensor.quantization
    return TensorSpec(
        name=name,
        dtype=tensor.dtype.lower(),
        shape=tensor.shape,
        scale=0.0 if quantization is None else quantization.scale,
        zero_point=0 if quantization is None else quantization.zero_point,
        size_b=tensor.size_b,
    )
