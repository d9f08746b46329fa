"""Sessions of the loads: opened anew for each window, kept where opening takes longer than one, closed in any case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from joulemap.analysis.host.plan import WeightRoom
from joulemap.records.host.campaign import BARE, BASE, Load, LoadKind
from joulemap.workflow.host.windows.load_sessions import LoadSessions

MIB = 1 << 20
WINDOW_S, LATENCY_S = 0.1, 1e-3
FIRST = Load(kind=LoadKind.REPEATED, operators=(0,), copies=3)
SECOND = Load(kind=LoadKind.REPEATED, operators=(1,), copies=2)


class Machine:
    """A clock that opening a session moves, and what is open."""

    def __init__(self, opening_s: float) -> None:
        self.opening_s, self.now_s = opening_s, 0.0
        self.open: list[str] = []
        self.opened: list[str] = []

    def session(self, name: str, *, broken: bool = False) -> Session:
        self.now_s += self.opening_s
        self.open.append(name)
        self.opened.append(name)
        return Session(self, name, broken=broken)


class Session:
    def __init__(self, machine: Machine, name: str, *, broken: bool = False) -> None:
        self.machine, self.name, self._broken = machine, name, broken

    def run(self, count: int) -> Any:
        if self._broken:
            raise MemoryError
        return np.full(count, LATENCY_S)

    def again(self) -> Session:
        return self.machine.session("base")

    def repeated(self, operators: Any, copies: int) -> Session:
        return self.machine.session(f"{operators} x {copies}")

    def bare(self) -> Session:
        return self.machine.session("bare")

    def close(self) -> None:
        if self.name in self.machine.open:
            self.machine.open.remove(self.name)


def plan(machine: Machine, *, all_b: int = 1 << 40, session: Session | None = None) -> Any:
    room = WeightRoom(model_b=100 * MIB, operators_b=(10 * MIB, 20 * MIB), spare_b=MIB, all_b=all_b)
    return SimpleNamespace(
        access=SimpleNamespace(
            session=SimpleNamespace(now_ns=lambda: round(machine.now_s * 1e9)), smear_s=0.0, update_period_s=None
        ),
        plan=SimpleNamespace(window_s=WINDOW_S),
        room=room,
        loads=(FIRST, SECOND),
        session=session or Session(machine, "model"),
        warm_up=SimpleNamespace(cut=5),
        latency_s=LATENCY_S,
    )


def test_a_session_is_opened_for_each_window_and_closed_after_it() -> None:
    machine = Machine(opening_s=0.01)
    sessions = LoadSessions(plan(machine))
    assert sessions.loads == (BASE, FIRST, SECOND, BARE)
    assert sessions.count(FIRST) == round(WINDOW_S / LATENCY_S)
    assert not machine.open
    before = len(machine.opened)
    for _ in range(2):
        with sessions.open(FIRST):
            assert machine.open == ["(0,) x 3"]
        assert not machine.open
    assert machine.opened[before:] == ["(0,) x 3"] * 2


def test_one_that_takes_longer_to_open_than_a_window_is_kept_until_the_end() -> None:
    machine = Machine(opening_s=0.2)
    sessions = LoadSessions(plan(machine))
    assert machine.open == ["base", "(0,) x 3", "(1,) x 2", "bare"]
    before = len(machine.opened)
    with sessions.open(FIRST) as first:
        pass
    with sessions.open(FIRST) as second:
        assert second is first
    assert len(machine.opened) == before
    sessions.close()
    assert not machine.open


def test_no_more_are_kept_than_there_is_memory_for() -> None:
    """The model holds 100 MiB, the first load 20 more, the second as many."""
    machine = Machine(opening_s=0.2)
    sessions = LoadSessions(plan(machine, all_b=230 * MIB))
    assert machine.open == ["base", "(0,) x 3"]
    with sessions.open(SECOND):
        assert machine.open == ["base", "(0,) x 3", "(1,) x 2"]
    sessions.close()
    assert not machine.open


def test_a_session_that_fails_while_it_warms_up_is_closed_and_so_are_all_that_were_kept() -> None:
    machine = Machine(opening_s=0.2)
    model = Session(machine, "model")
    model.bare = lambda: machine.session("bare", broken=True)  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        LoadSessions(plan(machine, session=model))
    assert machine.opened[-1] == "bare"
    assert not machine.open  # nor what was kept before it
