"""Writes profile streams and terminal records as the firmware does, with a checksum that is right."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from joulemap.firmware.wire.lines import BlockGrammar
from joulemap.firmware.wire.profile_stream import PROFILE_GRAMMAR
from joulemap.firmware.wire.terminal import TERMINAL_GRAMMAR

__all__ = ["TERMINAL", "block", "profile_stream", "terminal_record"]

TERMINAL: Mapping[str, object] = {
    "STATUS": "ok",
    "REQUESTED_COUNT": 10,
    "COMPLETED_COUNT": 10,
    "ELAPSED_US": 1948,
    "FINAL_PHASE": 7,
    "ERROR_CODE": 0,
    "GATE_ASSERTED": 1,
    "GATE_LOWERED": 1,
    "OUTPUT_CRC32": 3135200373,
}


def block(grammar: BlockGrammar, lines: Sequence[str], *, version: int = 1) -> bytes:
    """Returns start marker, lines, checksum and end marker."""
    body = "".join(f"{line}\n" for line in (f"{grammar.start} VERSION={version}", *lines)).encode()
    return body + f"{grammar.checksum}={zlib.crc32(body)}\n{grammar.end}\n".encode()


def terminal_record(
    values: Mapping[str, object] | None = None, *, version: int = 1, without: Sequence[str] = (), **more: object
) -> bytes:
    """Returns a terminal record; values replace or add keys."""
    keys = {**TERMINAL, **(values or {}), **more}
    lines = [f"{key}={value}" for key, value in keys.items() if key not in without]
    return block(TERMINAL_GRAMMAR, lines, version=version)


def profile_stream(
    *,
    head: Sequence[int] = (131, 131),
    layers: Sequence[Sequence[int]] = ((372, 18978), (372, 18978)),
    clean: Sequence[int] = (19465, 19465),
    overflow: Sequence[int] | None = None,
    totals: Sequence[int] | None = None,
    extra: Sequence[str] = (),
    **facts: int,
) -> bytes:
    """Returns the stream of an image with these counters (values are written modulo 2^32)."""
    stated = {
        "CORE_HZ": 100_000_000,
        "LAYERS": len(layers[0]),
        "WARMUP_PASSES": 3,
        "CLEAN_PASSES": len(clean),
        "INSTRUMENTED_PASSES": len(head),
        "INIT_CODE": 0,
        "MARK_CYCLES": 15,
        "HEAD_MARK_CYCLES": 11,
        "RETURN_CYCLES": 2,
        **facts,
    }
    lines = [f"{key}={value}" for key, value in stated.items()]
    lines += [f"CLEAN_CYCLES.{p}={cycles % 2**32}" for p, cycles in enumerate(clean)]
    for p, row in enumerate(layers):
        parts = head[p] + sum(row)
        total = parts if totals is None else totals[p]
        flag = int(parts >= 2**32) if overflow is None else overflow[p]
        lines += [f"INSTRUMENTED_CYCLES.{p}={total % 2**32}", f"HEAD_CYCLES.{p}={head[p]}"]
        lines += [f"LAYER_CYCLES.{p}.{k}={cycles}" for k, cycles in enumerate(row)]
        lines.append(f"OVERFLOW.{p}={flag}")
    return block(PROFILE_GRAMMAR, [*lines, "OUTPUT_CRC32=7", *extra])
