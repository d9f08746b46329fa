"""Where the times of operators come from: the runtime's profiler, or repetition where that tells them better."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from joulemap.records.host.campaign import OperatorTimes, TimeSource
from joulemap.records.host.model import HostOperator
from joulemap.workflow.host.load_stages import find_times

SIZE, LATENCY_S = 3, 1e-3


class Session:
    """A model of three operators; each execution takes its time by what it says."""

    repeatable = frozenset(range(SIZE))
    model = SimpleNamespace(
        operators=[
            HostOperator(index=k, op="Conv", name=f"conv {k}", provider="cpu", weights_b=size_b, bytes=size_b)
            for k, size_b in enumerate((0, 100 << 20, 900 << 20))
        ]
    )

    def __init__(self, profiled_s: float | None, *, told: bool = True, latency_s: float = LATENCY_S) -> None:
        self._profiled_s, self._told, self._latency_s = profiled_s, told, latency_s
        self.opened: list[int] = []

    def profile(self, count: int) -> OperatorTimes | None:
        if self._profiled_s is None:
            return None
        share_s = self._profiled_s / SIZE if self._told else np.nan
        return OperatorTimes(
            source=TimeSource.PROFILER,
            duration_s=np.full((count, SIZE), share_s),
            latency_s=np.full(count, self._profiled_s),
        )

    def run(self, count: int) -> Any:
        return np.full(count, self._latency_s)

    def again(self) -> Session:
        return self.repeated((), 1)

    def repeated(self, operators: Any, copies: int) -> Session:
        self.opened.append(copies)
        return Session(None, latency_s=LATENCY_S + len(operators) * (copies - 1) * 1e-4)

    def close(self) -> None:
        pass


def find(session: Any, *, most_s: float = 120.0) -> OperatorTimes:
    return find_times(session, LATENCY_S, lambda _: None, most_s=most_s)


def test_a_profiler_that_takes_little_is_believed() -> None:
    session = Session(1.4e-3)
    assert find(session).source is TimeSource.PROFILER
    assert not session.opened


@pytest.mark.parametrize("session", [Session(None), Session(1e-3, told=False), Session(2e-3)])
def test_repetition_tells_what_no_profiler_tells_or_one_that_takes_more_than_the_operators(session: Session) -> None:
    times = find(session)
    assert times.source is TimeSource.REPETITION
    np.testing.assert_allclose(times.duration_s, 1e-4)
    assert session.opened[-3:] == [6, 3, 2]  # copies of large weights take as much memory


def test_a_profiler_is_believed_where_repetition_would_take_minutes() -> None:
    assert find(Session(2e-3), most_s=0.0).source is TimeSource.PROFILER
    assert find(Session(None), most_s=0.0).source is TimeSource.REPETITION  # nothing else tells them
    assert find(Session(1e-3, told=False), most_s=0.0).source is TimeSource.REPETITION


class Alike(Session):
    """Two kinds of operators: four of one, two of another that take ten times as long; none may be opened alone."""

    operators_s = (1e-4, 1e-3, 1e-4, 1e-4, 1e-3, 1e-4)
    repeatable = frozenset(range(6))
    model = SimpleNamespace(
        operators=[
            HostOperator(index=k, op="Conv", name=f"{k}", bytes=100, macs=round(1e7 * took_s))
            for k, took_s in enumerate(operators_s)
        ]
    )

    def repeated(self, operators: Any, copies: int) -> Session:
        self.opened.append(len(operators))
        took_s = sum(self.operators_s[k] for k in operators)
        return Session(None, latency_s=LATENCY_S + (copies - 1) * took_s)


def test_operators_that_do_the_same_are_timed_together_where_each_would_take_minutes() -> None:
    assert [finding.slug for finding in find(Alike(None)).findings] == []
    session = Alike(None)
    times = find(session, most_s=1.0)  # 6 times 0.18 s
    assert session.opened == [0, 2, 4]  # what moves most comes first
    np.testing.assert_allclose(times.duration_s, [Alike.operators_s] * len(times.duration_s))
    assert [finding.slug for finding in times.findings] == ["operators_alike"]


def test_kinds_that_are_not_reached_in_time_are_told_as_missing() -> None:
    times = find(Alike(None), most_s=0.0)
    assert np.isnan(times.duration_s).all(axis=0).tolist() == [True, False, True, True, False, True]
    assert times.source is TimeSource.REPETITION
