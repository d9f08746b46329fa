"""Ratios in one run: what is measured and its baseline take turns, and only their quotient is printed.

Seconds of a shared machine mean little; two of them taken in turn mean something together. Asserts nothing: a
benchmark is read, a test is passed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ["print_ratio", "time_in_turn"]


def time_in_turn(calls: Mapping[str, Callable[[], object]], *, rounds: int = 5) -> dict[str, float]:
    """Returns the median duration of each call, s: one unmeasured round, then so many in turn."""
    durations_s: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if round_:
                durations_s[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in durations_s.items()}


def print_ratio(label: str, ratio: float, *, target: str, met: bool | None) -> None:
    """Prints one line: id and what, its target, the ratio and whether it was met (None: not comparable here)."""
    verdict = {True: "ok", False: "MISSED", None: "n/a"}[met]
    print(f"{label:<62} {target:<12} {ratio:9.3g}   {verdict}", flush=True)
