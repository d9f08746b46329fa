"""Stages that measure: ``plan_windows`` says what will run, ``measure_windows`` runs it under the meter."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from joulemap.analysis.host.plan import WeightRoom, plan_loads, plan_window
from joulemap.errors import InputError
from joulemap.firmware.stages.seeds import named_stream
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.campaign import BARE, BASE, Load, LoadKind, LoadWindow
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.runtimes.base import RuntimeSession
from joulemap.runtimes.graphs.repetition import spare_weights_b
from joulemap.workflow.host.context import Planned, Recorded, Timed, grow, operator_shares
from joulemap.workflow.host.domains import sum_domains
from joulemap.workflow.host.load_stages import settle
from joulemap.workflow.machine.isolation import probe_isolation
from joulemap.workflow.machine.tree import MachineTree

__all__ = ["measure_windows", "plan_windows", "weight_room"]

_MEMORY_SHARE = 4
"""One part of so many of the memory is for the weights of all repeated graphs together."""
_WARM = 10
_LEAD = 0.05
_IDLE = Load(kind=LoadKind.IDLE)


def plan_windows(context: Timed) -> Planned:
    """Returns the context with the length of windows and the loads, said as a checkpoint."""
    request, access, session = context.request, context.access, context.session
    plan = plan_window(
        context.latency_s,
        wanted_s=request.window_s,
        update_period_s=access.update_period_s,
        smear_s=access.smear_s,
    )
    shares, room = operator_shares(context.times), weight_room(session)
    loads = plan_loads(shares, session.repeatable, most=request.operators, room=room)
    findings = []
    if len(loads) < len(plan_loads(shares, session.repeatable, most=request.operators)):
        message = f"each repeated graph holds {room.model_b / 2**20:.0f} MiB of weights or more: {len(loads)} fit"
        findings.append(Finding(slug="repetition_limited", severity=Severity.INFO, message=message))
    if not loads:
        why = "as asked" if request.operators == 0 else f"{context.runtime.traits.name} repeats none of them here"
        message = f"no operator is measured by itself ({why}): their energies are shares of the time, modelled"
        findings.append(Finding(slug="operators_modelled", severity=Severity.WARNING, message=message))
    total_s = request.repeats * ((len(loads) + 2) * plan.window_s + plan.idle_s)
    context.progress(
        ProgressUpdate(
            phase=Phase.POWER,
            name="windows_planned",
            message=f"{request.repeats} blocks of {len(loads) + 2} windows of {plan.window_s:.3g} s ({plan.reason}),"
            f" {total_s:.0f} s in all",
            details={"window_s": plan.window_s, "reason": plan.reason, "loads": len(loads), "repeats": request.repeats},
            checkpoint=True,
        )
    )
    return grow(context, Planned, plan=plan, loads=loads, findings=tuple(findings))


def weight_room(session: RuntimeSession) -> WeightRoom:
    """Returns what the weights of repeated graphs may take of this machine's memory."""
    memory_b = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    facts = probe_isolation(MachineTree())
    memory_b += [fact.value for fact in facts if fact.key == "memory_limit" and isinstance(fact.value, int)]
    model = session.model
    return WeightRoom(
        model_b=model.constants_b,
        operators_b=tuple(operator.weights_b for operator in model.operators),
        spare_b=spare_weights_b(model.constants_b),
        all_b=min(memory_b) // _MEMORY_SHARE,
    )


def measure_windows(context: Planned) -> Recorded:
    """Returns the context with the recorded windows; each block holds every load once, in random order.

    Raises:
        SetupError, PowerError: the meter cannot be started, or recorded nothing.
        InputError: the runtime refuses a load that it took before.
    """
    sessions, missing = _open(context)
    windows: list[LoadWindow] = []
    session = context.access.session
    counts = {load: _executions(opened, context) for load, opened in sessions.items()}
    session.start()
    try:
        _rest(context, windows, 0)
        for block in range(context.request.repeats):
            rng = np.random.default_rng(named_stream(context.request.seed, "order", block))
            for k in rng.permutation(len(sessions)):
                load = list(sessions)[int(k)]
                windows.append(_window(context, sessions[load], load, block=block, count=counts[load]))
            _rest(context, windows, block + 1)
            _tell(context, block + 1)
    finally:
        recording = session.stop()
        for load, opened in sessions.items():
            if load != BASE:
                opened.close()
    trace, names, doubts = sum_domains(recording)
    return grow(
        context,
        Recorded,
        windows=tuple(windows),
        recording=recording,
        trace=trace,
        domains=names,
        findings=(*missing, *recording.findings, *doubts),
    )


def _open(context: Planned) -> tuple[dict[Load, RuntimeSession], tuple[Finding, ...]]:
    sessions: dict[Load, RuntimeSession] = {BASE: context.session}
    findings: list[Finding] = []
    for load in context.loads:
        try:
            sessions[load] = context.session.repeated(load.operators, load.copies)
        except InputError as error:
            message = f"operators {_names(load.operators)} cannot be repeated: {error.message}"
            findings.append(Finding(slug="operators_modelled", severity=Severity.WARNING, message=message))
    bare = context.session.bare()
    if bare is not None:
        sessions[BARE] = bare
    return sessions, tuple(findings)


def _names(operators: Sequence[int]) -> str:
    shown = ", ".join(f"#{k}" for k in operators[:6])
    return shown + (f" and {len(operators) - 6} more" if len(operators) > 6 else "")


def _executions(session: RuntimeSession, context: Planned) -> int:
    """Warms a load up for as many executions as the model itself needed, and returns how many fill a window."""
    window_s = context.plan.window_s
    most = math.ceil(2.0 * window_s / context.latency_s)  # a model that never settled must not settle every load
    session.run(max(min(context.warm_up.cut, most), _WARM))
    return max(math.ceil(window_s / max(settle(session, _lead_s(context)), 1e-7)), 1)


def _window(context: Planned, session: RuntimeSession, load: Load, *, block: int, count: int) -> LoadWindow:
    clock = context.access.session
    lead_s = _lead_s(context)
    settle(session, lead_s)
    start_ns = clock.now_ns()
    latency_s = session.run(count)
    end_ns = clock.now_ns()
    settle(session, lead_s)  # a sample over either edge of the window then sees one and the same load
    kept = latency_s if load == BASE else np.empty(0)
    return LoadWindow(load=load, block=block, start_ns=start_ns, end_ns=end_ns, count=count, latency_s=kept)


def _lead_s(context: Planned) -> float:
    """Returns how long a load runs before and after its window, s: longer than what one sample speaks of."""
    access = context.access
    return max(_LEAD * context.plan.window_s, access.smear_s, 3.0 * (access.update_period_s or 0.0))


def _rest(context: Planned, windows: list[LoadWindow], block: int) -> None:
    access, plan = context.access, context.plan
    lead_s = max(0.1 * plan.idle_s, _lead_s(context))
    access.rest(lead_s)  # what the load before leaves behind
    start_ns = access.session.now_ns()
    access.rest(plan.idle_s)
    end_ns = access.session.now_ns()
    access.rest(lead_s)
    windows.append(
        LoadWindow(load=_IDLE, block=block, start_ns=start_ns, end_ns=end_ns, count=0, latency_s=np.empty(0))
    )


def _tell(context: Planned, done: int) -> None:
    context.progress(
        ProgressUpdate(
            phase=Phase.POWER,
            name="measure_windows",
            message=f"block {done} of {context.request.repeats}",
            details={"done": done, "total": context.request.repeats},
        )
    )
