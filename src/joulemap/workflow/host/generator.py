"""Joules per token of anything that yields tokens: a function is called again and again under a meter.

The first token carries the work on the prompt (prefill), the others are decoding. Both are told apart by the instants
at which tokens come, so the meter must renew its value several times within each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.uncertainty import Term, estimate, mean_term
from joulemap.errors import InputError, PowerError, UsageError
from joulemap.estimate import Estimate, Quantity, Unavailable
from joulemap.records.host.request import HostRequest, SessionRequest
from joulemap.trace import EnergyTrace, integrate_energy
from joulemap.workflow.host.domains import sum_domains
from joulemap.workflow.host.live_access import open_live_access
from joulemap.workflow.host.meter_access import MeterAccess, declared_limits

__all__ = ["GeneratorEnergy", "measure_generator"]

_UPDATES = 5
_NOWHERE = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorEnergy:
    """What tokens cost.

    Args:
        per_token_j: whole energy over the number of tokens, J; unavailable when the meter is too slow for a call.
        prefill_j: up to the first token, per call, J; unavailable when the meter is too slow for it.
        decode_per_token_j: each token after the first, J; unavailable likewise, or with a single token.
        tokens: per call, mean.
        tokens_per_s: over the whole call.
        calls: that were measured.
    """

    per_token_j: Quantity
    prefill_j: Quantity
    decode_per_token_j: Quantity
    tokens: float
    tokens_per_s: float
    calls: int


def measure_generator(
    generate: Callable[[], Iterable[object]],
    *,
    repeats: int = 5,
    meters: str | Sequence[str] = (),
    access: MeterAccess | None = None,
) -> GeneratorEnergy:
    """Returns joules per token.

    Args:
        generate: called without arguments; yields tokens.
        repeats: calls that are measured, after one that is not, >= 2.
        meters: names of power meters; the first usable one when empty.
        access: a meter that is open already; overrides ``meters``.

    Raises:
        SetupError: no meter can be read (``no-live-meter``).
        UsageError: fewer than two repeats (``too-few-repeats``).
        InputError: the function yields no token (``no-token``).
        PowerError: nothing was recorded (``capture-empty``).
    """
    if repeats < 2:
        raise UsageError(
            f"repeats={repeats}: two or more calls are needed, to tell their noise",
            hint="leave repeats out for 5",
            slug="too-few-repeats",
        )
    names_of = (meters,) if isinstance(meters, str) else tuple(meters)
    meter = access or open_live_access(HostRequest(session=SessionRequest(model=_NOWHERE), meters=names_of))
    try:
        clock = meter.session.now_ns
        _stamps(generate, clock)
        meter.session.start()
        calls: list[NDArray[np.int64]] = []
        try:
            calls.extend(_stamps(generate, clock) for _ in range(repeats))
            meter.rest(3.0 * (meter.update_period_s or 0.1))
        finally:
            recording = meter.session.stop()
    finally:
        meter.close()
    trace, names, _ = sum_domains(recording)
    return _account(trace, calls, meter, names)


def _stamps(generate: Callable[[], Iterable[object]], clock: Callable[[], int]) -> NDArray[np.int64]:
    """Returns the start of a call and the instant of each token, (1 + tokens,) ns."""
    stamps = [clock()]
    stamps.extend(clock() for _ in generate())
    if len(stamps) < 2:
        raise InputError("the function yields no token", hint="give one that yields them one by one", slug="no-token")
    return np.array(stamps, np.int64)


def _account(
    trace: EnergyTrace, calls: Sequence[NDArray[np.int64]], meter: MeterAccess, names: tuple[str, ...]
) -> GeneratorEnergy:
    limits, _ = declared_limits(meter, names)
    late_ns = round(trace.channel.kernel.latency_s * 1e9)
    starts, firsts, ends = (np.array([call[k] for call in calls]) + late_ns for k in (0, 1, -1))
    whole_j, prefill_j = _energy_j(trace, starts, ends), _energy_j(trace, starts, firsts)
    tokens = np.array([call.size - 1 for call in calls], np.float64)
    needed_ns = _UPDATES * (meter.update_period_s or 0.1) * 1e9

    def figure(values: NDArray[np.float64]) -> Estimate:
        value, spread = mean_term(values)
        gain = Term(name="gain", std=abs(value) * limits.gain_std, rectangular=limits.rectangular)
        channel = trace.channel
        return estimate(value, [spread, gain], provenance=channel.provenance, boundary=channel.boundary)

    slow = Unavailable(reason="meter_too_slow")
    whole = bool(np.all(ends - starts >= needed_ns))
    decoding = bool(np.all(tokens > 1) and np.all(ends - firsts >= needed_ns))
    return GeneratorEnergy(
        per_token_j=figure(whole_j / tokens) if whole else slow,
        prefill_j=figure(prefill_j) if bool(np.all(firsts - starts >= needed_ns)) else slow,
        decode_per_token_j=figure((whole_j - prefill_j) / (tokens - 1)) if decoding else slow,
        tokens=float(tokens.mean()),
        tokens_per_s=float(tokens.sum() / ((ends - starts).sum() * 1e-9)),
        calls=len(calls),
    )


def _energy_j(trace: EnergyTrace, starts_ns: NDArray[np.int64], ends_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    held = integrate_energy(trace, starts_ns, ends_ns)
    lasted_s = (ends_ns - starts_ns) * 1e-9
    if bool(np.any(held.covered_s < 0.9 * lasted_s)):
        raise PowerError(
            "the meter did not see every call", hint="see joulemap meters", slug="capture-empty", phase="power"
        )
    return np.asarray(held.energy_j / held.covered_s * lasted_s, np.float64)
