"""From the traces of a recording to the one that an account is made of: disjoint domains of one boundary, summed."""

from __future__ import annotations

import numpy as np

from joulemap.analysis.recorded.headline import choose_headline
from joulemap.errors import PowerError
from joulemap.estimate import weakest
from joulemap.records.finding import Finding, Severity
from joulemap.records.recording import Recording
from joulemap.trace import Channel, EnergyTrace, integrate_between

__all__ = ["sum_domains"]


def sum_domains(recording: Recording) -> tuple[EnergyTrace, tuple[str, ...], tuple[Finding, ...]]:
    """Returns the trace, the names of its domains, and what was left out.

    A domain inside another one is never added. Domains of several boundaries are never added either.

    Args:
        recording: of all meters.

    Raises:
        PowerError: it holds no power (``capture-empty``).
    """
    by_name = {trace.channel.name: trace for trace in recording.traces if trace.n}
    headline = choose_headline({name: trace.channel.boundary for name, trace in by_name.items()}, recording.overlaps)
    names = headline.domains
    if not names:
        raise PowerError(
            "the meter recorded no power", hint="choose another with --meter", slug="capture-empty", phase="power"
        )
    chosen = [by_name[name] for name in names]
    findings: tuple[Finding, ...] = ()
    if headline.left_out:
        others = ", ".join(headline.left_out)
        message = (
            f"the run is told by {', '.join(names)} ({headline.boundary}); {others} feed something else and are not"
            " added"
        )
        findings = (Finding(slug="domains_chosen", severity=Severity.INFO, message=message),)
    if len(chosen) == 1:
        return chosen[0], names, findings
    return _add(chosen, "+".join(names)), names, findings


def _add(traces: list[EnergyTrace], name: str) -> EnergyTrace:
    """Returns the sum over the time that all of them saw, at the edges of the first one."""
    first = traces[0]
    start_ns, end_ns = max(t.start_ns for t in traces), min(t.end_ns for t in traces)
    edges_ns = first.edges_ns
    if edges_ns is None:
        edges_ns = first.start_ns + np.rint(np.arange(first.n + 1) * first.step_ns).astype(np.int64)
    edges_ns = edges_ns[(edges_ns >= start_ns) & (edges_ns <= end_ns)]
    if edges_ns.size < 2:
        raise PowerError(
            "the meters were never read at the same time",
            hint="record again; see the findings",
            slug="capture-empty",
            phase="power",
        )
    held = [integrate_between(trace, edges_ns) for trace in traces]
    length_s = np.diff(edges_ns) * 1e-9
    covered_s = np.min([h.covered_s for h in held], axis=0)
    lost = covered_s < 0.5 * length_s
    power_w = np.sum([h.energy_j / np.maximum(h.covered_s, 1e-12) for h in held], axis=0)
    power_w[lost] = 0.0
    flags = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    kernels = [t.channel.kernel for t in traces]
    channel = Channel(
        name=name,
        boundary=first.channel.boundary,
        provenance=weakest(t.channel.provenance for t in traces),
        kernel=max(kernels, key=lambda kernel: kernel.window_s),
    )
    return EnergyTrace(
        clock=first.clock,
        channel=channel,
        power_w=power_w,
        start_ns=int(edges_ns[0]),
        edges_ns=edges_ns,
        gaps=flags.reshape(-1, 2),
    )
