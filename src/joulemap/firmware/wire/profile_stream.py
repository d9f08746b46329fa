"""Parses what ``hpx_profiler`` prints into a :class:`PmuResult`: marks taken out, counter range made whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import CaptureError
from joulemap.firmware.wire import vocabulary
from joulemap.firmware.wire.lines import BlockGrammar, Defect, WireBlock, WireDefectError, find_blocks, parse_block
from joulemap.records.finding import Finding, Severity
from joulemap.records.firmware import ArtifactRole
from joulemap.records.profile import PmuResult

__all__ = ["PROFILE_GRAMMAR", "is_profile_complete", "parse_profile_stream"]

PROFILE_GRAMMAR = BlockGrammar(
    start=vocabulary.PROFILE_START,
    end=vocabulary.PROFILE_END,
    keys=vocabulary.PROFILE_KEYS,
    checksum="STREAM_CRC32",
)
_WRAP = 2**32
_LINK_HINT = "check the link between probe and board, then run again"
_REASONS = {
    Defect.MISSING: ("profile-missing", "check the probe and that the image reaches its transport"),
    Defect.TRUNCATED: ("profile-truncated", _LINK_HINT),
    Defect.VERSION: ("profile-version", "build the firmware and joulemap from one version"),
    Defect.CORRUPT: ("profile-corrupt", _LINK_HINT),
    Defect.INCOMPLETE: ("profile-incomplete", _LINK_HINT),
    Defect.DUPLICATE_KEY: ("profile-duplicate-key", _LINK_HINT),
    Defect.UNKNOWN_KEY: ("profile-unknown-key", _LINK_HINT),
}


def is_profile_complete(stream: bytes) -> bool:
    """True when the end marker has arrived."""
    return b"\n" + vocabulary.PROFILE_END.encode() + b"\n" in stream


def parse_profile_stream(stream: bytes, *, counter_source: str, layer_count: int) -> PmuResult:
    """Returns the counter results of one profile stream; instructions are not in it.

    Args:
        stream: everything that was received.
        counter_source: where the target's cycles come from.
        layer_count: layers of the model that was built into the image.

    Raises:
        CaptureError: ``profile-missing``, ``profile-truncated``, ``profile-version``, ``profile-corrupt`` (which line),
            ``profile-incomplete``, ``profile-duplicate-key``, ``profile-unknown-key``, or the model could not be
            initialised (``profile-model-init``).
    """
    try:
        block = parse_block(find_blocks(stream, PROFILE_GRAMMAR)[0], PROFILE_GRAMMAR)
    except WireDefectError as error:
        slug, hint = _REASONS[error.defect]
        raise _error(f"profile stream: {error}", slug, hint) from error
    if block.number("INIT_CODE"):
        raise _error(
            f"the model refused to initialise on the board, code {block.number('INIT_CODE')}",
            "profile-model-init",
            "compare the memory plan with what the engine needs (-v shows both)",
        )
    if block.number("LAYERS") != layer_count:
        raise _error(
            f"the image has {block.number('LAYERS')} layers, the model {layer_count}",
            "profile-corrupt",
            "the board runs another image than the one that was built; deploy again",
        )
    return _build_result(block, counter_source, layer_count)


def _error(message: str, slug: str, hint: str) -> CaptureError:
    return CaptureError(message, hint=hint, slug=slug, phase="profile", artifact_role=ArtifactRole.PROFILE)


def _array(block: WireBlock, key: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Returns the values of an indexed key.

    Raises:
        CaptureError: one is missing or lies outside the shape.
    """
    values = block.indexed[key]
    wanted = int(np.prod(shape))
    inside = all(index < size for indices in values for index, size in zip(indices, shape, strict=True))
    if len(values) != wanted or not inside:
        raise _error(
            f"{key}: {len(values)} values, expected {wanted} with indices below {shape}",
            "profile-incomplete",
            _LINK_HINT,
        )
    array = np.zeros(shape, np.int64)
    for indices, value in values.items():
        array[indices] = value
    return array


def _build_result(block: WireBlock, counter_source: str, layer_count: int) -> PmuResult:
    clean_passes, passes = block.number("CLEAN_PASSES"), block.number("INSTRUMENTED_PASSES")
    if not (clean_passes and passes):
        raise _error("the image timed no pass", "profile-incomplete", "build it with at least one pass of each kind")
    clean = _array(block, "CLEAN_CYCLES", (clean_passes,))
    total = _array(block, "INSTRUMENTED_CYCLES", (passes,))
    head = _array(block, "HEAD_CYCLES", (passes,))
    layers = _array(block, "LAYER_CYCLES", (passes, layer_count))
    overflow = _array(block, "OVERFLOW", (passes,)).astype(bool)
    parts = head + layers.sum(axis=1)
    if bool(np.any((parts - total) % _WRAP)):
        p = int(np.argmax((parts - total) % _WRAP != 0))
        raise _error(
            f"pass {p}: input load and layers add up to {parts[p]} cycles, its total says {total[p]}",
            "profile-corrupt",
            _LINK_HINT,
        )
    clean, findings = _unwrap(clean, parts, overflow)
    core_hz = block.number("CORE_HZ")
    if not core_hz:
        raise _error("CORE_HZ is 0", "profile-corrupt", "build the firmware again")
    cost = block.number("RETURN_CYCLES")
    head, head_findings = _without_mark(head, block.number("HEAD_MARK_CYCLES") - cost, "input load")
    layers, layer_findings = _without_mark(layers, block.number("MARK_CYCLES") - cost, "layer")
    return PmuResult(
        core_hz=float(core_hz),
        counter_source=counter_source,
        clean_cycles=clean,
        instrumented_cycles=parts,
        head_cycles=head,
        layer_cycles=layers,
        mark_cycles=block.number("MARK_CYCLES") - cost,
        layer_instructions=None,
        output_crc32=block.optional_number("OUTPUT_CRC32"),
        findings=(*findings, *head_findings, *layer_findings),
    )


def _unwrap(
    clean: NDArray[np.int64], parts: NDArray[np.int64], overflow: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], tuple[Finding, ...]]:
    """Adds to the clean passes the whole counter ranges that the parts of a marked pass prove."""
    wraps = np.maximum(np.rint((np.median(parts) - clean) / _WRAP), 0).astype(np.int64)
    if not (bool(overflow.any()) or bool(wraps.any())):
        return clean, ()
    passes = ", ".join(str(p) for p in np.flatnonzero(overflow))
    finding = Finding(
        slug="counter_overflow",
        severity=Severity.WARNING,
        message=f"the 32-bit cycle counter overflowed within instrumented pass {passes or '(none)'}; "
        "totals are taken from the sum of the parts and medians over the passes",
        span="counter cycles",
    )
    return clean + wraps * _WRAP, (finding,)


def _without_mark(cycles: NDArray[np.int64], mark: int, what: str) -> tuple[NDArray[np.int64], tuple[Finding, ...]]:
    net = cycles - mark
    if not bool(np.any(net < 0)):
        return net, ()
    finding = Finding(
        slug="mark_exceeds_layer",
        severity=Severity.WARNING,
        message=f"a {what} took {int(cycles.min())} cycles with its mark, the mark alone {mark}; taken as 0",
        span=what,
    )
    return np.maximum(net, 0), (finding,)
