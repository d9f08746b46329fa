"""Runs a program's C on this host, layer by layer, beside the oracle: the check of every kernel and of every new op.

Takes a shared library that a toolchain has built from ``host_sources``; knows no toolchain.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.firmware.engines.aot.emit import MODEL_SOURCE, emit_sources
from joulemap.firmware.engines.aot.inputs import draw_inputs
from joulemap.firmware.engines.aot.lowering import lower_graph
from joulemap.firmware.engines.aot.oracle import Oracle
from joulemap.firmware.engines.aot.program import LayerCall, Program
from joulemap.firmware.engines.aot.tflite.reader import parse_model

__all__ = ["HostModel", "Mismatch", "compare_layers", "host_sources", "load_program"]

_ARENA_ACCESS = "\nuint8_t *hpx_host_arena(void);\nuint8_t *hpx_host_arena(void) { return hpx_arena; }\n"
_CRC32 = """\
#include "hpx_model.h"

uint32_t hpx_crc32_update(uint32_t crc, const void *bytes, uint32_t size)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (uint32_t i = 0; i < size; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        }
    }
    return ~crc;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A layer whose output differs from the oracle's.

    Args:
        layer: the layer.
        differing: bytes that differ.
        total: bytes of the output.
    """

    layer: LayerCall
    differing: int
    total: int


def load_program(content: bytes) -> Program:
    """Returns the program of a model file's bytes; raises as ``parse_model`` and ``lower_graph`` do."""
    return lower_graph(parse_model(content))


def host_sources(program: Program) -> dict[str, str]:
    """Returns the C files of a host library: the model as emitted, with a way in to its arena."""
    target = resources.files("joulemap.firmware") / "csrc" / "target"
    files = emit_sources(program, draw_inputs(program, seed=0))
    files["hpx_model.h"] = (target / "hpx_model.h").read_text(encoding="utf-8")
    files[MODEL_SOURCE] += _ARENA_ACCESS
    files["hpx_host_crc32.c"] = _CRC32
    return files


class HostModel:
    """A model's C, loaded into this process.

    Args:
        library: shared library built from ``host_sources(program)``.
        program: the program.
    """

    def __init__(self, library: Path, program: Program) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.hpx_host_arena.restype = ctypes.POINTER(ctypes.c_uint8)
        self._library.hpx_model_output_crc32.restype = ctypes.c_uint32
        self._program = program
        address = ctypes.cast(self._library.hpx_host_arena(), ctypes.c_void_p).value
        assert address is not None
        self._arena = (ctypes.c_uint8 * program.arena_b).from_address(address)

    def load(self, inputs: Mapping[str, NDArray[np.generic]]) -> None:
        """Puts inputs by name into the arena, in place of the built-in ones."""
        for index, name in self._program.input_names.items():
            content = inputs[name].tobytes()
            start = self._program.offsets_b[index]
            ctypes.memmove(ctypes.addressof(self._arena) + start, content, len(content))

    def run_layer(self, layer: LayerCall) -> bytes:
        """Runs one layer and returns its output as it lies in the arena."""
        getattr(self._library, layer.symbol)()
        return self.tensor(layer.output)

    def tensor(self, index: int) -> bytes:
        """Returns what lies in an activation's place now; another tensor may have taken it over."""
        start = self._program.offsets_b[index]
        return bytes(memoryview(self._arena)[start : start + self._program.tensor(index).size_b])

    def run(self) -> int:
        """Runs one whole inference on the built-in input and returns the checksum of the outputs."""
        self._library.hpx_model_run()
        crc: int = self._library.hpx_model_output_crc32()
        return crc


def compare_layers(
    model: HostModel, oracle: Oracle, program: Program, inputs: Mapping[str, NDArray[np.generic]]
) -> list[Mismatch]:
    """Returns the layers whose output differs from the oracle's on one input; empty when all agree to the bit."""
    oracle.run(inputs)
    model.load(inputs)
    found: list[Mismatch] = []
    for layer in program.layers:
        ours, theirs = model.run_layer(layer), oracle.tensor(layer.output)
        if ours != theirs:
            differing = int(np.count_nonzero(np.frombuffer(ours, np.uint8) != np.frombuffer(theirs, np.uint8)))
            found.append(Mismatch(layer=layer, differing=differing, total=len(ours)))
    return found
