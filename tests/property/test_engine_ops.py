"""Every op on random shapes, options and quantisations, bit for bit against tflite-micro.

A drawn list of cases becomes one model with an operator each, so that one compilation serves many cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joulemap.firmware.engines.aot.hostcheck import HostModel, compare_layers, host_sources, load_program
from joulemap.firmware.engines.aot.inputs import draw_inputs
from joulemap.firmware.engines.aot.oracle import open_oracle
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.firmware.toolchains.zig import ZigToolchain

Case = Callable[[ModelWriter, str], None]
DRAWS_PER_CASE = 3
ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
PADDINGS = {"SAME": 0, "VALID": 1}

zero_points = st.integers(-128, 127)
scales = st.floats(-8.0, 1.0).map(lambda exponent: float(np.float32(2.0**exponent)))
small = st.integers(1, 9)
activations = st.sampled_from(sorted(ACTIVATIONS.values()))
paddings = st.sampled_from(sorted(PADDINGS.values()))
seeds = st.integers(0, 2**32 - 1)


def extent_of(n: int, window: int, stride: int, dilation: int, padding: int) -> int:
    effective = (window - 1) * dilation + 1
    return -(-n // stride) if padding == PADDINGS["SAME"] else (n - effective) // stride + 1


def weights(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return rng.integers(-128, 128, shape).astype(np.int8)


def filter_scales(rng: np.random.Generator, largest: float, count: int) -> np.ndarray[Any, Any]:
    return (largest * rng.uniform(0.01, 1.0, count)).astype(np.float32)


def add_bias(
    writer: ModelWriter, rng: np.random.Generator, name: str, *, channels: int, kind: str, scale: Any
) -> list[int]:
    """Returns the operands that follow the filter: none, an absent one, or a bias of a drawn magnitude."""
    if kind == "left out":
        return []
    if kind == "absent":
        return [-1]
    bits = int(rng.integers(1, 29))
    bias = rng.integers(-(1 << bits), 1 << bits, channels).astype(np.int32)
    return [writer.tensor(f"{name}/bias", [channels], "INT32", scale=scale, data=bias)]


@st.composite
def windows(draw: st.DrawFn, *, dilated: bool) -> dict[str, int]:
    dilation = st.integers(1, 3) if dilated else st.just(1)
    picked = {
        "kh": draw(st.integers(1, 4)), "kw": draw(st.integers(1, 4)),
        "sh": draw(st.integers(1, 3)), "sw": draw(st.integers(1, 3)),
        "dh": draw(dilation), "dw": draw(dilation), "padding": draw(paddings),
    }  # fmt: skip
    low_h = (picked["kh"] - 1) * picked["dh"] + 1 if picked["padding"] == PADDINGS["VALID"] else 1
    low_w = (picked["kw"] - 1) * picked["dw"] + 1 if picked["padding"] == PADDINGS["VALID"] else 1
    return picked | {"h": low_h + draw(st.integers(0, 7)), "w": low_w + draw(st.integers(0, 7))}


@st.composite
def conv_cases(draw: st.DrawFn) -> Case:
    v = draw(windows(dilated=True))
    groups, filter_c, per_group = draw(st.integers(1, 3)), draw(small), draw(small)
    batch, per_channel = draw(st.integers(1, 2)), draw(st.booleans())
    x_scale, y_scale, w_scale = draw(scales), draw(scales), draw(scales)
    x_zero, y_zero, activation = draw(zero_points), draw(zero_points), draw(activations)
    kind, seed = draw(st.sampled_from(["left out", "absent", "given", "given"])), draw(seeds)

    def build(writer: ModelWriter, name: str) -> None:
        rng = np.random.default_rng(seed)
        out_c = groups * per_group
        of_filter = filter_scales(rng, w_scale / 64, out_c if per_channel else 1)
        x = writer.input(
            writer.tensor(f"{name}/x", [batch, v["h"], v["w"], groups * filter_c], scale=x_scale, zero_point=x_zero)
        )
        w = writer.tensor(
            f"{name}/w",
            [out_c, v["kh"], v["kw"], filter_c],
            scale=of_filter,
            data=weights(rng, (out_c, v["kh"], v["kw"], filter_c)),
        )
        shape = [
            batch,
            extent_of(v["h"], v["kh"], v["sh"], v["dh"], v["padding"]),
            extent_of(v["w"], v["kw"], v["sw"], v["dw"], v["padding"]),
            out_c,
        ]
        y = writer.output(writer.tensor(f"{name}/y", shape, scale=y_scale, zero_point=y_zero))
        options = {
            "padding": v["padding"], "strideH": v["sh"], "strideW": v["sw"],
            "dilationHFactor": v["dh"], "dilationWFactor": v["dw"], "fusedActivationFunction": activation,
        }  # fmt: skip
        bias = add_bias(writer, rng, name, channels=out_c, kind=kind, scale=x_scale * of_filter)
        writer.operator("CONV_2D", [x, w, *bias], [y], options)

    return build


@st.composite
def depthwise_cases(draw: st.DrawFn) -> Case:
    v = draw(windows(dilated=True))
    # an absent bias (-1) ends the reference interpreter here, so it is not drawn
    channels, multiplier = draw(small), draw(st.integers(1, 4))
    batch, per_channel = draw(st.integers(1, 2)), draw(st.booleans())
    x_scale, y_scale, w_scale = draw(scales), draw(scales), draw(scales)
    x_zero, y_zero, activation = draw(zero_points), draw(zero_points), draw(activations)
    kind, seed = draw(st.sampled_from(["left out", "given", "given"])), draw(seeds)

    def build(writer: ModelWriter, name: str) -> None:
        rng = np.random.default_rng(seed)
        out_c = channels * multiplier
        of_filter = filter_scales(rng, w_scale / 16, out_c if per_channel else 1)
        x = writer.input(
            writer.tensor(f"{name}/x", [batch, v["h"], v["w"], channels], scale=x_scale, zero_point=x_zero)
        )
        w = writer.tensor(
            f"{name}/w",
            [1, v["kh"], v["kw"], out_c],
            scale=of_filter,
            dimension=3,
            data=weights(rng, (1, v["kh"], v["kw"], out_c)),
        )
        shape = [
            batch,
            extent_of(v["h"], v["kh"], v["sh"], v["dh"], v["padding"]),
            extent_of(v["w"], v["kw"], v["sw"], v["dw"], v["padding"]),
            out_c,
        ]
        y = writer.output(writer.tensor(f"{name}/y", shape, scale=y_scale, zero_point=y_zero))
        options = {
            "padding": v["padding"], "strideH": v["sh"], "strideW": v["sw"], "depthMultiplier": multiplier,
            "dilationHFactor": v["dh"], "dilationWFactor": v["dw"], "fusedActivationFunction": activation,
        }  # fmt: skip
        bias = add_bias(writer, rng, name, channels=out_c, kind=kind, scale=x_scale * of_filter)
        writer.operator("DEPTHWISE_CONV_2D", [x, w, *bias], [y], options)

    return build


@st.composite
def dense_cases(draw: st.DrawFn) -> Case:
    in_c, out_c, batch = draw(st.integers(1, 70)), draw(st.integers(1, 13)), draw(st.integers(1, 3))
    per_channel, flat = draw(st.booleans()), draw(st.booleans())
    x_scale, y_scale, w_scale = draw(scales), draw(scales), draw(scales)
    x_zero, y_zero, activation = draw(zero_points), draw(zero_points), draw(activations)
    kind, seed = draw(st.sampled_from(["left out", "absent", "given", "given"])), draw(seeds)

    def build(writer: ModelWriter, name: str) -> None:
        rng = np.random.default_rng(seed)
        of_filter = filter_scales(rng, w_scale / 64, out_c if per_channel else 1)
        shape = [batch, in_c] if flat else [batch, 1, in_c, 1]
        x = writer.input(writer.tensor(f"{name}/x", shape, scale=x_scale, zero_point=x_zero))
        w = writer.tensor(
            f"{name}/w",
            [out_c, in_c],
            scale=of_filter,
            data=weights(rng, (out_c, in_c)),
        )
        y = writer.output(writer.tensor(f"{name}/y", [batch, out_c], scale=y_scale, zero_point=y_zero))
        bias = add_bias(writer, rng, name, channels=out_c, kind=kind, scale=x_scale * of_filter)
        options = {"fusedActivationFunction": activation, "weightsFormat": 0, "keepNumDims": False}
        writer.operator("FULLY_CONNECTED", [x, w, *bias], [y], options)

    return build


@st.composite
def pool_cases(draw: st.DrawFn) -> Case:
    v = draw(windows(dilated=False))
    op = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    channels, batch = draw(small), draw(st.integers(1, 2))
    scale, zero, activation = draw(scales), draw(zero_points), draw(activations)

    def build(writer: ModelWriter, name: str) -> None:
        x = writer.input(writer.tensor(f"{name}/x", [batch, v["h"], v["w"], channels], scale=scale, zero_point=zero))
        shape = [
            batch,
            extent_of(v["h"], v["kh"], v["sh"], 1, v["padding"]),
            extent_of(v["w"], v["kw"], v["sw"], 1, v["padding"]),
            channels,
        ]
        y = writer.output(writer.tensor(f"{name}/y", shape, scale=scale, zero_point=zero))
        options = {
            "padding": v["padding"], "strideH": v["sh"], "strideW": v["sw"],
            "filterHeight": v["kh"], "filterWidth": v["kw"], "fusedActivationFunction": activation,
        }  # fmt: skip
        writer.operator(op, [x], [y], options)

    return build


@st.composite
def mean_cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=len(shape)))
    keep, same = draw(st.booleans()), draw(st.booleans())
    x_scale, x_zero = draw(scales), draw(zero_points)
    y_scale, y_zero = (x_scale, x_zero) if same else (draw(scales), draw(zero_points))

    def build(writer: ModelWriter, name: str) -> None:
        reduced = {axis % len(shape) for axis in axes}
        kept = [n for axis, n in enumerate(shape) if axis not in reduced]
        out = [1 if axis in reduced else n for axis, n in enumerate(shape)] if keep else kept
        x = writer.input(writer.tensor(f"{name}/x", shape, scale=x_scale, zero_point=x_zero))
        a = writer.tensor(f"{name}/axes", [len(axes)], "INT32", data=np.array(axes, np.int32))
        y = writer.output(writer.tensor(f"{name}/y", out, scale=y_scale, zero_point=y_zero))
        writer.operator("MEAN", [x, a], [y], {"keepDims": keep})

    return build


@st.composite
def add_cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    dropped = draw(st.integers(0, len(shape) - 1))
    repeated = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    swap, constant, same_shape = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    a_scale, b_scale, y_scale = draw(scales), draw(scales), draw(scales)
    a_zero, b_zero, y_zero = draw(zero_points), draw(zero_points), draw(zero_points)
    activation, seed = draw(activations), draw(seeds)

    def build(writer: ModelWriter, name: str) -> None:
        other = shape if same_shape else [1 if r else n for r, n in zip(repeated, shape, strict=True)][dropped:]
        data = weights(np.random.default_rng(seed), tuple(other)) if constant else None
        a = writer.input(writer.tensor(f"{name}/a", shape, scale=a_scale, zero_point=a_zero))
        b = writer.tensor(f"{name}/b", other, scale=b_scale, zero_point=b_zero, data=data)
        if not constant:
            writer.input(b)
        y = writer.output(writer.tensor(f"{name}/y", shape, scale=y_scale, zero_point=y_zero))
        writer.operator("ADD", [b, a] if swap else [a, b], [y], {"fusedActivationFunction": activation})

    return build


@st.composite
def pad_cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    amounts = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in shape]
    scale, zero = draw(scales), draw(zero_points)
    value = draw(st.none() | zero_points)

    def build(writer: ModelWriter, name: str) -> None:
        out = [n + a + b for n, (a, b) in zip(shape, amounts, strict=True)]
        x = writer.input(writer.tensor(f"{name}/x", shape, scale=scale, zero_point=zero))
        p = writer.tensor(f"{name}/p", [len(shape), 2], "INT32", data=np.array(amounts, np.int32))
        y = writer.output(writer.tensor(f"{name}/y", out, scale=scale, zero_point=zero))
        if value is None:
            writer.operator("PAD", [x, p], [y], {})
        else:
            v = writer.tensor(f"{name}/v", [1], scale=scale, zero_point=zero, data=np.array([value], np.int8))
            writer.operator("PADV2", [x, p, v], [y], {})

    return build


@st.composite
def softmax_cases(draw: st.DrawFn) -> Case:
    shape = [*draw(st.lists(st.integers(1, 4), min_size=0, max_size=2)), draw(st.integers(1, 40))]
    scale, zero, beta = draw(scales), draw(zero_points), draw(st.sampled_from([1.0, 0.5, 2.0, 0.1]))

    def build(writer: ModelWriter, name: str) -> None:
        x = writer.input(writer.tensor(f"{name}/x", shape, scale=scale, zero_point=zero))
        y = writer.output(writer.tensor(f"{name}/y", shape, scale=1 / 256, zero_point=-128))
        writer.operator("SOFTMAX", [x], [y], {"beta": beta})

    return build


@st.composite
def logistic_cases(draw: st.DrawFn) -> Case:
    count, scale, zero = draw(st.integers(1, 300)), draw(scales), draw(zero_points)

    def build(writer: ModelWriter, name: str) -> None:
        x = writer.input(writer.tensor(f"{name}/x", [count], scale=scale, zero_point=zero))
        y = writer.output(writer.tensor(f"{name}/y", [count], scale=1 / 256, zero_point=-128))
        writer.operator("LOGISTIC", [x], [y])

    return build


@st.composite
def conversion_cases(draw: st.DrawFn) -> Case:
    source, target = draw(
        st.sampled_from(
            [("FLOAT32", "INT8"), ("INT8", "INT8"), ("UINT8", "INT8"), ("INT8", "UINT8"), ("INT8", "FLOAT32"),
             ("UINT8", "FLOAT32")]
        )
    )  # fmt: skip
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    zeros = [draw(st.integers(0, 255) if kind == "UINT8" else zero_points) for kind in (source, target)]
    x_scale, y_scale = draw(scales), draw(scales)

    def build(writer: ModelWriter, name: str) -> None:
        of_x: dict[str, Any] = {} if source == "FLOAT32" else {"scale": x_scale, "zero_point": zeros[0]}
        of_y: dict[str, Any] = {} if target == "FLOAT32" else {"scale": y_scale, "zero_point": zeros[1]}
        x = writer.input(writer.tensor(f"{name}/x", shape, source, **of_x))
        y = writer.output(writer.tensor(f"{name}/y", shape, target, **of_y))
        writer.operator("DEQUANTIZE" if target == "FLOAT32" else "QUANTIZE", [x], [y], {})

    return build


@st.composite
def reshape_cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    with_shape, scale = draw(st.booleans()), draw(scales)

    def build(writer: ModelWriter, name: str) -> None:
        total = math.prod(shape)
        x = writer.input(writer.tensor(f"{name}/x", shape, scale=scale))
        y = writer.output(writer.tensor(f"{name}/y", [1, total], scale=scale))
        if with_shape:
            s = writer.tensor(f"{name}/s", [2], "INT32", data=np.array([1, total], np.int32))
            writer.operator("RESHAPE", [x, s], [y], {"newShape": [1, total]})
        else:
            writer.operator("RESHAPE", [x], [y], {"newShape": [1, total]})

    return build


FAMILIES: dict[str, st.SearchStrategy[Case]] = {
    "add": add_cases(),
    "conv": conv_cases(),
    "conversion": conversion_cases(),
    "dense": dense_cases(),
    "depthwise": depthwise_cases(),
    "logistic": logistic_cases(),
    "mean": mean_cases(),
    "pad": pad_cases(),
    "pool": pool_cases(),
    "reshape": reshape_cases(),
    "softmax": softmax_cases(),
}


def check(cases: list[Case], folder: Path) -> None:
    writer = ModelWriter()
    for position, case in enumerate(cases):
        case(writer, f"case{position}")
    content = writer.build()
    program = load_program(content)
    library = ZigToolchain(folder).build_host_library("op_cases", host_sources(program))
    model, oracle = HostModel(library, program), open_oracle(content, program)
    assert oracle is not None
    for draw in range(DRAWS_PER_CASE):
        found = compare_layers(model, oracle, program, draw_inputs(program, draw))
        assert not found, [(f.layer.op, f.layer.call.params, f.differing, f.total) for f in found]


def case_lists(family: str) -> st.SearchStrategy[list[Case]]:
    return st.lists(FAMILIES[family], min_size=8, max_size=16)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("op_cases")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_ops_agree_with_the_reference_to_the_bit(family: str, cache: Path) -> None:
    @settings(max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case_lists(family))
    def run(cases: list[Case]) -> None:
        check(cases, cache)

    run()


@pytest.mark.soak
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_many_ops_agree_with_the_reference_to_the_bit(family: str, cache: Path) -> None:
    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case_lists(family))
    def run(cases: list[Case]) -> None:
        check(cases, cache)

    run()
