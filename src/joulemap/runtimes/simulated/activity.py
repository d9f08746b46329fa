"""A real runtime under a simulated meter: known power while it runs, another while it does not.

Times are those of this machine; energies are invented, and labelled so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import OperatorTimes
from joulemap.records.host.model import HostModel
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Arrays, Runtime, RuntimeSession, RuntimeTraits, Stamp

__all__ = ["ActivityHost", "WatchedRuntime"]


class ActivityHost:
    """Energy of this machine as if it took one power while a watched session runs and another while none does.

    Args:
        idle_w: W.
        busy_w: W.
    """

    def __init__(self, *, idle_w: float = 4.0, busy_w: float = 30.0) -> None:
        self.idle_w, self.busy_w = idle_w, busy_w
        self._busy_ns: list[tuple[int, int]] = []
        self._origin_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        """Returns the present instant of the monotonic clock, ns."""
        return time.monotonic_ns()

    def note(self, start_ns: int, end_ns: int) -> None:
        """Notes that a session ran from one instant to another, ns."""
        self._busy_ns.append((start_ns, end_ns))

    def energy_j(self, at_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the energy since the host was made, (k,) J."""
        bounds_ns = np.array(self._busy_ns, np.int64).reshape(-1, 2)
        spent_s = np.concatenate([[0.0], np.cumsum((bounds_ns[:, 1] - bounds_ns[:, 0]) * 1e-9)])
        edges_ns = np.concatenate([[self._origin_ns], bounds_ns.ravel()])
        busy_s = np.repeat(spent_s, 2)[:-1]
        inside_s = np.interp((at_ns - self._origin_ns) * 1e-9, (edges_ns - self._origin_ns) * 1e-9, busy_s)
        return np.asarray(
            self.idle_w * (at_ns - self._origin_ns) * 1e-9 + (self.busy_w - self.idle_w) * inside_s, np.float64
        )


class WatchedRuntime:
    """A runtime whose sessions tell a host when they run; implements ``runtimes.base.Runtime``."""

    def __init__(self, runtime: Runtime, host: ActivityHost) -> None:
        self._runtime, self._host = runtime, host

    @property
    def traits(self) -> RuntimeTraits:
        """Those of the runtime itself."""
        return self._runtime.traits

    def version(self) -> str:
        """Returns the version of the runtime itself."""
        return self._runtime.version()

    def open(self, request: SessionRequest, stamp: Stamp) -> RuntimeSession:
        """Returns a watched session."""
        return _WatchedSession(self._runtime.open(request, stamp), self._host)


class _WatchedSession:
    def __init__(self, session: RuntimeSession, host: ActivityHost) -> None:
        self._session, self._host = session, host

    @property
    def model(self) -> HostModel:
        return self._session.model

    @property
    def repeatable(self) -> frozenset[int]:
        return self._session.repeatable

    def feed(self, arrays: Arrays) -> None:
        self._session.feed(arrays)

    def run(self, count: int) -> NDArray[np.float64]:
        start_ns = self._host.now_ns()
        try:
            return self._session.run(count)
        finally:
            self._host.note(start_ns, self._host.now_ns())

    def profile(self, count: int) -> OperatorTimes | None:
        return self._session.profile(count)

    def again(self) -> RuntimeSession:
        return _WatchedSession(self._session.again(), self._host)

    def repeated(self, operators: Sequence[int], copies: int) -> RuntimeSession:
        return _WatchedSession(self._session.repeated(operators, copies), self._host)

    def bare(self) -> RuntimeSession | None:
        bare = self._session.bare()
        return None if bare is None else _WatchedSession(bare, self._host)

    def close(self) -> None:
        self._session.close()
