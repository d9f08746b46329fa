"""Measures a part of a Python program: ``with joulemap.measure() as m: ...``, then ``m.energy_j``.

Meters are sampled by a process of their own; marks (``joulemap.mark``) lie on the same clock, so what each of them took
is known afterwards. What cannot be measured is an :class:`Unavailable` with its reason; the measured program never
fails because of it. Only a measurement that cannot begin raises.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast

from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.keys import MapKey
from joulemap.analysis.recorded.energies import estimate_above_idle, estimate_energy, estimate_mean_power
from joulemap.analysis.recorded.gain import live_errors, stated_gain
from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.errors import JoulemapError, UsageError
from joulemap.estimate import Quantity, Unavailable
from joulemap.meters.live.discovery import find_meters
from joulemap.meters.live.marking import Mark, MarkSink, current_sink, install_sink
from joulemap.meters.live.sampling.plan import Priority
from joulemap.records.finding import Finding, Severity
from joulemap.records.live.mark_layout import FOLDER_VARIABLE
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.recording import Recording
from joulemap.workflow.record.measured import render_html, save_measurement
from joulemap.workflow.record.record import live_folder
from joulemap.workflow.record.result import headline_parts, measure_domains
from joulemap.workflow.record.session import SampledSession

__all__ = ["Measurement", "measure"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NOTHING: Final = Unavailable(reason="not_ended")


class Measurement:
    """One measured stretch of a program; see :func:`measure`."""

    def __init__(
        self,
        name: str = "measured",
        *,
        meters: Sequence[str] = (),
        rate_hz: float = 10.0,
        baseline_s: float = 0.0,
        output: str | os.PathLike[str] | None = None,
        force: bool = False,
        priority: str = "normal",
    ) -> None:
        self.name = name
        self.duration_s = 0.0
        self.findings: tuple[Finding, ...] = ()
        self.recording: Recording | None = None
        self.windows: dict[str, list[tuple[int, int]]] = {"run": [], "baseline": []}
        self.parts: tuple[DomainRuns, ...] = ()
        self._asked = {"meters": tuple(meters), "rate_hz": rate_hz, "priority": Priority(priority)}
        self._baseline_s = baseline_s
        self._output = None if output is None else Path(output)
        self._force = force
        self._session: SampledSession | None = None
        self._sink: MarkSink | None = None
        self._outer: tuple[MarkSink | None, str | None] = (None, None)
        self._end: Callable[[int], None] | None = None
        self._begin_ns = 0
        self._owner = os.getpid()

    @property
    def energy_j(self) -> Quantity:
        """Energy of the domains that no other contains, J; of several boundaries those of the widest."""
        return self._of(estimate_energy)

    @property
    def energy_above_idle_j(self) -> Quantity:
        """The same above the idle power of the baseline, J; unavailable without one."""
        return self._of(estimate_above_idle)

    @property
    def average_power_w(self) -> Quantity:
        """Mean power of those domains, W."""
        return self._of(estimate_mean_power)

    @property
    def domains(self) -> dict[str, Quantity]:
        """Energy of every domain, J; domains may contain each other."""
        return {part.name: estimate_energy([part]) for part in self.parts}

    def mark(self, name: str) -> Mark:
        """Returns a mark, for ``with m.mark("decode"):``; ``joulemap.mark`` is the same."""
        return Mark(name)

    def rows(self, domain: str = "", by: str = "name") -> tuple[MapRow, ...]:
        """Returns what the marks took: one row a name, with energy and interval.

        Args:
            domain: name of a domain; empty for the first that no other contains.
            by: ``name``, ``path``, ``kind``, ``track`` or ``slice``.

        Raises:
            UsageError: no such domain, or no mark was set.
        """
        recording = self.recording
        traces = {trace.channel.name: trace for trace in recording.traces} if recording is not None else {}
        outer = headline_parts(recording, self.parts) if recording is not None else ()
        chosen = domain or (outer[0].name if outer else "")
        if recording is None or chosen not in traces:
            raise UsageError(
                f"no domain {chosen!r} was measured",
                hint=f"one of: {', '.join(traces) or 'there is none'}",
                slug="trace-unknown",
            )
        timeline = recording.timelines[0]
        trace = traces[chosen]
        errors = live_errors(chosen, stated_gain(recording.metadata, chosen), trace.channel.provenance)
        clock = ClockMap(source=timeline.clock, target=trace.clock)
        return tuple(map_energy([trace], timeline, clock, errors, request=MapRequest(key=MapKey(by))).rows)

    def save(self, output: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the measurement as a bundle, which ``joulemap map`` and the other commands open; returns its path.

        Raises:
            UsageError: it has not ended (``measure-order``), or the output exists.
            SetupError, ReportError: the output cannot be written.
        """
        if self.recording is None or self._session is None:
            raise UsageError(
                "there is nothing to save: the measurement has not ended, or recorded nothing",
                hint="save after the with block",
                slug="measure-order",
            )
        return save_measurement(self, self._session.header, Path(output), force=force)

    def __enter__(self) -> Self:
        if self._session is not None:
            raise UsageError(
                "a measurement measures once", hint="make another with joulemap.measure()", slug="measure-order"
            )
        outer = current_sink()
        if outer is not None and isinstance(_running(), Measurement):
            raise UsageError(
                "a measurement is running in this program",
                hint="name parts of it with joulemap.mark",
                slug="measure-order",
            )
        meters = self._asked["meters"]
        candidates = find_meters(cast("Sequence[str]", meters))
        session = SampledSession(
            candidates,
            rate_hz=cast("float", self._asked["rate_hz"]),
            priority=cast("Priority", self._asked["priority"]),
            folder=None if self._output is None else live_folder(self._output),
            live=False,
        )
        try:
            session.start()
            self._sink = session.open_marks()
            self._owner = os.getpid()
        except BaseException:
            session.discard()
            raise
        self._session = session
        if self._baseline_s > 0:
            self._rest(session)
        self._outer = outer, os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = str(session.marks_folder)  # processes that the program starts mark there too
        install_sink(self._sink)
        _set_running(self)
        session.read_now()
        self._begin_ns = time.monotonic_ns()
        self._end = self._sink.open_stretch(self.name, "run", self._begin_ns)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        end_ns = time.monotonic_ns()
        session = self._session
        if session is None or self._end is None or os.getpid() != self._owner:
            return  # a forked child leaves its parent's measurement alone
        _set_running(None)
        session.read_now()
        self._end(end_ns)
        install_sink(self._outer[0])
        if self._outer[1] is None:
            os.environ.pop(FOLDER_VARIABLE, None)
        else:
            os.environ[FOLDER_VARIABLE] = self._outer[1]
        self.duration_s = (end_ns - self._begin_ns) * 1e-9
        self.windows["run"].append((self._begin_ns, end_ns))
        if self._baseline_s > 0 and kind is None:
            self._rest(session)
        assert self._sink is not None  # made with the session
        self._sink.close()
        self._finish(session)
        if self._output is not None and self.recording is not None and kind is None:
            self.save(self._output, force=self._force)
        session.discard()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def __call__(self, function: _Function) -> _Function:
        """Returns the function measured in each call; its ``measurements`` list has them in order."""
        done: list[Measurement] = []

        def begin() -> Measurement:
            done.append(self._again(function.__qualname__))
            return done[-1]

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **named: Any) -> Any:
                async with begin():
                    return await function(*args, **named)

            wrapped: Any = run_async
        else:

            @functools.wraps(function)
            def run(*args: Any, **named: Any) -> Any:
                with begin():
                    return function(*args, **named)

            wrapped = run
        wrapped.measurements = done
        return cast("_Function", wrapped)

    def __repr__(self) -> str:
        return f"<Measurement {self.name}: {self.duration_s:.4g} s, {self.energy_j}>"

    def _repr_html_(self) -> str:
        return render_html(self)

    def _again(self, name: str) -> Measurement:
        other = Measurement(
            self.name if self.name != "measured" else name,
            baseline_s=self._baseline_s,
            output=self._output,
            force=self._force,
        )
        other._asked = self._asked
        return other

    def _rest(self, session: SampledSession) -> None:
        assert self._sink is not None  # made with the session
        session.read_now()
        begin_ns = time.monotonic_ns()
        end = self._sink.open_stretch("baseline", "baseline", begin_ns)
        time.sleep(self._baseline_s)
        end_ns = time.monotonic_ns()
        session.read_now()
        end(end_ns)
        self.windows["baseline"].append((begin_ns, end_ns))

    def _finish(self, session: SampledSession) -> None:
        try:
            recording = session.stop()
        except JoulemapError as error:
            self.findings = (Finding(slug="nothing_recorded", severity=Severity.ERROR, message=f"{error.message}"),)
            return
        self.recording = recording
        self.parts = measure_domains(recording, session.header, self.windows["run"], self.windows["baseline"])
        self.findings = (*recording.findings, *(f for part in self.parts for f in part.findings))

    def _of(self, figure: Callable[[Sequence[DomainRuns]], Quantity]) -> Quantity:
        if self.recording is None:
            return Unavailable(reason="nothing_recorded") if self.findings else _NOTHING
        return figure(headline_parts(self.recording, self.parts))


_state: list[Measurement] = []


def _running() -> Measurement | None:
    return _state[0] if _state and _state[0]._session is not None else None  # noqa: SLF001  of this module


def _set_running(measurement: Measurement | None) -> None:
    _state[:] = [] if measurement is None else [measurement]


def measure(
    name: str = "measured",
    *,
    meters: Sequence[str] = (),
    rate_hz: float = 10.0,
    baseline_s: float = 0.0,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    priority: str = "normal",
) -> Measurement:
    """Returns a measurement: a context manager, ``async`` too, and a decorator.

    Args:
        name: of the stretch.
        meters: as ``--meter`` names them; empty for every usable one.
        rate_hz: readings per second.
        baseline_s: time at rest before and after, s; gives the energy above idle.
        output: bundle to write at the end; None for none.
        force: replace a bundle that is there.
        priority: of the sampling process: ``normal``, ``nice`` or ``realtime``.

    Raises (on entry):
        SetupError: no meter can be read; the hint is what to do.
        UsageError: no such meter, or a measurement is running already.
    """
    return Measurement(
        name,
        meters=meters,
        rate_hz=rate_hz,
        baseline_s=baseline_s,
        output=output,
        force=force,
        priority=priority,
    )
