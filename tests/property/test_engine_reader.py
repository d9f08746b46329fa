"""Damaged model files: whatever the damage, a typed error or a sound program; never a traceback, a hang or a flood."""

from __future__ import annotations

import signal
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import flatbuffers
import numpy as np
import pytest

from joulemap.errors import EngineError, InputError
from joulemap.firmware.engines.aot.engine import AotEngine
from joulemap.firmware.engines.aot.hostcheck import load_program
from joulemap.firmware.engines.aot.tflite.schema import load_schema
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter

Fault = Callable[[bytes, np.random.Generator], bytes]

HANG_S = 20
MEMORY_LIMIT_B = 64 << 20
WORDS = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    16,
    64,
    127,
    128,
    255,
    1 << 15,
    1 << 16,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)


def small_model() -> bytes:
    """A model with a branch, folded ops, every kind of option and two outputs, in about 4 KB."""
    w = ModelWriter()
    rng = np.random.default_rng(0)
    real = w.input(w.tensor("real", [1, 6, 6, 2], "FLOAT32"))
    x = w.tensor("x", [1, 6, 6, 2], scale=0.1, zero_point=3)
    w.operator("QUANTIZE", [real], [x], {})
    window = {"padding": 0, "strideH": 1, "strideW": 1}
    conv = window | {"dilationHFactor": 1, "dilationWFactor": 1, "fusedActivationFunction": 1}
    f = w.tensor("f", [4, 3, 3, 2], scale=[0.01] * 4, data=rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8))
    b = w.tensor("b", [4], "INT32", scale=[0.001] * 4, data=np.arange(4, dtype=np.int32))
    c = w.tensor("c", [1, 6, 6, 4], scale=0.2, zero_point=-128)
    w.operator("CONV_2D", [x, f, b], [c], conv)
    g = w.tensor("g", [1, 3, 3, 4], scale=0.02, dimension=3, data=rng.integers(-127, 128, (1, 3, 3, 4)).astype(np.int8))
    d = w.tensor("d", [1, 6, 6, 4], scale=0.2, zero_point=-128)
    w.operator("DEPTHWISE_CONV_2D", [c, g, b], [d], conv | {"depthMultiplier": 1})
    e = w.tensor("e", [1, 6, 6, 4], scale=0.2, zero_point=-128)
    w.operator("ADD", [c, d], [e], {"fusedActivationFunction": 3})
    p = w.tensor("p", [4, 2], "INT32", data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    padded = w.tensor("padded", [1, 8, 8, 4], scale=0.2, zero_point=-128)
    w.operator("PAD", [e, p], [padded], {})
    m = w.tensor("m", [1, 4, 4, 4], scale=0.2, zero_point=-128)
    w.operator(
        "MAX_POOL_2D", [padded], [m], {"padding": 1, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    )
    add_tail(w, rng, m)
    return w.build()


def add_tail(w: ModelWriter, rng: np.random.Generator, m: int) -> None:
    """Appends folded ops, a classifier and a gate to the tensor ``m`` of shape (1, 4, 4, 4)."""
    axes = w.tensor("axes", [2], "INT32", data=np.array([1, 2], np.int32))
    mean = w.tensor("mean", [1, 4], scale=0.1, zero_point=-100)
    w.operator("MEAN", [m, axes], [mean], {"keepDims": False})
    of_m = w.tensor("of_m", [4], "INT32")
    w.operator("SHAPE", [m], [of_m], {"outType": 2})
    one = [w.tensor(f"i{v}", [1], "INT32", data=np.array([v], np.int32)) for v in (0, 1, 1)]
    batch = w.tensor("batch", [], "INT32")
    slicing = {"beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 1}
    w.operator("STRIDED_SLICE", [of_m, *one], [batch], slicing)
    width = w.tensor("width", [], "INT32", data=np.array(64, np.int32))
    target = w.tensor("target", [2], "INT32")
    w.operator("PACK", [batch, width], [target], {"axis": 0, "valuesCount": 2})
    flat = w.tensor("flat", [1, 64], scale=0.2, zero_point=-128)
    w.operator("RESHAPE", [m, target], [flat], {})
    k = w.tensor("k", [3, 64], scale=0.01, data=rng.integers(-127, 128, (3, 64)).astype(np.int8))
    logits = w.tensor("logits", [1, 3], scale=0.3, zero_point=5)
    w.operator("FULLY_CONNECTED", [flat, k], [logits], {"fusedActivationFunction": 0})
    scores = w.tensor("scores", [1, 3], scale=1 / 256, zero_point=-128)
    w.operator("SOFTMAX", [logits], [scores], {"beta": 1.0})
    out = w.output(w.tensor("out", [1, 3], "FLOAT32"))
    w.operator("DEQUANTIZE", [scores], [out], {})
    gate = w.output(w.tensor("gate", [1, 4], scale=1 / 256, zero_point=-128))
    w.operator("LOGISTIC", [mean], [gate])


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Returns the file with one to four faults: flipped bits, random bytes, telling words, cuts, moved blocks."""
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(damaged)))
        match int(rng.integers(0, 6)):
            case 0:
                damaged[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                damaged[at : at + 4] = rng.bytes(len(damaged[at : at + 4]))
            case 2:
                word = int(rng.choice(WORDS)).to_bytes(4, "little")
                at -= at % 4
                damaged[at : at + 4] = word[: len(damaged[at : at + 4])]
            case 3:
                del damaged[max(at, 8) :]
                damaged += b"\0" * int(rng.integers(0, 2))
            case 4:
                source = int(rng.integers(0, len(damaged)))
                block = damaged[source : source + int(rng.integers(1, 64))]
                damaged[at : at + len(block)] = block
            case _:
                del damaged[at : at + int(rng.integers(1, 16))]
        if len(damaged) < 16:
            break
    return bytes(damaged)


VALUES = (-(1 << 31), -1000, -129, -128, -2, -1, 0, 1, 2, 3, 4, 7, 8, 9, 64, 127, 128, 1000, 1 << 20, (1 << 31) - 1)
REALS = (0.0, -1.0, 1e-45, 1e-30, 1e-6, 0.5, 3.0, 1e6, 1e38, float("inf"), float("nan"))


def misuse(content: bytes, rng: np.random.Generator) -> bytes:
    """Returns a well-formed file whose fields lie: shapes, types, indices, options and quantisation at random."""
    schema = load_schema()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    graph = model.subgraphs[0]
    owners = [graph, *graph.tensors, *graph.operators, *model.operatorCodes]
    owners += [t.quantization for t in graph.tensors if t.quantization is not None]
    owners += [o.builtinOptions for o in graph.operators if o.builtinOptions is not None and vars(o.builtinOptions)]
    for _ in range(int(rng.integers(1, 4))):
        owner = owners[int(rng.integers(0, len(owners)))]
        name = str(rng.choice(sorted(vars(owner))))
        value = getattr(owner, name)
        if isinstance(value, bool):
            setattr(owner, name, not value)
        elif isinstance(value, int) and name != "builtinOptionsType":
            limit = {"type": 17, "quantizedDimension": 1 << 31, "buffer": 40, "opcodeIndex": 20}.get(name, 127)
            setattr(owner, name, min(max(int(rng.choice(VALUES)), 0 if limit < 50 else -limit - 1), limit))
        elif isinstance(value, float):
            setattr(owner, name, float(rng.choice(REALS)))
        elif isinstance(value, np.ndarray) and len(value):
            changed = value.copy()
            pool = REALS if value.dtype.kind == "f" else VALUES
            changed[int(rng.integers(0, len(value)))] = rng.choice(pool)
            setattr(owner, name, changed if rng.integers(0, 3) else changed[: int(rng.integers(0, len(value)))])
    builder = flatbuffers.Builder(1 << 14)
    try:
        builder.Finish(model.Pack(builder), b"TFL3")
    except (TypeError, OverflowError, struct.error):  # the encoding itself has no such value
        return misuse(content, rng)
    return bytes(builder.Output())


@contextmanager
def guarded() -> Iterator[None]:
    """Fails on a hang and on memory far beyond the file's size."""

    def expired(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"no answer within {HANG_S} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(HANG_S)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT_B
    finally:
        tracemalloc.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def refusal(content: bytes) -> EngineError | None:
    """Returns the typed error of a model file, None when it is taken; any other exception passes."""
    with guarded():
        try:
            load_program(content)
        except EngineError as error:
            return error
    return None


def accepted(content: bytes) -> bool:
    error = refusal(content)
    assert error is None or (error.message and error.slug and error.phase == "setup")
    return error is None


def run_damaged(folder: Path, count: int, seed: int, fault: Fault) -> tuple[int, int]:
    """Returns how many damaged files were refused and how many of the accepted ones ran to the end."""
    sound, rng = small_model(), np.random.default_rng(seed)
    refused = ran = 0
    for number in range(count):
        content = fault(sound, rng)
        if not accepted(content):
            refused += 1
        elif content != sound and number % 8 == 0:
            path = folder / "damaged.tflite"
            path.write_bytes(content)
            try:
                AotEngine().prepare(path, inputs=None, seed=number)
            except (EngineError, InputError):
                continue
            ran += 1
    return refused, ran


def test_the_sound_model_is_accepted() -> None:
    assert accepted(small_model())


@pytest.mark.parametrize("fault", [damage, misuse])
def test_damaged_files_end_in_typed_errors(tmp_path: Path, fault: Fault) -> None:
    refused, _ = run_damaged(tmp_path, 250, 1, fault)
    assert refused > 60


@pytest.mark.soak
@pytest.mark.parametrize("fault", [damage, misuse])
def test_ten_thousand_damaged_files_end_in_typed_errors(tmp_path: Path, fault: Fault) -> None:
    refused, _ = run_damaged(tmp_path, 10_000, 2, fault)
    assert refused > 2_400


def test_every_truncation_is_refused() -> None:
    content = small_model()
    for size in {*range(64), *range(64, len(content), 37)}:
        assert not accepted(content[:size]), size


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_behind_the_identifier_are_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert not accepted(rng.bytes(4) + b"TFL3" + rng.bytes(2000))
