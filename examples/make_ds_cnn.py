"""Writes a keyword-spotting model of DS-CNN shape with seeded weights: 13 layers, 2.66 MMAC, int8.

    python examples/make_ds_cnn.py ds_cnn.tflite --seed 0

The weights are random, so the model recognises nothing; its shapes, ranges and sparsity are those of a real one, since
every output scale is taken from the values that random inputs really give. Same seed, same file.

References:
    Zhang et al., Hello Edge: Keyword Spotting on Microcontrollers, 2017 (DS-CNN); MLPerf Tiny, keyword spotting.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.tflite.writer import ModelWriter

__all__ = ["build_ds_cnn", "main"]

CHANNELS = 64
CLASSES = 12
BLOCKS = 4
INPUT_SHAPE = (1, 49, 10, 1)
INPUT_SCALE = 0.5
CALIBRATION_INPUTS = 16
LOGIT_DEVIATION = 2.0
SAME, RELU, NONE = 0, 1, 0
CHANNEL_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}

Real = NDArray[np.float64]
Filter = tuple[NDArray[np.int8], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A tensor of the model under construction, with what the calibration inputs make of it."""

    index: int
    values: Real  # (inputs, height, width, channels)
    scale: float


def round_up_scale(scale: float) -> float:
    """Returns the scale with eight significant bits, so that no machine's rounding changes the file."""
    exponent = math.frexp(scale)[1] - 8
    return math.ceil(math.ldexp(scale, -exponent)) * 2.0**exponent


def patches(x: Real, kernel: tuple[int, int], stride: int) -> Real:
    """Returns (inputs, out height, out width, kernel height, kernel width, channels) under SAME padding."""
    pads = []
    for n, k in zip(x.shape[1:3], kernel, strict=True):
        total = max(0, (-(-n // stride) - 1) * stride + k - n)
        pads.append((total // 2, total - total // 2))
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))[:, ::stride, ::stride]
    return np.moveaxis(windows, 3, -1)


def real_output(op: str, x: Real, filter_: Filter, options: dict[str, int]) -> Real:
    """Returns a layer's real output before bias and activation, from its quantised weights."""
    weights, scales = filter_[0], filter_[1].astype(np.float64)
    if op == "FULLY_CONNECTED":
        product: Real = x @ (weights * scales[:, None]).T
        return product
    equation = {"CONV_2D": "nhwijc,oijc->nhwo", "DEPTHWISE_CONV_2D": "nhwijc,oijc->nhwc"}[op]
    windows = patches(x, (weights.shape[1], weights.shape[2]), options["strideH"])
    convolved: Real = np.einsum(equation, windows, weights.astype(np.float64), optimize=True) * scales
    return convolved


def window_options(stride: int) -> dict[str, int]:
    """Returns the options of a convolution with SAME padding and ReLU."""
    return {
        "padding": SAME,
        "strideH": stride,
        "strideW": stride,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
        "fusedActivationFunction": RELU,
    }


class DsCnnWriter:
    """Appends layers, each with seeded weights and an output scale from the calibration inputs."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._writer = ModelWriter()

    def start(self) -> Activation:
        """Returns the input with its calibration values, uniform over the whole int8 range."""
        index = self._writer.input(self._writer.tensor("mfcc", INPUT_SHAPE, scale=INPUT_SCALE))
        steps = self._rng.integers(-128, 128, (CALIBRATION_INPUTS, *INPUT_SHAPE[1:]))
        return Activation(index=index, values=steps.astype(np.float64) * INPUT_SCALE, scale=INPUT_SCALE)

    def _filter(self, shape: tuple[int, ...], fan_in: int, *, axis: int = 0, gain: float = 1.0) -> Filter:
        """Returns int8 weights and their scale per output channel; ReLU layers of gain 1 keep the variance."""
        weights = self._rng.integers(-127, 128, shape).astype(np.int8)
        spread = self._rng.integers(96, 161, shape[axis]) / 128.0
        return weights, (gain * spread * math.sqrt(6.0 / fan_in) / 127.0).astype(np.float32)

    def _layer(self, op: str, x: Activation, filter_: Filter, options: dict[str, int]) -> Activation:
        """Appends a layer with weights; its bias is seeded and its output scale follows from the real values."""
        weights, scales = filter_
        bias_scales = np.float32(x.scale) * scales
        real = real_output(op, x.values, filter_, options)
        steps = self._rng.integers(-64, 65, len(scales)) / 256.0 * float(np.std(real)) / bias_scales
        bias = np.round(steps).astype(np.int32)
        real = real + bias * bias_scales.astype(np.float64)
        relu = options["fusedActivationFunction"] == RELU
        if relu:
            real = np.maximum(real, 0.0)
        scale = round_up_scale(float(np.max(np.abs(real))) / (255.0 if relu else 127.0))
        name, axis = f"{op.lower()}_{x.index}", CHANNEL_AXIS[op]
        inputs = [
            x.index,
            self._writer.tensor(f"{name}/filter", weights.shape, scale=scales, dimension=axis, data=weights),
            self._writer.tensor(f"{name}/bias", bias.shape, "INT32", scale=bias_scales, data=bias),
        ]
        index = self._writer.tensor(name, (1, *real.shape[1:]), scale=scale, zero_point=-128 if relu else 0)
        self._writer.operator(op, inputs, [index], options)
        return Activation(index=index, values=real, scale=scale)

    def conv(self, x: Activation, kernel: tuple[int, int], stride: int) -> Activation:
        """Appends a convolution with ReLU and returns its output."""
        in_c = x.values.shape[3]
        filter_ = self._filter((CHANNELS, *kernel, in_c), math.prod(kernel) * in_c)
        return self._layer("CONV_2D", x, filter_, window_options(stride))

    def depthwise(self, x: Activation) -> Activation:
        """Appends a 3x3 depthwise convolution with ReLU and returns its output."""
        filter_ = self._filter((1, 3, 3, CHANNELS), 9, axis=3)
        return self._layer("DEPTHWISE_CONV_2D", x, filter_, window_options(1) | {"depthMultiplier": 1})

    def average(self, x: Activation) -> Activation:
        """Appends the global average pooling and the reshape to a vector; both keep the scale."""
        _, height, width, channels = x.values.shape
        pooled = self._writer.tensor("average", (1, 1, 1, channels), scale=x.scale, zero_point=-128)
        flat = self._writer.tensor("flat", (1, channels), scale=x.scale, zero_point=-128)
        shape = self._writer.tensor("flat/shape", (2,), "INT32", data=np.array([1, channels], np.int32))
        options = {"padding": 1, "filterHeight": height, "filterWidth": width, "strideH": height, "strideW": width}
        self._writer.operator("AVERAGE_POOL_2D", [x.index], [pooled], options)
        self._writer.operator("RESHAPE", [pooled, shape], [flat], {"newShape": [1, channels]})
        return Activation(index=flat, values=x.values.mean(axis=(1, 2)), scale=x.scale)

    def classify(self, x: Activation) -> bytes:
        """Appends the fully connected layer and the softmax, and returns the file."""
        channels = x.values.shape[1]
        gain = LOGIT_DEVIATION / math.sqrt(2.0 * float(np.mean(x.values**2)))
        filter_ = self._filter((CLASSES, channels), channels, gain=gain)
        logits = self._layer("FULLY_CONNECTED", x, filter_, {"fusedActivationFunction": NONE})
        scores = self._writer.tensor("scores", (1, CLASSES), scale=1 / 256, zero_point=-128)
        self._writer.operator("SOFTMAX", [logits.index], [scores], {"beta": 1.0})
        self._writer.output(scores)
        return self._writer.build()


def build_ds_cnn(seed: int = 0) -> bytes:
    """Returns the model as a ``.tflite`` file."""
    writer = DsCnnWriter(seed)
    x = writer.conv(writer.start(), (10, 4), 2)
    for _ in range(BLOCKS):
        x = writer.conv(writer.depthwise(x), (1, 1), 1)
    return writer.classify(writer.average(x))


def main() -> None:
    """Writes the model to the path on the command line."""
    parser = argparse.ArgumentParser(description="Write a DS-CNN shaped int8 .tflite model with seeded weights.")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (0)")
    arguments = parser.parse_args()
    content = build_ds_cnn(arguments.seed)
    try:
        arguments.out.write_bytes(content)
    except OSError as error:
        raise SystemExit(f"cannot write {arguments.out}: {error}") from error
    print(f"{arguments.out}: {len(content)} bytes")


if __name__ == "__main__":
    main()
