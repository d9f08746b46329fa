"""What the user says of a recording's origin: it may be less than the file claims, never more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from joulemap.estimate import Provenance, weakest
from joulemap.records.finding import Finding, Severity
from joulemap.records.recording import Recording
from joulemap.trace import EnergyTrace
from joulemap.trace.streamed import StreamedTrace

__all__ = ["STATED", "lower_recording", "lower_trace"]

STATED: Final = {
    "measured": Provenance.MEASURED_COUNTER,
    "simulated": Provenance.SIMULATED,
    "estimated": Provenance.ESTIMATED,
}
"""Words of ``--provenance``, and the most that a figure may claim then."""


_MEASURED: Final = frozenset({Provenance.MEASURED_COUNTER, Provenance.MEASURED_SAMPLED})
_AnyTrace = TypeVar("_AnyTrace", EnergyTrace, StreamedTrace)


def lower_trace(trace: _AnyTrace, stated: str | None) -> _AnyTrace:
    """Returns the trace with the weaker of its own provenance and the stated one."""
    own = trace.channel.provenance
    told = own if stated is None else weakest((own, STATED[stated]))
    return trace if told is own else replace(trace, channel=replace(trace.channel, provenance=told))


def lower_recording(recording: Recording, stated: str | None) -> Recording:
    """Returns the recording with its traces and its own figures lowered; what the file says less of stays.

    Args:
        recording: as its reader found it.
        stated: a word of ``STATED``; None when the user said nothing.
    """
    if stated is None:
        return recording
    limit = STATED[stated]
    totals = tuple(replace(t, provenance=weakest((t.provenance, limit))) for t in recording.totals)
    own = {trace.channel.provenance for trace in recording.all_traces}
    kept = sorted(str(said) for said in own - _MEASURED if said is not limit and weakest((said, limit)) is said)
    remark = Finding(
        slug="provenance_not_raised",
        severity=Severity.INFO,
        message=f"--provenance {stated}: the file itself says {', '.join(kept)}; that stays",
    )
    return replace(
        recording,
        traces=tuple(lower_trace(trace, stated) for trace in recording.traces),
        streamed=tuple(lower_trace(trace, stated) for trace in recording.streamed),
        totals=totals,
        findings=(*recording.findings, *((remark,) if kept else ())),
    )
