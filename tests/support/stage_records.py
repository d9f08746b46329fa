"""Small records that stages take: a model without operators, a source, an artefact on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from joulemap.firmware.boards.virtual_m33.board import VIRTUAL_M33
from joulemap.firmware.engines.base import PreparedModel
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact, FirmwareSource
from joulemap.records.model import Layer, ModelSummary, TensorSpec
from joulemap.records.power import PowerRunPlan

__all__ = ["TARGET", "artifact", "plan", "prepared", "source", "summary"]

TARGET = VIRTUAL_M33


def summary(**changes: Any) -> ModelSummary:
    """Returns a model of two layers."""
    fields: dict[str, Any] = {
        "name": "tiny",
        "sha256": "0" * 64,
        "size_b": 100,
        "engine": "aot",
        "layers": tuple(
            Layer(index=k, op="CONV_2D", name=f"t{k}", symbol=f"hpx_layer_{k:03}", macs=1000, bytes=100)
            for k in range(2)
        ),
        "inputs": (TensorSpec(name="in", dtype="int8", shape=(1, 64), scale=1.0, zero_point=0, size_b=64),),
        "outputs": (TensorSpec(name="out", dtype="int8", shape=(1,), scale=1.0, zero_point=0, size_b=1),),
        "arena_b": 256,
        "constants_b": 1000,
    }
    return ModelSummary(**{**fields, **changes})


def prepared(**changes: Any) -> PreparedModel:
    """Returns a prepared model whose one file is a word."""
    fields: dict[str, Any] = {
        "summary": summary(),
        "files": {"model.c": "/* model */\n"},
        "inputs": {},
        "reference_output": b"\0",
        "reference_crc32": 1,
        "oracle": "by hand",
    }
    return PreparedModel(**{**fields, **changes})


def plan(**changes: Any) -> PowerRunPlan:
    """Returns the plan of 10 inferences of 1 ms."""
    fields: dict[str, Any] = {
        "requested_count": 10,
        "repeats": 3,
        "reference_inference_us": 1000.0,
        "planned_runtime_s": 0.01,
        "boot_allowance_s": 5.0,
        "fixed_margin_s": 2.0,
        "execution_deadline_s": 7.02,
        "gate_tolerance_s": 1e-5,
        "idle_window_s": 0.05,
        "tail_s": 0.005,
        "lockstep": True,
        "expected_crc32": 1,
    }
    return PowerRunPlan(**{**fields, **changes})


def source(role: ArtifactRole = ArtifactRole.PROFILE, text: str = "int x;\n") -> FirmwareSource:
    """Returns a source of one file."""
    return FirmwareSource(role=role, files={"main.c": text})


def artifact(folder: Path, built_from: FirmwareSource | None = None, **changes: Any) -> FirmwareArtifact:
    """Returns an artefact whose ELF is a file of 4 bytes."""
    built_from = built_from or source()
    elf = folder / f"{built_from.role}.elf"
    elf.write_bytes(b"\x7fELF")
    symbols = {"hpx_phase": (0x20000000, 4), "hpx_layer_000": (0x100, 8), "hpx_layer_001": (0x108, 8)}
    fields: dict[str, Any] = {
        "role": built_from.role,
        "elf": elf,
        "sha256": hashlib.sha256(b"\x7fELF").hexdigest(),
        "source_sha256": built_from.sha256,
        "sections": {".text": 5000, ".bss": 9000},
        "symbols": symbols,
        "flash_b": 5000,
        "ram_b": 9000,
        "toolchain": "zig 0",
        "command": (),
    }
    return FirmwareArtifact(**{**fields, **changes})
