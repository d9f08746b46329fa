"""Stages of a run on this machine up to a warm model: ``load_model``, ``warm_up`` and ``time_operators``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.host.steadiness import find_steady
from joulemap.errors import InputError
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.campaign import OperatorTimes, TimeSource
from joulemap.records.progress import Phase, ProgressSink, ProgressUpdate
from joulemap.runtimes.base import RuntimeSession
from joulemap.workflow.host.context import Loaded, Ready, Timed, grow
from joulemap.workflow.host.inputs import build_inputs, doubt_inputs

__all__ = ["load_model", "settle", "time_operators"]

_CHUNK_S = 0.25
_PASSES_S = 1.0
_LEAST_PASSES, _MOST_PASSES = 10, 200
_SWAMPED = 1.5
_TRIAL_COPIES = 6
_TRIAL_WEIGHTS_B = 256 << 20
"""Copies of a trial hold no more together, but for one: an operator with such weights is not hard to time."""
_TRIAL_NODES = 600
_TRIAL_S = 0.03
_TRIALS = 3
_MOST_TRIALS_S = 120.0


def load_model(context: Ready) -> Loaded:
    """Returns the context with the model loaded, fed and warm.

    Raises:
        SetupError: the runtime is not installed (``missing-extra``).
        InputError: the model cannot be loaded or fed.
    """
    request = context.request
    session = context.runtime.open(request.session, context.access.session.now_ns)
    inputs = build_inputs(session.model.inputs, batch=request.session.batch, file=request.input, seed=request.seed)
    session.feed(inputs)
    findings = doubt_inputs(inputs)
    series: NDArray[np.float64] = session.run(5)
    while True:
        chunk = session.run(_count(_CHUNK_S, float(np.median(series))))
        series = np.concatenate([series, chunk])
        steadiness = find_steady(series)
        if steadiness.steady or float(series.sum()) > request.warm_up_s:
            break
    if not steadiness.steady:
        message = f"latencies still drift by {steadiness.drift:+.1%} after {series.sum():.1f} s of warm-up"
        findings = (*findings, Finding(slug="warm_up_unsettled", severity=Severity.WARNING, message=message))
    latency_s = float(series[steadiness.cut :].mean())
    context.progress(
        ProgressUpdate(
            phase=Phase.SETUP,
            name="model_warm",
            message=f"{session.model.name} is warm after {steadiness.cut} of {series.size} executions",
            details={"executions": series.size, "cut": steadiness.cut, "latency_s": latency_s},
            checkpoint=True,
        )
    )
    return grow(context, Loaded, session=session, warm_up=steadiness, latency_s=latency_s, findings=findings)


def _count(wanted_s: float, latency_s: float) -> int:
    return max(5, round(wanted_s / max(latency_s, 1e-7)))


def time_operators(context: Loaded) -> Timed:
    """Returns the context with operator times from a session that is not measured."""
    times = find_times(context.session, context.latency_s, context.progress)
    findings = list(times.findings)
    if times.source is TimeSource.NONE or np.isnan(times.duration_s).any():
        message = f"{context.runtime.traits.name} tells no time of its operators for this model"
        findings.append(Finding(slug="operator_times_missing", severity=Severity.WARNING, message=message))
    context.progress(
        ProgressUpdate(
            phase=Phase.PROFILE,
            name="operators_timed",
            message=f"{times.duration_s.shape[1]} operators timed by {times.source}",
            details={"operators": times.duration_s.shape[1], "passes": times.duration_s.shape[0]},
            checkpoint=True,
        )
    )
    return grow(context, Timed, times=times, findings=tuple(findings))


def find_times(
    session: RuntimeSession, latency_s: float, progress: ProgressSink, *, most_s: float = _MOST_TRIALS_S
) -> OperatorTimes:
    """Returns the times of the operators: from the runtime's profiler, or by repetition where that tells them better.

    A profiler that takes much time itself is believed all the same where repetition would take minutes. Without one,
    operators that do the same are then timed together.

    Args:
        session: fed and warm.
        latency_s: of one execution, s.
        progress: is told of each operator that is timed by repetition.
        most_s: time that repetition of each operator by itself may take, s.
    """
    passes = min(max(round(_PASSES_S / latency_s), _LEAST_PASSES), _MOST_PASSES)
    times = session.profile(passes)
    swamped = times is not None and bool(np.median(times.latency_s) > _SWAMPED * latency_s)
    missing = times is None or bool(np.isnan(times.duration_s).all())
    if times is not None and not (session.repeatable and (missing or swamped)):
        return times
    trials_s = _trials_s(session, latency_s)
    if trials_s <= most_s:
        return _times_by_repetition(session, latency_s, progress, [(k,) for k in sorted(session.repeatable)])
    if times is not None and not missing:
        return times
    alike = _alike(session)
    message = (
        f"each of {len(session.repeatable)} operators by itself would take {trials_s:.0f} s to time: those that do the"
        f" same were timed together, {len(alike)} kinds"
    )
    found = _times_by_repetition(session, latency_s, progress, alike, until_s=time.monotonic() + most_s)
    return replace(found, findings=(Finding(slug="operators_alike", severity=Severity.INFO, message=message),))


def _trials_s(session: RuntimeSession, latency_s: float) -> float:
    """Returns how long repetition of every operator takes, s, by how long a session of the model takes to open."""
    if not session.repeatable:
        return 0.0
    started_s = time.monotonic()
    session.again().close()
    return (time.monotonic() - started_s + 2.0 * _TRIALS * max(_TRIAL_S, 5.0 * latency_s)) * len(session.repeatable)


def _alike(session: RuntimeSession) -> list[tuple[int, ...]]:
    """Returns the operators that can be repeated, those together that do the same; what moves most comes first."""
    operators = session.model.operators
    found: dict[object, list[int]] = {}
    for k in sorted(session.repeatable):
        found.setdefault(replace(operators[k], index=0, name=""), []).append(k)
    kinds = [tuple(kind) for kind in found.values()]
    return sorted(kinds, key=lambda kind: -len(kind) * (operators[kind[0]].bytes + operators[kind[0]].macs))


def _times_by_repetition(
    session: RuntimeSession,
    latency_s: float,
    progress: ProgressSink,
    batches: Sequence[tuple[int, ...]],
    *,
    until_s: float = math.inf,
) -> OperatorTimes:
    """Returns times by executing operators several times in place; NaN for one that cannot be.

    Args:
        session: fed and warm.
        latency_s: of one execution, s.
        progress: is told of each batch.
        batches: operators that are executed together; each is given an equal part of their time.
        until_s: no batch but the first starts later, by the monotonic clock.
    """
    operators = session.model.operators
    size = len(operators)
    durations_s = np.full((_TRIALS, size), np.nan)
    count = _count(_TRIAL_S, latency_s)
    for done, batch in enumerate(batches):
        if done and time.monotonic() > until_s:
            break
        weights_b = sum(operators[k].weights_b for k in batch)
        extra = max(1, min(_TRIAL_COPIES - 1, _TRIAL_WEIGHTS_B // max(weights_b, 1), _TRIAL_NODES // len(batch)))
        try:
            other = session.repeated(batch, 1 + extra)
            other.run(max(count // 10, 2))
        except InputError:
            continue
        for trial in range(_TRIALS):  # the model as it is right beside it: a neighbour's load then meets both
            alone_s = float(np.median(session.run(count)))
            more_s = float(np.median(other.run(max(count // 2, 5))))
            durations_s[trial, list(batch)] = max((more_s - alone_s) / (extra * len(batch)), 0.0)
        other.close()
        progress(
            ProgressUpdate(
                phase=Phase.PROFILE,
                name="time_operators",
                message=f"operator {batch[0] + 1} of {size}",
                details={"done": done + 1, "total": len(batches)},
                min_verbosity=1,
            )
        )
    source = TimeSource.NONE if np.isnan(durations_s).all() else TimeSource.REPETITION
    return OperatorTimes(
        source=source,
        duration_s=durations_s,
        latency_s=np.empty(0),
        providers=tuple(o.provider for o in operators),
    )


def settle(session: RuntimeSession, wanted_s: float) -> float:
    """Runs the load for about as long as wanted, three times at least, and returns what one execution takes, s."""
    first_s = float(np.median(session.run(3)))
    return float(np.mean(session.run(_count(wanted_s, first_s))))
