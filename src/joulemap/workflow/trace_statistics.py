"""What a recording without a usable gate may still say: energy and mean power of the whole trace, so labelled."""

from __future__ import annotations

import math

import numpy as np

from joulemap.analysis.budget import instrument_terms
from joulemap.analysis.intervals.uncertainty import Term, estimate
from joulemap.records.power import PowerCapture
from joulemap.trace import EnergyTrace

__all__ = ["LABEL", "build_trace_statistics"]

LABEL = "the whole recording, boot and idle time included; not an inference"


def build_trace_statistics(capture: PowerCapture) -> dict[str, object] | None:
    """Returns the labelled block of the contract for one capture; None when the instrument delivered nothing.

    Energies carry the instrument's declared limits and its noise; there is no repeatability, since nothing was gated.
    What the instrument lost is left out of energy and duration alike.
    """
    result = capture.observation.result
    if result is None or result.recording.trace.n == result.recording.trace.lost_samples:
        return None
    spec, trace = result.recording.instrument, result.recording.trace
    energy_j, duration_s = _integrate(trace)
    noise = Term(name="noise", std=spec.noise_std_w * math.sqrt(duration_s / spec.rate_hz))
    energy = estimate(
        energy_j,
        (*instrument_terms(spec, energy_j, duration_s), noise),
        provenance=result.provenance,
        boundary=trace.channel.boundary,
    )
    return {
        "label": LABEL,
        "capture": capture.index,
        "mode": str(capture.observation.mode),
        "duration_s": duration_s,
        "lost_share": trace.lost_samples / trace.n,
        "energy_j": energy.to_json(),
        "average_power_w": energy.scaled(1.0 / duration_s).to_json(),
    }


def _integrate(trace: EnergyTrace) -> tuple[float, float]:
    """Returns energy, J, and duration, s, of all intervals that were not lost."""
    kept = np.ones(trace.n, np.bool_)
    for first, last in trace.gaps:
        kept[first:last] = False
    power_w = trace.power_w.astype(np.float64)
    if trace.period_s is not None:
        return float(power_w[kept].sum()) * trace.period_s, float(kept.sum()) * trace.period_s
    assert trace.edges_ns is not None  # a trace has one of the two
    interval_s = np.diff(trace.edges_ns) * 1e-9
    return float((power_w * interval_s)[kept].sum()), float(interval_s[kept].sum())
