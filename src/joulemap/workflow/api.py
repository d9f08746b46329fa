"""Measures a part of a Python program: ``with joulemap.measure() as m: ...``, then ``m.energy_j``.

Meters are sampled by a process of their own; marks (``joulemap.mark``) lie on the same clock, so what each of them took
is known afterwards. What cannot be measured is an :class:`Unavailable` with its reason; the measured program never
fails because of it. Only a measurement that cannot begin raises.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast, overload

from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.keys import MapKey
from joulemap.analysis.recorded.energies import estimate_above_idle, estimate_energy, estimate_mean_power
from joulemap.analysis.recorded.gain import live_errors, stated_gain
from joulemap.analysis.recorded.runs import DomainRuns
from joulemap.errors import JoulemapError, UsageError
from joulemap.estimate import Quantity, Unavailable
from joulemap.meters.live.discovery import find_meters
from joulemap.meters.live.marking import Mark, MarkSink, current_sink, install_sink
from joulemap.records.finding import Finding, Severity
from joulemap.records.live.mark_layout import FOLDER_VARIABLE
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import MapRow
from joulemap.records.recording import Recording
from joulemap.units import format_duration
from joulemap.workflow.measuring.calls import measure_calls, run_to_its_end
from joulemap.workflow.measuring.request import MeasureRequest
from joulemap.workflow.record.headline import check_headline
from joulemap.workflow.record.measured import render_html, render_text, save_measurement
from joulemap.workflow.record.record import live_folder
from joulemap.workflow.record.result import estimate_headline, headline_of, measure_domains
from joulemap.workflow.record.save import open_writer
from joulemap.workflow.record.session import SampledSession

__all__ = ["Measurement", "measure"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NOTHING: Final = Unavailable(reason="not_ended")


class Measurement:
    """One measured stretch of a program; see :func:`measure`."""

    def __init__(self, request: MeasureRequest) -> None:
        self.name = request.name
        self.headline = request.headline
        self.duration_s = 0.0
        self.findings: tuple[Finding, ...] = ()
        self.recording: Recording | None = None
        self.windows: dict[str, list[tuple[int, int]]] = {"run": [], "baseline": []}
        self.parts: tuple[DomainRuns, ...] = ()
        self._request = request
        self._session: SampledSession | None = None
        self._sink: MarkSink | None = None
        self._outer: tuple[MarkSink | None, str | None] = (None, None)
        self._end: Callable[[int], None] | None = None
        self._begin_ns = 0
        self._ended = False
        self._owner = os.getpid()
        self._calls = itertools.count(1)

    @property
    def energy_j(self) -> Quantity:
        """Energy of the headline, J: of the domains that were asked for, else of those of the widest boundary."""
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
            domain: name of a domain; empty for the first of the headline.
            by: ``name`` or ``path``; ``op``, ``layer`` and ``kernel`` where marks carry them.

        Raises:
            UsageError: no such domain (``trace-unknown``) or key (``measure-argument``), or no mark was set.
        """
        if by not in set(MapKey):
            raise UsageError(f"rows(by={by!r})", hint=f"by is one of: {', '.join(MapKey)}", slug="measure-argument")
        key, recording = MapKey(by), self.recording
        traces = {trace.channel.name: trace for trace in recording.traces} if recording is not None else {}
        outer = headline_of(recording, self.parts, self.headline).domains if recording is not None else ()
        chosen = domain or "".join(outer[:1])
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
        return tuple(map_energy([trace], timeline, clock, errors, request=MapRequest(key=key)).rows)

    def save(self, output: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the measurement as a bundle, which ``joulemap map`` and the other commands open; returns its path.

        Raises:
            UsageError: it has not ended (``measure-order``), or the output exists.
            SetupError, ReportError: the output cannot be written.
        """
        if self.recording is None or self._session is None:
            raise _out_of_order(
                "there is nothing to save: the measurement has not ended, or recorded nothing",
                "save after the with block",
            )
        return save_measurement(self, self._session.header, Path(output), force=force)

    def __enter__(self) -> Self:
        if self._session is not None:
            raise _out_of_order("a measurement measures once", "make another with joulemap.measure()")
        _claim(self)
        try:
            self._begin()
        except BaseException:
            _release(self)
            raise
        return self

    def _begin(self) -> None:
        request = self._request
        candidates = find_meters(request.meters)
        check_headline(request.headline, candidates)
        if request.output is not None:  # refused before the work and not after it
            open_writer(request.output, uuid.uuid4().hex, force=request.force).discard()
        session = SampledSession(
            candidates,
            rate_hz=request.rate_hz,
            priority=request.priority,
            folder=None if request.output is None else live_folder(request.output),
            live=False,
        )
        try:
            session.start()
            self._sink = session.open_marks()
            if request.baseline_s > 0:
                self._rest(session)
            self._outer = current_sink(), os.environ.get(FOLDER_VARIABLE)
            session.read_now()
        except BaseException:
            session.discard()
            raise
        self._session = session
        os.environ[FOLDER_VARIABLE] = str(session.marks_folder)  # processes that the program starts mark there too
        install_sink(self._sink)
        self._begin_ns = time.monotonic_ns()
        self._end = self._sink.open_stretch(self.name, "run", self._begin_ns)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        end_ns = time.monotonic_ns()
        session, end = self._session, self._end
        if os.getpid() != self._owner or self._ended:
            return  # a forked child leaves its parent's measurement alone
        if session is None or end is None:
            raise _out_of_order("this measurement was not entered", "write: with joulemap.measure(...) as m:")
        self._ended = True
        failed = kind if kind is not None and not issubclass(kind, GeneratorExit) else None
        try:
            self._leave(session, end, end_ns)
            if self._request.baseline_s > 0 and failed is None:
                self._rest(session)
            assert self._sink is not None  # made with the session
            self._sink.close()
            kept = not sys.is_finalizing() and self._finish(session, failed)
        except BaseException:
            session.end() if self._request.output is not None else session.discard()
            raise
        session.discard() if kept else session.end()

    def _leave(self, session: SampledSession, end: Callable[[int], None], end_ns: int) -> None:
        """Ends the stretch; marks go again to where they went before."""
        _release(self)
        install_sink(self._outer[0])
        if self._outer[1] is None:
            os.environ.pop(FOLDER_VARIABLE, None)
        else:
            os.environ[FOLDER_VARIABLE] = self._outer[1]
        end(end_ns)
        self.duration_s = (end_ns - self._begin_ns) * 1e-9
        self.windows["run"].append((self._begin_ns, end_ns))
        session.read_now()

    async def __aenter__(self) -> Self:
        _, cancelled = await run_to_its_end(self.__enter__)
        if cancelled:
            await run_to_its_end(self.__exit__, asyncio.CancelledError, None, None)
            raise asyncio.CancelledError
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        _, cancelled = await run_to_its_end(self.__exit__, kind, error, trace)
        if cancelled:
            raise asyncio.CancelledError

    def __call__(self, function: _Function) -> _Function:
        """Returns the function measured in each call; its ``measurements`` list has them in order."""
        done: list[Measurement] = []

        def begin() -> Measurement:
            name = getattr(function, "__qualname__", type(function).__name__)
            done.append(Measurement(self._request.for_call(name, next(self._calls))))
            return done[-1]

        wrapped: Any = measure_calls(function, begin)
        wrapped.measurements = done
        return cast("_Function", wrapped)

    def __repr__(self) -> str:
        return f"<Measurement {self.name}: {format_duration(self.duration_s)}, {self.energy_j}>"

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return render_html(self)

    def _rest(self, session: SampledSession) -> None:
        assert self._sink is not None  # made with the session
        session.read_now()
        begin_ns = time.monotonic_ns()
        end = self._sink.open_stretch("baseline", "baseline", begin_ns)
        time.sleep(self._request.baseline_s)
        end_ns = time.monotonic_ns()
        session.read_now()
        end(end_ns)
        self.windows["baseline"].append((begin_ns, end_ns))

    def _finish(self, session: SampledSession, failed: type[BaseException] | None) -> bool:
        """Makes the figures and writes the output; returns whether nothing is left to be saved."""
        try:
            recording = session.stop()
        except JoulemapError as error:
            self._doubt("nothing_recorded", Severity.ERROR, error.message)
            return True
        own: tuple[Finding, ...] = ()
        if failed is not None:
            message = f"the block ended by {failed.__name__}: what was measured until then is kept"
            own = (*own, Finding(slug="block_raised", severity=Severity.WARNING, message=message))
        self.recording = replace(recording, findings=(*recording.findings, *own))
        windows = self.windows["run"], self.windows["baseline"]
        self.parts = measure_domains(recording, session.header, *windows, asked=self.headline)
        self.findings = (*self.recording.findings, *(f for part in self.parts for f in part.findings))
        if self._request.output is None:
            return True
        try:
            self.save(self._request.output, force=self._request.force)
        except JoulemapError as error:
            message = f"{error.message}; joulemap import {session.folder} -o NAME.jm makes a bundle of it"
            self._doubt("measurement_unsaved", Severity.WARNING, message)
            warnings.warn(f"joulemap: {message}", RuntimeWarning, stacklevel=3)
            return False
        return True

    def _doubt(self, slug: str, severity: Severity, message: str) -> None:
        self.findings = (*self.findings, Finding(slug=slug, severity=severity, message=message))

    def _of(self, figure: Callable[..., Quantity]) -> Quantity:
        if self.recording is None:
            return Unavailable(reason="nothing_recorded") if self.findings else _NOTHING
        return estimate_headline(figure, self.parts, headline_of(self.recording, self.parts, self.headline))


_state: list[Measurement] = []
_lock = threading.Lock()


def _running() -> Measurement | None:
    return _state[0] if _state and _state[0]._owner == os.getpid() else None  # noqa: SLF001  of this module


def _claim(measurement: Measurement) -> None:
    """Notes the measurement as the one that runs.

    Raises:
        UsageError: another one does (``measure-order``).
    """
    with _lock:
        if _running() is not None:
            raise _out_of_order("a measurement is running in this program", "name parts of it with joulemap.mark")
        measurement._owner = os.getpid()  # noqa: SLF001  of this module
        _state[:] = [measurement]


def _release(measurement: Measurement) -> None:
    with _lock:
        if measurement in _state:
            _state.clear()


@atexit.register
def _end_with_the_program() -> None:
    """Ends what a program leaves running at its end, so that what was measured is not lost."""
    running = _running()
    if running is not None and running._session is not None:  # noqa: SLF001  of this module
        running.__exit__(SystemExit, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def _out_of_order(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=hint, slug="measure-order")


@overload
def measure(name: _Function) -> _Function: ...


@overload
def measure(
    name: str = "measured",
    *,
    meters: str | Sequence[str] = (),
    rate_hz: float = 10.0,
    baseline_s: float = 0.0,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    priority: str = "normal",
    headline: str | Sequence[str] = (),
) -> Measurement: ...


def measure(
    name: Any = "measured",
    *,
    meters: str | Sequence[str] = (),
    rate_hz: float = 10.0,
    baseline_s: float = 0.0,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    priority: str = "normal",
    headline: str | Sequence[str] = (),
) -> Any:
    """Returns a measurement: a context manager, ``async`` too, and a decorator, with or without parentheses.

    Args:
        name: of the stretch.
        meters: as ``--meter`` names them; empty for every usable one.
        rate_hz: readings per second.
        baseline_s: time at rest before and after, s; gives the energy above idle.
        output: bundle to write at the end; None for none.
        force: replace a bundle that is there.
        priority: of the sampling process: ``normal``, ``nice`` or ``realtime``.
        headline: domain that the total is made of, or several; ``sum`` for all that no other contains.

    Raises:
        UsageError: an argument that cannot be (``measure-argument``). On entry: no such meter or domain, domains that
            contain each other, an output that exists, or a measurement is running already.
        SetupError: on entry: no meter can be read, or the output cannot be written; the hint is what to do.
    """
    request = MeasureRequest.check(
        "measured" if callable(name) else name,
        meters=meters,
        rate_hz=rate_hz,
        baseline_s=baseline_s,
        output=output,
        force=force,
        priority=priority,
        headline=headline,
    )
    return Measurement(request)(name) if callable(name) else Measurement(request)
