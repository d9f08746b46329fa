"""Random graphs of ops that share memory: nothing live is overwritten, every layer and output stays exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joulemap.firmware.engines.aot.hostcheck import HostModel, compare_layers, host_sources, load_program
from joulemap.firmware.engines.aot.inputs import draw_inputs
from joulemap.firmware.engines.aot.oracle import open_oracle
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter
from joulemap.firmware.toolchains.zig import ZigToolchain

PROBABILITY = (1 / 256, -128)


class GraphWriter:
    """Grows a graph of 24-byte tensors, some of them wider, one drawn operator at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.writer, self.rng = ModelWriter(), rng
        self.tensors: list[tuple[int, list[int], tuple[float, int]]] = []
        for _ in range(int(rng.integers(1, 3))):
            self.add_input()

    def add_input(self) -> None:
        index = self.tensor([1, 2, 3, 4], (0.1, 5))
        self.writer.input(index)

    def tensor(self, shape: list[int], quantization: tuple[float, int]) -> int:
        scale, zero = quantization
        index = self.writer.tensor(f"t{len(self.tensors)}", shape, scale=scale, zero_point=zero)
        self.tensors.append((index, shape, quantization))
        return index

    def pick(self) -> tuple[int, list[int], tuple[float, int]]:
        recent = self.tensors[-4:] if self.rng.integers(0, 2) else self.tensors
        return recent[int(self.rng.integers(0, len(recent)))]

    def grow(self) -> None:
        index, shape, quantization = self.pick()
        match int(self.rng.integers(0, 6)):
            case 0:
                self.writer.operator("LOGISTIC", [index], [self.tensor(shape, PROBABILITY)])
            case 1:
                self.writer.operator("SOFTMAX", [index], [self.tensor(shape, PROBABILITY)], {"beta": 1.0})
            case 2:
                target = (float(np.float32(self.rng.uniform(0.01, 0.2))), int(self.rng.integers(-128, 128)))
                self.writer.operator("QUANTIZE", [index], [self.tensor(shape, target)], {})
            case 3:
                other = [1, int(np.prod(shape))] if len(shape) == 4 else [1, 2, 3, shape[1] // 6]
                self.writer.operator("RESHAPE", [index], [self.tensor(other, quantization)], {"newShape": other})
            case 4:
                partners = [t for t in self.tensors if t[1] == shape]
                second = partners[int(self.rng.integers(0, len(partners)))][0]
                y = self.tensor(shape, (0.2, -7))
                self.writer.operator("ADD", [index, second], [y], {"fusedActivationFunction": 0})
            case _:
                self.pad(index, shape, quantization)

    def pad(self, index: int, shape: list[int], quantization: tuple[float, int]) -> None:
        """Doubles the last axis, so that tensors of several sizes compete for the arena."""
        if shape[-1] > 48:
            return
        amounts = np.zeros((len(shape), 2), np.int32)
        amounts[-1] = [0, shape[-1]]
        p = self.writer.tensor("p", [len(shape), 2], "INT32", data=amounts)
        y = self.tensor([*shape[:-1], 2 * shape[-1]], quantization)
        self.writer.operator("PAD", [index, p], [y], {})

    def build(self) -> bytes:
        outputs = {int(self.rng.integers(0, len(self.tensors))) for _ in range(3)} | {len(self.tensors) - 1}
        for position in sorted(outputs):
            self.writer.output(self.tensors[position][0])
        return self.writer.build()


def check(seed: int, size: int, folder: Path) -> None:
    graph = GraphWriter(np.random.default_rng(seed))
    while len(graph.tensors) < size:
        graph.grow()
    content = graph.build()
    program = load_program(content)
    library = ZigToolchain(folder).build_host_library("graph", host_sources(program))
    model, oracle = HostModel(library, program), open_oracle(content, program)
    assert oracle is not None
    for draw in range(2):
        found = compare_layers(model, oracle, program, draw_inputs(program, draw))
        assert not found, [(f.layer.index, f.layer.op, f.differing, f.total) for f in found]
        for index in program.graph.outputs:
            assert model.tensor(index) == oracle.tensor(index)
    sizes_b = sum(program.tensor(i).size_b for i in program.offsets_b)
    assert program.arena_b <= sizes_b + 16 * len(program.offsets_b)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def test_random_graphs_stay_exact_while_they_share_memory(cache: Path) -> None:
    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32 - 1), st.integers(6, 24))
    def run(seed: int, size: int) -> None:
        check(seed, size, cache)

    run()


@pytest.mark.soak
def test_many_random_graphs_stay_exact(cache: Path) -> None:
    @settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32 - 1), st.integers(4, 40))
    def run(seed: int, size: int) -> None:
        check(seed, size, cache)

    run()
