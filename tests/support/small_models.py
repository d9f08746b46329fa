"""Models that are quick to run or too big to fit, written with the engine's own writer; weights are seeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from joulemap.firmware.engines.aot.tflite.writer import ModelWriter

__all__ = ["write_flash_hog", "write_ram_hog", "write_small_model"]

_SAME, _RELU = 0, 1


def write_small_model(path: Path) -> Path:
    """Writes four layers (convolutions, RESHAPE, FULLY_CONNECTED) on an 8 x 8 picture: about 1 ms; returns the path."""
    rng = np.random.default_rng(7)
    writer = ModelWriter()
    picture = writer.input(writer.tensor("picture", (1, 8, 8, 1), scale=1 / 255, zero_point=-128))
    first = _conv(writer, rng, picture, channels=4)
    second = _depthwise(writer, rng, first, channels=4)
    flat = writer.tensor("flat", (1, 256), scale=0.05, zero_point=-128)
    shape = writer.tensor("shape", (2,), "INT32", data=np.array([1, 256], np.int32))
    writer.operator("RESHAPE", (second, shape), (flat,), {"newShape": [1, 256]})
    scores = writer.output(writer.tensor("scores", (1, 10), scale=2.0, zero_point=3))
    _dense(writer, rng, flat, scores, (10, 256))
    path.write_bytes(writer.build())
    return path


def write_flash_hog(path: Path) -> Path:
    """Writes one FULLY_CONNECTED of 3 MB of weights, more than 2 MiB of flash; returns the path."""
    return _write_dense(path, inputs=3000, outputs=1000)


def write_ram_hog(path: Path) -> Path:
    """Writes one CONV_2D between two pictures of 400 kB each, more than 512 KiB of RAM; returns the path."""
    rng = np.random.default_rng(7)
    writer = ModelWriter()
    picture = writer.input(writer.tensor("picture", (1, 320, 320, 4), scale=1 / 255, zero_point=-128))
    weights = writer.tensor("w", (4, 1, 1, 4), scale=0.02, data=_int8(rng, (4, 1, 1, 4)))
    bias = writer.tensor("b", (4,), "INT32", scale=0.02 / 255, data=np.zeros(4, np.int32))
    out = writer.output(writer.tensor("out", (1, 320, 320, 4), scale=0.05, zero_point=-128))
    writer.operator("CONV_2D", (picture, weights, bias), (out,), _strides())
    path.write_bytes(writer.build())
    return path


def _write_dense(path: Path, *, inputs: int, outputs: int) -> Path:
    rng = np.random.default_rng(7)
    writer = ModelWriter()
    vector = writer.input(writer.tensor("vector", (1, inputs), scale=1 / 255, zero_point=-128))
    scores = writer.output(writer.tensor("scores", (1, outputs), scale=0.1, zero_point=3))
    _dense(writer, rng, vector, scores, (outputs, inputs), input_scale=1 / 255)
    path.write_bytes(writer.build())
    return path


def _int8(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return rng.integers(-127, 128, shape).astype(np.int8)


def _strides() -> dict[str, int]:
    return {
        "padding": _SAME,
        "strideW": 1,
        "strideH": 1,
        "dilationWFactor": 1,
        "dilationHFactor": 1,
        "fusedActivationFunction": _RELU,
    }


def _conv(writer: ModelWriter, rng: np.random.Generator, source: int, *, channels: int) -> int:
    scale = np.full(channels, 0.02, np.float32)
    weights = writer.tensor("w1", (channels, 3, 3, 1), scale=scale, data=_int8(rng, (channels, 3, 3, 1)))
    bias = writer.tensor("b1", (channels,), "INT32", scale=scale / 255, data=np.zeros(channels, np.int32))
    out = writer.tensor("conv", (1, 8, 8, channels), scale=0.05, zero_point=-128)
    writer.operator("CONV_2D", (source, weights, bias), (out,), _strides())
    return out


def _depthwise(writer: ModelWriter, rng: np.random.Generator, source: int, *, channels: int) -> int:
    scale = np.full(channels, 0.02, np.float32)
    weights = writer.tensor("w2", (1, 3, 3, channels), scale=scale, dimension=3, data=_int8(rng, (1, 3, 3, channels)))
    bias = writer.tensor("b2", (channels,), "INT32", scale=scale * 0.05, data=np.zeros(channels, np.int32))
    out = writer.tensor("depthwise", (1, 8, 8, channels), scale=0.05, zero_point=-128)
    writer.operator("DEPTHWISE_CONV_2D", (source, weights, bias), (out,), {**_strides(), "depthMultiplier": 1})
    return out


def _dense(
    writer: ModelWriter,
    rng: np.random.Generator,
    source: int,
    out: int,
    shape: tuple[int, int],
    *,
    input_scale: float = 0.05,
) -> None:
    weights = writer.tensor("w3", shape, scale=0.01, data=_int8(rng, shape))
    bias = writer.tensor("b3", shape[:1], "INT32", scale=0.01 * input_scale, data=np.zeros(shape[0], np.int32))
    writer.operator("FULLY_CONNECTED", (source, weights, bias), (out,), {"fusedActivationFunction": 0})
