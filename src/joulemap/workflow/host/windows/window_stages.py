"""Stages that measure: ``plan_windows`` says what will run, ``measure_windows`` runs it under the meter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joulemap.analysis.host.plan import WeightRoom, plan_loads, plan_window
from joulemap.firmware.stages.seeds import named_stream
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.campaign import BASE, Load, LoadKind, LoadWindow
from joulemap.records.progress import Phase, ProgressUpdate
from joulemap.workflow.host.context import Planned, Recorded, Timed, grow, operator_shares
from joulemap.workflow.host.domains import sum_domains
from joulemap.workflow.host.load_stages import settle
from joulemap.workflow.host.windows.load_sessions import LoadSessions, lead_s
from joulemap.workflow.host.windows.weight_room import find_room

__all__ = ["measure_windows", "plan_windows"]

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
    shares = operator_shares(context.times)
    room = find_room(session, shares * context.latency_s)
    loads = plan_loads(shares, session.repeatable - room.cached, most=request.operators, room=room)
    total_s = request.repeats * ((len(loads) + 2) * plan.window_s + plan.idle_s)
    context.progress(
        ProgressUpdate(
            phase=Phase.POWER,
            name="windows_planned",
            message=f"{request.repeats} blocks of {len(loads) + 2} windows of {plan.window_s:.3g} s ({plan.reason}),"
            f" {total_s:.0f} s of windows",
            details={"window_s": plan.window_s, "reason": plan.reason, "loads": len(loads), "repeats": request.repeats},
            checkpoint=True,
        )
    )
    return grow(context, Planned, plan=plan, room=room, loads=loads, findings=_doubt_loads(context, room, loads))


def _doubt_loads(context: Timed, room: WeightRoom, loads: Sequence[Load]) -> tuple[Finding, ...]:
    """Returns why operators are not measured by themselves."""
    most, shares, repeatable = context.request.operators, operator_shares(context.times), context.session.repeatable
    if not most:
        return (_modelled("no operator is measured by itself, as asked"),)
    findings = []
    wanted = plan_loads(shares, repeatable - room.cached, most=most)
    cached = repeatable & room.cached
    if cached:
        findings.append(
            _modelled(
                f"{len(cached)} of {shares.size} operators read weights as fast as only a cache gives them, and copies"
                " would change what it holds: not repeated"
            )
        )
    elif not wanted:
        findings.append(_modelled(f"{context.runtime.traits.name} repeats no operator of this model"))
    if len(loads) < len(wanted):
        held = f"a repeated graph holds {room.model_b / 2**20:.0f} MiB of weights and more"
        message = f"{held}: {len(loads)} of {len(wanted)} loads fit"
        severity = Severity.INFO if loads else Severity.WARNING
        findings.append(Finding(slug="repetition_limited", severity=severity, message=message))
    return tuple(findings)


def _modelled(why: str) -> Finding:
    message = f"{why}; their energies are shares of the time, modelled"
    return Finding(slug="operators_modelled", severity=Severity.WARNING, message=message)


def measure_windows(context: Planned) -> Recorded:
    """Returns the context with the recorded windows; each block holds every load once, in random order.

    Raises:
        SetupError, PowerError: the meter cannot be started, or recorded nothing.
        InputError: the runtime refuses a load that it took before.
    """
    sessions = LoadSessions(context)
    windows: list[LoadWindow] = []
    session = context.access.session
    session.start()
    try:
        _rest(context, windows, 0)
        for block in range(context.request.repeats):
            rng = np.random.default_rng(named_stream(context.request.seed, "order", block))
            order = [sessions.loads[int(k)] for k in rng.permutation(len(sessions.loads))]
            windows += [_window(context, sessions, load, block=block) for load in order]
            _rest(context, windows, block + 1)
            _tell(context, block + 1)
    finally:
        recording = session.stop()
        sessions.close()
    trace, names, doubts = sum_domains(recording)
    return grow(
        context,
        Recorded,
        windows=tuple(windows),
        recording=recording,
        trace=trace,
        domains=names,
        findings=(*sessions.findings, *recording.findings, *doubts),
    )


def _window(context: Planned, sessions: LoadSessions, load: Load, *, block: int) -> LoadWindow:
    clock, count = context.access.session, sessions.count(load)
    with sessions.open(load) as session:
        settle(session, lead_s(context))
        start_ns = clock.now_ns()
        latency_s = session.run(count)
        end_ns = clock.now_ns()
        settle(session, lead_s(context))  # a sample over either edge of the window then sees one and the same load
    kept = latency_s if load == BASE else np.empty(0)
    return LoadWindow(load=load, block=block, start_ns=start_ns, end_ns=end_ns, count=count, latency_s=kept)


def _rest(context: Planned, windows: list[LoadWindow], block: int) -> None:
    access, plan = context.access, context.plan
    edge_s = max(0.1 * plan.idle_s, lead_s(context))
    access.rest(edge_s)  # what the load before leaves behind
    start_ns = access.session.now_ns()
    access.rest(plan.idle_s)
    end_ns = access.session.now_ns()
    access.rest(edge_s)
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
