"""Energy of one unit of work (an inference, a request) as the mean over all of its slices, with what repeats say.

Neighbouring units share temperature, clock and queue: their spread is weighed by how many of them count as independent.

References:
    METHODS 2 and 3 in docs/methods.md (type A under autocorrelation; EDP and ED2P).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.checks.idle_baseline import IdleBaseline, above_idle
from joulemap.analysis.efficiency.figures import ops_per_watt, rate_per_watt
from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.autocorrelation import correlated_mean_term
from joulemap.analysis.intervals.uncertainty import estimate
from joulemap.analysis.mapping.edge_energy import integrate_slices
from joulemap.analysis.mapping.row_figures import energy_terms, shared_terms
from joulemap.analysis.metrics import energy_delay_product, frames_per_joule
from joulemap.analysis.sampling import TraceFacts
from joulemap.errors import InputError
from joulemap.estimate import Estimate, Quantity, Unavailable, weakest
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import Timeline
from joulemap.trace.passes import sum_slices
from joulemap.trace.streamed import Trace

__all__ = ["measure_units"]

_SAMPLES = 4.0
_WHOLE = 1e-9


def measure_units(
    traces: Sequence[Trace],
    timeline: Timeline,
    clock: ClockMap,
    known: tuple[TraceFacts, MeterErrors],
    *,
    name: str,
    idle: IdleBaseline | None = None,
    ops: float | None = None,
) -> dict[str, object]:
    """Returns figures per unit by key: count, latency, energy, above idle, units per joule, per W, EDP and ED2P, op/J.

    Args:
        traces: summed.
        timeline: with the units as slices.
        clock: from its clock to the traces'.
        known: the traces and their meter.
        name: of the slices that are units, or their kind.
        idle: power without work; None when it was not asked for.
        ops: operations of one unit, as the user states them.

    Raises:
        InputError: no slice has that name or kind (``no-such-slices``).
    """
    if name in timeline.names:
        rows = np.flatnonzero(timeline.name_index == timeline.names.index(name))
    elif name in timeline.kinds:
        rows = np.flatnonzero(timeline.kind_index == timeline.kinds.index(name))
    else:
        raise InputError(
            f"no slice is called {name!r} or is of that kind",
            hint=f"names begin with {', '.join(timeline.names[:6])}",
            slug="no-such-slices",
        )
    start_ns, end_ns = clock.apply(timeline.start_ns[rows]), clock.apply(timeline.end_ns[rows])
    energy_j, covered_s = integrate_slices(traces, start_ns, end_ns, known[0].sample_s)
    duration_s = np.asarray((end_ns - start_ns) * 1e-9, np.float64)
    whole = covered_s >= duration_s - _WHOLE
    energy_j, duration_s = energy_j[whole], duration_s[whole]
    units = int(energy_j.size)
    latency_s = float(duration_s.mean()) if units else None
    energy = _mean_energy(traces, energy_j, duration_s, known)
    figures: dict[str, Quantity] = {"energy_per_unit_j": energy, "units_per_j": frames_per_joule(energy)}
    if idle is not None:
        figures["energy_above_idle_per_unit_j"] = above_idle(energy, latency_s or 0.0, idle, known[1])
    if ops is not None:
        figures["ops_per_j"] = ops_per_watt(energy, ops)
    for power, key in ((1, "energy_delay_j_s"), (2, "energy_delay_squared_j_s2")):
        product: Quantity = energy
        if isinstance(energy, Estimate) and latency_s is not None:
            product = energy_delay_product(energy, latency_s, power=power)
        figures[key] = product
    told: dict[str, object] = {"unit": name, "units": units, "latency_s": latency_s}
    if ops is not None:
        told |= {"ops_per_unit": ops, "ops_definition": "as stated with --ops"}
    span_s = float(end_ns[whole].max() - start_ns[whole].min()) * 1e-9 if units else 0.0
    if span_s > 0:
        told["units_per_s"] = units / span_s
        figures["units_per_s_per_w"] = rate_per_watt(
            _mean_power(traces, (start_ns, end_ns), whole, known), units / span_s
        )
    return told | {k: v.to_json() for k, v in figures.items()}


def _mean_power(
    traces: Sequence[Trace],
    spans: tuple[NDArray[np.int64], NDArray[np.int64]],
    whole: NDArray[np.bool_],
    known: tuple[TraceFacts, MeterErrors],
) -> Quantity:
    """Returns mean power from the first unit's start to the last one's end, rests between them included, W."""
    begin_ns, end_ns = spans[0][whole].min(keepdims=True), spans[1][whole].max(keepdims=True)
    held = [sum_slices(trace, begin_ns, end_ns) for trace in traces]
    seen_s = min(float(part.covered_s[0]) for part in held)
    if seen_s < float(end_ns[0] - begin_ns[0]) * 1e-9 * (1.0 - _WHOLE) or not seen_s > 0:
        return Unavailable(reason="samples_lost")
    energy_j = sum(float(part.energy_j[0]) for part in held)
    rate = traces[0].clock.rate_std_ppm or 0.0
    energy = estimate(
        energy_j,
        energy_terms(energy_j, seen_s, (*known, rate)),
        provenance=weakest(trace.channel.provenance for trace in traces),
        boundary=traces[0].channel.boundary,
    )
    return energy.scaled(1.0 / seen_s)


def _mean_energy(
    traces: Sequence[Trace],
    energy_j: NDArray[np.float64],
    duration_s: NDArray[np.float64],
    known: tuple[TraceFacts, MeterErrors],
) -> Quantity:
    if energy_j.size < 2:
        return Unavailable(reason="slices_outside_trace" if not energy_j.size else "single_unit")
    facts, errors = known
    if float(duration_s.mean()) < _SAMPLES * facts.sample_s:
        return Unavailable(reason="too_short_for_samples")
    mean_j, repeats = correlated_mean_term(energy_j)
    rate = traces[0].clock.rate_std_ppm or 0.0
    shared = shared_terms(mean_j, float(duration_s.mean()), (facts, errors, rate))  # noise is in the repeats
    return estimate(
        mean_j,
        (*shared, repeats),
        provenance=weakest(trace.channel.provenance for trace in traces),
        boundary=traces[0].channel.boundary,
    )
