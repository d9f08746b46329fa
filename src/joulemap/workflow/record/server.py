"""The counters of a server that the recorded command loads, asked for at the edges of each run and in between.

References:
    Triton Inference Server user guide, "Metrics" (nv_inference_request_success, nv_inference_count, one request is
    batch-size inferences; nv_inference_request_failure); vLLM, "Production metrics"; Prometheus, "Metric and label
    naming" (http_requests_total).
"""

from __future__ import annotations

import re
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from joulemap.analysis.recorded.work import LOST, CountedUnit, Series, count_between
from joulemap.errors import SetupError, UsageError
from joulemap.meters.live.ground.http_text import fetch_text, parse_exposition
from joulemap.meters.live.ground.paced_meter import AskError
from joulemap.records.finding import Finding, Severity

__all__ = ["ServerCounts", "parse_count"]

_KNOWN: Final = {
    "request": r"nv_inference_request_success|vllm:request_success(_total)?|http_requests_total",
    "inference": r"nv_inference_count",
    "token": r"vllm:generation_tokens(_total)?",
}
_FAILED: Final = "failed"
_FAILURES: Final = r"nv_inference_request_failure"
_OWN_PATH: Final = "/metrics"
_EVERY_S: Final = 0.5
_TIMEOUT_S: Final = 2.0
_SETTLE_S: Final = 0.05
_SHARED: Final = 0.01
_NAMED: Final = 12


def parse_count(text: str) -> tuple[str, str]:
    """Returns the unit and the pattern of ``UNIT=METRIC``.

    Raises:
        UsageError: it has another form, or the pattern is none (``flag-form``).
    """
    unit, equals, pattern = text.partition("=")
    try:
        re.compile(pattern)
    except re.error:
        equals = ""
    if not (unit and equals and pattern) or unit == _FAILED:
        raise UsageError(
            f"--count {text}: is no UNIT=METRIC", hint="write --count request=http_requests_total", slug="flag-form"
        )
    return unit, pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What the server said: by unit its metric and its series; None of it when it did not answer."""

    at_ns: int
    units: Mapping[str, tuple[str, Series]] | None


@dataclass(slots=True)
class ServerCounts:
    """Asks a server; a context manager that ends its thread.

    Args:
        url: of its metrics in Prometheus text.
        counted: pattern of the metric of each unit; empty for what is known of Triton, vLLM and plain HTTP servers.
        findings: what was doubtful.
    """

    url: str
    counted: Mapping[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _metrics: dict[str, str] = field(default_factory=dict, init=False)
    _counts: dict[str, list[float | None]] = field(default_factory=dict, init=False)
    _answers: list[_Answer] = field(default_factory=list, init=False)
    _outside: list[float] = field(default_factory=list, init=False)
    _last: _Answer | None = field(default=None, init=False)
    _over: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Asks for the first time.

        Raises:
            UsageError: the address holds a password (``flag-form``).
            SetupError: no answer (``server-silent``), or nothing in it counts work (``server-uncounted``).
        """
        if "@" in urllib.parse.urlsplit(self.url).netloc:
            raise UsageError(
                "--server: an address must hold no password, since records keep it",
                hint="give the address alone",
                slug="flag-form",
            )
        try:
            text = fetch_text(self.url, timeout_s=_TIMEOUT_S, accept="text/plain")
        except AskError as error:
            raise SetupError(
                f"the server does not tell its counters: {error}",
                hint=error.fix or "start it before the recording, and give the address of its metrics",
                slug="server-silent",
            ) from error
        found = self._select(text)
        if not set(found) - {_FAILED}:
            names = sorted({metric for metric, _, _ in parse_exposition(text) if metric.endswith(("_total", "_count"))})
            raise SetupError(
                f"{self.url} has no counter of work that is known ({', '.join(names[:_NAMED]) or 'it has no counter'})",
                hint="name one: --count request=METRIC",
                slug="server-uncounted",
            )
        self._metrics = {unit: metric for unit, (metric, _) in found.items()}
        self._counts = {unit: [] for unit in found}
        self._last = _Answer(at_ns=time.monotonic_ns(), units=found)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def begin_run(self) -> None:
        """Asks before a run, and goes on asking."""
        first = self._ask()
        if self._last is not None:
            self._outside.append(self._rise([self._last, first])[0] or 0.0)
        self._answers = [first]
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, name="joulemap-server", daemon=True)
        self._thread.start()

    def end_run(self, number: int) -> None:
        """Asks after a run; twice, since a server may count a little late."""
        self._stop()
        for _ in range(2):
            self._answers.append(self._ask())
            time.sleep(_SETTLE_S)
        self._last = self._answers[-1]
        told = ""
        for unit, counts in self._counts.items():
            count, why = self._rise(self._answers, unit)
            counts.append(count)
            told = told or why
        if told:
            self._say(number, told)

    def units(self) -> tuple[CountedUnit, ...]:
        """Returns what was counted, failures apart."""
        return tuple(
            CountedUnit(name=unit, metric=self._metrics[unit], counts=tuple(counts))
            for unit, counts in self._counts.items()
            if unit != _FAILED
        )

    def close_runs(self) -> None:
        """Says what all runs together show."""
        first = next(iter(self.units()), None)
        inside = sum(count for count in first.counts if count) if first is not None else 0.0
        if first is not None and any(count == 0 for count in first.counts):
            message = f"the server counted no {first.name} in a run ({first.metric}); does the command load it?"
            self.findings.append(Finding(slug="server_idle", severity=Severity.WARNING, message=message))
        if sum(self._outside) > _SHARED * inside > 0:
            message = (
                f"the server counted {sum(self._outside):.6g} outside the runs too: others load it, and the figures"
                " hold their work and its energy"
            )
            self.findings.append(Finding(slug="server_shared", severity=Severity.WARNING, message=message))
        failed = sum(count for count in self._counts.get(_FAILED, ()) if count)
        if failed:
            message = f"{failed:.6g} requests failed; they took energy and are not counted"
            self.findings.append(Finding(slug="requests_failed", severity=Severity.WARNING, message=message))

    def _say(self, number: int, why: str) -> None:
        silent = next((answer.at_ns for answer in self._answers if answer.units is None), None)
        if why == LOST and silent is not None:
            after_s = (silent - self._answers[0].at_ns) * 1e-9
            message = f"the server stopped answering {after_s:.3g} s after run {number} began; the run has no counts"
        else:
            message = f"a counter of the server fell in run {number}: it was started again; the run has no counts"
        self.findings.append(Finding(slug=why, severity=Severity.WARNING, message=message))

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            answer = self._ask()
            if not self._over.is_set():  # a late one belongs to no run
                self._answers.append(answer)

    def _stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(2.0 * _TIMEOUT_S)
            self._thread = None

    def _ask(self) -> _Answer:
        at_ns = time.monotonic_ns()
        try:
            text = fetch_text(self.url, timeout_s=_TIMEOUT_S, accept="text/plain")
        except AskError:
            return _Answer(at_ns=at_ns, units=None)
        return _Answer(at_ns=at_ns, units=self._select(text))

    def _rise(self, answers: Sequence[_Answer], unit: str = "") -> tuple[float | None, str]:
        chosen = unit or next(iter(self._metrics))
        return count_between([None if a.units is None else dict(a.units.get(chosen, ("", {}))[1]) for a in answers])

    def _select(self, text: str) -> dict[str, tuple[str, Series]]:
        """Returns the metric and the series of each unit; of several metrics that match, the first."""
        wanted = dict(self.counted or _KNOWN) | {_FAILED: _FAILURES}
        found: dict[str, tuple[str, dict[str, float]]] = {}
        for metric, labels, value in parse_exposition(text):
            if _OWN_PATH in labels.values():
                continue  # our own questions
            for unit, pattern in wanted.items():
                if re.fullmatch(self._metrics.get(unit) or pattern, metric):
                    known = found.setdefault(unit, (metric, {}))
                    if known[0] == metric:
                        known[1][repr(sorted(labels.items()))] = value
        return {unit: (metric, series) for unit, (metric, series) in found.items()}
