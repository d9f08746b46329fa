"""What is to be run: how long a window must be for the meter, which operators are repeated, and how often.

References:
    METHODS 1.6 in docs/methods.md: the variance of a slope, sigma^2 (T_1^2 + T_k^2) / (n (k - 1)^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import Load, LoadKind

__all__ = ["WeightRoom", "WindowPlan", "plan_loads", "plan_window"]

LEAST_SHARE = 0.01
"""Operators with less of the time are measured together."""
_EXTRA = 2.0
"""Time that repetition adds, in inferences: 2 gives 1.6 times the noise of a window, and more gains little."""
_MOST_NODES = 600
"""Operators that a repeated graph may have more than the model."""
_UPDATES = 20
_SMEARS = 10
_DEFAULT_S = 1.0
_LEAST_COUNT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """How long windows are, and why.

    Args:
        window_s: length of each window, s.
        idle_s: length of each idle window, s.
        reason: in words.
        updates: how often the meter renews its value within a window; None when its period is not known.
    """

    window_s: float
    idle_s: float
    reason: str
    updates: float | None


def plan_window(
    latency_s: float, *, wanted_s: float | None, update_period_s: float | None, smear_s: float
) -> WindowPlan:
    """Returns a window of at least 20 updates of the meter, 10 of its averaging windows, and 10 inferences.

    Args:
        latency_s: of one inference, s.
        wanted_s: asked for, s; None for 1 s.
        update_period_s: of the meter, s; None when it is not known: 0.1 s is taken.
        smear_s: averaging window of the meter, s.
    """
    period_s = 0.1 if update_period_s is None else update_period_s
    needs = {
        "asked for" if wanted_s is not None else "default": _DEFAULT_S if wanted_s is None else wanted_s,
        f"{_UPDATES} updates of the meter ({period_s:.3g} s each)": _UPDATES * period_s,
        f"{_SMEARS} averaging windows of the meter ({smear_s:.3g} s each)": _SMEARS * smear_s,
        f"{_LEAST_COUNT} inferences": _LEAST_COUNT * latency_s,
    }
    reason, window_s = max(needs.items(), key=lambda need: need[1])
    idle_s = max(0.5 * window_s, _UPDATES * period_s, _SMEARS * smear_s)
    updates = None if update_period_s is None else window_s / update_period_s
    return WindowPlan(window_s=window_s, idle_s=idle_s, reason=reason, updates=updates)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRoom:
    """Weights that repeated graphs hold, bytes.

    Args:
        model_b: of the model; every graph holds them.
        operators_b: that each operator reads; its copies may each hold them again.
        spare_b: for the copies of one load; one or two copies are always made.
        fast: operators that read their weights so fast that it matters which cache holds them.
        fast_b: for the copies of a load with one of these.
        all_b: for all graphs that are held at one time.
        cached: operators that read their weights as fast as only caches give them: copies change what these hold, so
            they are not to be repeated.
        read_b: that each operator reads besides its weights; empty where it is not known.
    """

    model_b: int
    operators_b: tuple[int, ...]
    spare_b: int
    all_b: int
    fast: frozenset[int] = frozenset()
    fast_b: int = 0
    cached: frozenset[int] = frozenset()
    read_b: tuple[int, ...] = ()

    def copies(self, operators: Sequence[int]) -> int:
        """Returns how many more executions of the operators there is room for."""
        own_b = sum(self.operators_b[k] for k in operators)
        spare_b = self.spare_b if self.fast.isdisjoint(operators) else min(self.fast_b, self.spare_b)
        return spare_b // own_b if own_b else _MOST_NODES

    def graph_b(self, load: Load) -> int:
        """Returns what the graph of a load holds: weights, and what its passes read until the model is through.

        An operator right after another one of the load reads what that one's copy wrote, which is free again.
        """
        chosen = set(load.operators) if self.read_b and len(load.operators) > 1 else set()
        kept_b = sum(self.read_b[k] for k in chosen if k - 1 not in chosen)
        return self.model_b + kept_b + (load.copies - 1) * sum(self.operators_b[k] for k in load.operators)


def _least_extra(operators: Sequence[int]) -> int:
    """Returns how many more executions there are at least: of several operators two, for two ways to have weights."""
    return min(len(operators), 2)


def plan_loads(
    shares: NDArray[np.float64], repeatable: frozenset[int], *, most: int, room: WeightRoom | None = None
) -> tuple[Load, ...]:
    """Returns the loads that measure operators by repetition: the largest alone, what is small together.

    Args:
        shares: (operators,) of the time of an inference; NaN where it is not known.
        repeatable: operators that can be repeated.
        most: loads at most; 0 for none.
        room: for weights; None for as much as wanted.
    """
    known = [k for k in range(shares.size) if k in repeatable and np.isfinite(shares[k])]
    if most < 1 or not known:
        return ()
    known.sort(key=lambda k: -shares[k])
    alone = [k for k in known if shares[k] >= LEAST_SHARE][: most if len(known) <= most else most - 1]
    rest = sorted(set(known) - set(alone))

    def load(operators: Sequence[int]) -> Load:
        share = float(shares[list(operators)].sum())
        wanted = math.ceil(_EXTRA / share) if share > 0 else _MOST_NODES
        most_copies = _MOST_NODES if room is None else room.copies(operators)
        extra = max(_least_extra(operators), min(wanted, _MOST_NODES // len(operators), most_copies))
        return Load(kind=LoadKind.REPEATED, operators=tuple(operators), copies=1 + extra)

    loads = (*(load((k,)) for k in sorted(alone)), *((load(rest),) if rest else ()))
    return tuple(load for load in loads if room is None or room.model_b + room.graph_b(load) <= room.all_b)
