"""What is to be run: how long a window must be for the meter, which operators are repeated, and how often.

References:
    METHODS 1.6 in docs/methods.md: the variance of a slope, sigma^2 (T_1^2 + T_k^2) / (n (k - 1)^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import Load, LoadKind

__all__ = ["WindowPlan", "plan_loads", "plan_window"]

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


def plan_loads(shares: NDArray[np.float64], repeatable: frozenset[int], *, most: int) -> tuple[Load, ...]:
    """Returns the loads that measure operators by repetition: the largest alone, what is small together.

    Args:
        shares: (operators,) of the time of an inference; NaN where it is not known.
        repeatable: operators that can be repeated.
        most: loads at most; 0 for none.
    """
    known = [k for k in range(shares.size) if k in repeatable and np.isfinite(shares[k])]
    if most < 1 or not known:
        return ()
    known.sort(key=lambda k: -shares[k])
    alone = [k for k in known if shares[k] >= LEAST_SHARE][: most if len(known) <= most else most - 1]
    rest = sorted(set(known) - set(alone))
    loads = [Load(kind=LoadKind.REPEATED, operators=(k,), copies=_copies(shares[k], 1)) for k in sorted(alone)]
    if rest:
        share = float(shares[rest].sum())
        loads.append(Load(kind=LoadKind.REPEATED, operators=tuple(rest), copies=_copies(share, len(rest))))
    return tuple(loads)


def _copies(share: float, nodes: int) -> int:
    wanted = math.ceil(_EXTRA / share) if share > 0 else _MOST_NODES
    return 1 + max(1, min(wanted, _MOST_NODES // nodes))
