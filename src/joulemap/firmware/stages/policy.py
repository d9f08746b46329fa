"""Policy of the pipeline: every constant that decides how long to wait, how much to run and what still counts.

None of it is a firmware value: the plan carries the results into the image as compile-time definitions.
"""

from __future__ import annotations

import math

__all__ = [
    "BOOT_ALLOWANCE_S",
    "CLEAN_PASSES",
    "CONTRAST_LIMIT",
    "FIXED_MARGIN_S",
    "GO_TIMEOUT_S",
    "IDLE_WINDOW_S",
    "INSTRUMENTED_PASSES",
    "LATE_RECORD_S",
    "LEAST_CODE_B",
    "LEAST_COUNT",
    "LOST_SHARE_LIMIT",
    "RUN_TO_RUN_STD",
    "STACK_B",
    "TAIL_S",
    "TERMINAL_RING_B",
    "TERMINAL_TIMEOUT_S",
    "WARMUP_PASSES",
    "WINDOW_REAL_S",
    "WINDOW_VIRTUAL_S",
    "execution_deadline_s",
    "gate_tolerance_s",
    "inference_count",
    "profile_deadline_s",
    "profile_ring_b",
]

BOOT_ALLOWANCE_S = 5.0
"""READY must be seen by then."""
RUNTIME_FACTOR = 2.0
FIXED_MARGIN_S = 2.0
GO_TIMEOUT_S = BOOT_ALLOWANCE_S + FIXED_MARGIN_S / 2
"""The firmware gives up waiting for GO: after the host would, before the shortest deadline."""
IDLE_WINDOW_S = 0.05
TAIL_S = 0.005
"""Recorded after the terminal record, when the fall of GATE was seen."""
TERMINAL_TIMEOUT_S = 0.5
"""Board time after GATE within which the terminal record counts."""
LATE_RECORD_S = 1.5
"""Delay of the planted fault ``terminal_late``: beyond the time-out, well inside the deadline."""

LEAST_COUNT = 10
WINDOW_VIRTUAL_S = 2.0
WINDOW_REAL_S = 10.0
"""EnergyRunner's rule: at least 10 s or at least 10 iterations."""
GATE_TOLERANCE_VIRTUAL = 1e-3
GATE_TOLERANCE_REAL = 1e-2
GATE_TOLERANCE_SAMPLES = 2.0
LOST_SHARE_LIMIT = 0.01
"""Share of the gate that the instrument may lose before the capture is degraded."""

WARMUP_PASSES = 3
CLEAN_PASSES = 5
INSTRUMENTED_PASSES = 5
PASS_ALLOWANCE_S = 1.0
CYCLES_PER_MAC_LIMIT = 200.0
"""No kernel of ours needs a quarter of it; it only bounds how long a profile run may take."""

STACK_B = 8192
TERMINAL_RING_B = 2048
LEAST_CODE_B = 4096
"""Vectors, port, loop and protocol of the smallest image; the linked ELF says the rest."""

RUN_TO_RUN_STD = 0.002
"""Relative run-to-run variation of a virtual board, 1 sd."""
CONTRAST_LIMIT = 2.0
"""``--contrast`` draws a layer's factor log-uniform between 1/limit and limit."""


def inference_count(window_s: float, reference_s: float) -> int:
    """Returns N for a wanted gate length, at least :data:`LEAST_COUNT`.

    Raises:
        ValueError: the reference is not positive.
    """
    if not reference_s > 0:
        raise ValueError(f"a reference inference must take time, got {reference_s} s")
    return max(LEAST_COUNT, math.ceil(window_s / reference_s))


def execution_deadline_s(planned_runtime_s: float) -> float:
    """Returns the board time after which a capture is given up, s."""
    return BOOT_ALLOWANCE_S + RUNTIME_FACTOR * planned_runtime_s + FIXED_MARGIN_S


def gate_tolerance_s(planned_runtime_s: float, sample_period_s: float, *, virtual: bool) -> float:
    """Returns how far GATE may be from N times the reference, s."""
    relative = GATE_TOLERANCE_VIRTUAL if virtual else GATE_TOLERANCE_REAL
    return max(relative * planned_runtime_s, GATE_TOLERANCE_SAMPLES * sample_period_s)


def profile_deadline_s(macs: int, core_hz: float) -> float:
    """Returns the board time after which a profile run is given up, s."""
    passes = WARMUP_PASSES + CLEAN_PASSES + INSTRUMENTED_PASSES
    return BOOT_ALLOWANCE_S + FIXED_MARGIN_S + passes * (PASS_ALLOWANCE_S + CYCLES_PER_MAC_LIMIT * macs / core_hz)


def profile_ring_b(layers: int) -> int:
    """Returns a ring that holds the whole profile stream, so that no timed pass ever waits for the host, bytes."""
    line_b = 40
    lines = 16 + CLEAN_PASSES + INSTRUMENTED_PASSES * (3 + layers)
    return 1024 * math.ceil(line_b * lines / 1024)
