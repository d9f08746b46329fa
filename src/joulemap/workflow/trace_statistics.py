"""What a recording without a usable gate may still say: energy and mean power of the whole trace, so labelled."""

from __future__ import annotations

import math

from joulemap.analysis.budget import instrument_terms
from joulemap.analysis.uncertainty import Term, estimate
from joulemap.estimate import Boundary
from joulemap.records.power import PowerCapture

__all__ = ["LABEL", "build_trace_statistics"]

LABEL = "the whole recording, boot and idle time included; not an inference"


def build_trace_statistics(capture: PowerCapture, boundary: Boundary) -> dict[str, object] | None:
    """Returns the labelled block of the contract for one capture; None when the instrument delivered nothing.

    Energies carry the instrument's declared limits and its noise; there is no repeatability, since nothing was gated.
    """
    result = capture.observation.result
    if result is None:
        return None
    spec, duration_s = result.recording.instrument, result.duration_s
    noise = Term(name="noise", std=spec.noise_std_w * math.sqrt(duration_s / spec.rate_hz))
    terms = (*instrument_terms(spec, result.energy_j, duration_s), noise)
    energy_j = estimate(result.energy_j, terms, provenance=result.provenance, boundary=boundary)
    return {
        "label": LABEL,
        "capture": capture.index,
        "mode": str(capture.observation.mode),
        "duration_s": duration_s,
        "lost_share": result.lost_share,
        "energy_j": energy_j.to_json(),
        "average_power_w": energy_j.scaled(1.0 / duration_s).to_json(),
    }
