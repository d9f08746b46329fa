"""Sessions of the loads, opened anew for each window.

Where its memory lies decides what a session costs: two of one model that no cache holds differ by several per cent. A
session that was opened once would carry that into all of its windows, and into the energy of an operator many times
over; opened for each window it is noise, which the repeats show. One that takes longer to open than a window lasts is
kept, as far as memory goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from joulemap.errors import InputError
from joulemap.records.finding import Finding, Severity
from joulemap.records.host.campaign import BARE, BASE, Load
from joulemap.runtimes.base import RuntimeSession
from joulemap.workflow.host.context import Planned
from joulemap.workflow.host.load_stages import settle

__all__ = ["LoadSessions", "lead_s"]

_WARM = 10
_LEAD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    make: Callable[[], RuntimeSession]
    count: int
    kept: RuntimeSession | None


class LoadSessions:
    """The sessions of all loads that this machine can run.

    Args:
        context: of the run.

    Attributes:
        loads: that can be run.
        findings: why one cannot.
    """

    def __init__(self, context: Planned) -> None:
        self._context = context
        self._known: dict[Load, _Known] = {}
        self._kept_b = 0
        self.findings: tuple[Finding, ...] = ()
        try:
            self._add_all(context)
        except BaseException:
            self.close()
            raise

    def _add_all(self, context: Planned) -> None:
        session = context.session
        self._add(BASE, session.again)
        for load in context.loads:
            try:
                self._add(load, partial(session.repeated, load.operators, load.copies))
            except InputError as error:
                message = f"operators {_names(load.operators)} cannot be repeated: {error.message}"
                doubt = Finding(slug="operators_modelled", severity=Severity.WARNING, message=message)
                self.findings = (*self.findings, doubt)
        with suppress(InputError):  # the gap is what the operators leave, then
            bare = session.bare()
            if bare is not None:
                bare.close()
                self._add(BARE, partial(_bare, session))

    @property
    def loads(self) -> tuple[Load, ...]:
        """Loads that can be run, the model as it is first."""
        return tuple(self._known)

    def count(self, load: Load) -> int:
        """Returns how many executions fill a window."""
        return self._known[load].count

    @contextmanager
    def open(self, load: Load) -> Iterator[RuntimeSession]:
        """Gives a warm session of the load for one window."""
        known = self._known[load]
        opened = known.kept or known.make()
        try:
            if known.kept is None:
                self._warm(opened)
            yield opened
        finally:
            if known.kept is None:
                opened.close()

    def close(self) -> None:
        """Releases what was kept."""
        for known in self._known.values():
            if known.kept is not None:
                known.kept.close()

    def _add(self, load: Load, make: Callable[[], RuntimeSession]) -> None:
        clock, window_s = self._context.access.session, self._context.plan.window_s
        started_ns = clock.now_ns()
        opened = make()
        took_s = (clock.now_ns() - started_ns) * 1e-9
        held_b = self._context.room.graph_b(load)
        kept = took_s > window_s and self._kept_b + held_b <= self._context.room.all_b
        try:
            self._warm(opened)
            count = max(math.ceil(window_s / max(settle(opened, lead_s(self._context)), 1e-7)), 1)
        except BaseException:
            opened.close()
            raise
        if kept:
            self._kept_b += held_b
        else:
            opened.close()
        self._known[load] = _Known(make=make, count=count, kept=opened if kept else None)

    def _warm(self, session: RuntimeSession) -> None:
        """Warms a load up for as many executions as the model itself needed."""
        context = self._context
        most = math.ceil(2.0 * context.plan.window_s / context.latency_s)  # the model may never have settled
        session.run(max(min(context.warm_up.cut, most), _WARM))


def _bare(session: RuntimeSession) -> RuntimeSession:
    opened = session.bare()
    assert opened is not None  # it was there a moment ago
    return opened


def lead_s(context: Planned) -> float:
    """Returns how long a load runs before and after its window, s: longer than what one sample speaks of."""
    access = context.access
    return max(_LEAD * context.plan.window_s, access.smear_s, 3.0 * (access.update_period_s or 0.0))


def _names(operators: Sequence[int]) -> str:
    shown = ", ".join(f"#{k}" for k in operators[:6])
    return shown + (f" and {len(operators) - 6} more" if len(operators) > 6 else "")
