"""Small firmware for tests of boards: C text in, a reset session of the virtual board out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from joulemap.firmware.boards.base import BoardStop, ResetOptions, StopReason
from joulemap.firmware.boards.virtual_m33.board import VIRTUAL_M33, VirtualM33Board
from joulemap.firmware.boards.virtual_m33.client import VirtualM33Session
from joulemap.firmware.toolchains.zig import ZigToolchain
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact, FirmwareSource
from joulemap.records.target import Line

__all__ = [
    "FOLDER",
    "LAYERS",
    "build_firmware",
    "build_network",
    "firmware_source",
    "open_session",
    "read_word",
    "run_inference",
]

FOLDER = Path(__file__).parent / "firmware"
LAYERS = ("layer_000", "layer_001", "layer_002")
_PROLOGUE = '#include "board.h"\n'


def firmware_source(main: str, defines: Mapping[str, str] | None = None) -> FirmwareSource:
    """Returns a whole image around the text of one C file."""
    shared = ("board.h", "board.c", "startup.c", "test.ld")
    files = {name: (FOLDER / name).read_text(encoding="utf-8") for name in shared}
    return FirmwareSource(role=ArtifactRole.POWER, files=files | {"main.c": main}, defines=dict(defines or {}))


@cache
def build_firmware(main: str) -> FirmwareArtifact:
    """Returns the image built around a C text that may use ``board.h``."""
    return ZigToolchain().build(firmware_source(_PROLOGUE + main), VIRTUAL_M33.cpu)


@cache
def build_network(inferences: int = 5) -> FirmwareArtifact:
    """Returns the image of ``network.c``."""
    source = firmware_source((FOLDER / "network.c").read_text(encoding="utf-8"), {"INFERENCES": str(inferences)})
    return ZigToolchain().build(source, VIRTUAL_M33.cpu)


@contextmanager
def open_session(
    artifact: FirmwareArtifact, *, layers: tuple[str, ...] = (), pricing: str = "scout"
) -> Iterator[VirtualM33Session]:
    """Yields a board with the image in flash, not yet reset."""
    session = VirtualM33Board(pricing=pricing).open()
    try:
        session.flash(artifact.elf, layer_symbols=layers)
        yield session
    finally:
        session.close()


def read_word(session: VirtualM33Session, artifact: FirmwareArtifact, symbol: str, index: int = 0) -> int:
    """Returns a 32-bit word of a variable."""
    address, _ = artifact.symbols[symbol]
    return int.from_bytes(session.read_memory(address + 4 * index, 4), "little")


def run_inference(session: VirtualM33Session, options: ResetOptions, *, idle_s: float = 0.0) -> BoardStop:
    """Resets ``network.c``, gives GO after an idle time, and returns the stop after the gate has fallen."""
    session.reset(options)
    assert session.run(until=frozenset({Line.READY})).reason is StopReason.EDGE
    assert session.run().reason is StopReason.IDLE
    session.advance(idle_s)
    session.set_line(Line.GO, level=True)
    rise = session.run(until=frozenset({Line.GATE}))
    assert (rise.reason, rise.level) == (StopReason.EDGE, True)
    return session.run(until=frozenset({Line.GATE}))
