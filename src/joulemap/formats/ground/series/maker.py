"""Series of samples as readers found them, and the traces made of them: powers, counters, steps, intervals.

Counters are differenced with their modulus and live where they change; an impossible step is a gap; what a poller
read twice is one sample, dated by when the sensor renewed it; one reading spans no time. It must not know any format.

References:
    METHODS 1.1 and 1.2: interval means hold over the preceding interval; counters live at their update instants; a
    polled duplicate is no new sample.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Boundary
from joulemap.formats.ground.building import FindingLog, TimedColumns, gap_ranges, timed_trace
from joulemap.formats.ground.domains import Meaning, Series
from joulemap.formats.ground.logs import key_of
from joulemap.formats.ground.series.polling import DatedPolls, date_polls, merge_polled
from joulemap.formats.ground.values import CounterSteps, difference_counter
from joulemap.records.finding import Severity
from joulemap.records.recording import StatedTotal
from joulemap.trace import Channel, Clock, EnergyTrace, KernelKind, SensorKernel

__all__ = ["TraceMaker"]

_OUTLIER: Final = 20.0  # times the median: no processor leaps that far between two polls
_OUTLIER_W: Final = 500.0


class TraceMaker:
    """Makes traces of series.

    Args:
        clock: of every stamp.
        log: takes the findings.
    """

    def __init__(self, clock: Clock, log: FindingLog) -> None:
        self.clock = clock
        self.log = log
        self.totals: list[StatedTotal] = []

    def trace(self, series: Series) -> EnergyTrace | None:
        """Returns the trace of a series; None when it spans no time (``totals`` then has its reading) or is empty."""
        value = np.asarray(series.value, np.float64)
        real = np.flatnonzero(np.isfinite(value))
        if real.size == 0:
            if value.size:
                self.log.add("channel_empty", f"{series.name}: all {value.size} values are missing")
            return None
        time_ns = np.asarray(series.time_ns, np.int64)
        if series.start_ns:
            return self._interval_trace(series, time_ns, value * series.domain.scale)
        if series.domain.meaning is Meaning.POWER:
            return self._power_trace(series, time_ns, value * series.domain.scale)
        if np.unique(time_ns[real]).size < 2 and series.first_ns is None:
            self._single(series, int(real[0]), "energy_j")
            return None
        if series.domain.meaning is Meaning.COUNTER:
            return self._counter_trace(series, time_ns[real], value[real])
        return self._step_trace(series, time_ns, value * series.domain.scale)

    def _power_trace(
        self, series: Series, time_ns: NDArray[np.int64], power_w: NDArray[np.float64]
    ) -> EnergyTrace | None:
        known_start = series.first_ns is not None and series.first_ns < time_ns[0]
        if np.unique(time_ns).size < 2 and not known_start:
            self._single(series, int(np.flatnonzero(np.isfinite(power_w))[0]), "power_w")
            return None
        power_w = self._bounded(series, power_w)
        domain, dated = series.domain, DatedPolls()
        if domain.polled:
            dated = date_polls(time_ns, power_w, renewal_s=domain.renewal_s, slowest_s=domain.slowest_renewal_s)
        if series.domain.boundary is Boundary.BOARD and not np.nan_to_num(power_w).any():
            self.log.add(
                "power_always_zero",
                f"{series.name}: every one of {power_w.size} readings is 0 W, which no card in use draws: the sensor "
                "may be unsupported (MIG) or held by another agent",
                f"line {series.line[0]}",
            )
        trace = timed_trace(
            TimedColumns(
                time_ns=time_ns - dated.late_ns,
                value=power_w,
                line=series.line,
                gap_factor=series.domain.gap_factor,
                pauses=np.array(series.pauses, np.int64).reshape(-1, 2),
            ),
            channel=self._channel(series, time_ns, dated.renewal_s),
            clock=self.clock,
            log=self.log,
            first_ns=series.first_ns,
        )
        return merge_polled(trace, dated, self.log) if domain.polled else trace

    def _interval_trace(
        self, series: Series, end_ns: NDArray[np.int64], value: NDArray[np.float64]
    ) -> EnergyTrace | None:
        start_ns = np.asarray(series.start_ns, np.int64)
        order = np.argsort(end_ns, kind="stable")
        edges: list[int] = []
        power_w: list[float] = []
        for row in order.tolist():
            start, end = int(start_ns[row]), int(end_ns[row])
            known_ns = edges[-1] if edges else start
            if end <= known_ns or start >= end or known_ns - start > (end - start) // 100 + 1_000_000:
                self.log.add(
                    "interval_overlap",
                    f"{series.name}: the interval overlaps one that was read before it, or is empty; it is left out",
                    f"line {series.line[row]}",
                )
                continue
            if not edges:
                edges.append(start)
            elif start > known_ns:
                edges.append(start)
                power_w.append(math.nan)
            span_s = (end - start) * 1e-9
            edges.append(end)
            power_w.append(value[row] if series.domain.meaning is Meaning.POWER else value[row] / span_s)
        if not edges:
            return None
        power = self._bounded_plain(series, np.asarray(power_w))
        lost = ~np.isfinite(power)
        if lost.all():
            return None
        between = int(np.isnan(np.asarray(power_w)).sum() - np.isnan(value).sum())
        if between > 0:
            self.log.add(
                "time_gap",
                f"{series.name}: {between} stretches between its intervals hold no energy",
                "",
                Severity.INFO,
            )
        stamps = np.asarray(edges, np.int64)
        return EnergyTrace(
            clock=self.clock,
            channel=self._channel(series, stamps),
            power_w=np.where(lost, 0.0, power),
            start_ns=edges[0],
            edges_ns=stamps,
            gaps=gap_ranges(lost),
        )

    def _bounded(self, series: Series, power_w: NDArray[np.float64]) -> NDArray[np.float64]:
        limit = series.domain.largest_w
        if limit is None:
            return power_w
        with np.errstate(invalid="ignore"):
            wild = np.abs(power_w) > limit
        for row in np.flatnonzero(wild).tolist():
            self._impossible(series, float(power_w[row]), row)
        return np.where(wild, np.nan, power_w)

    def _impossible(self, series: Series, power_w: float, row: int) -> None:
        self.log.add(
            "impossible_power",
            f"{series.name}: {power_w:.6g} W is beyond what it can draw ({series.domain.largest_w:g} W); left out",
            f"line {series.line[row]}",
        )

    def _counter_trace(
        self, series: Series, time_ns: NDArray[np.int64], value: NDArray[np.float64]
    ) -> EnergyTrace | None:
        keep = np.ones(value.size, np.bool_)
        keep[1:] = value[1:] != value[:-1]  # a counter is known at the first reading of each new value
        forward = np.ones(value.size, np.bool_)
        forward[1:] = time_ns[1:] > np.maximum.accumulate(time_ns)[:-1]
        if not forward.all():
            self.log.add(
                "duplicate_stamp",
                f"{series.name}: {int((~forward).sum())} readings do not move time forward; they are left out",
                f"line {series.line[int(np.argmin(forward))]}",
            )
        repeats = int((~keep & forward).sum())
        if keep.sum() == 1:
            self.log.add(
                "counter_frozen",
                f"{series.name}: the counter shows {value[0]:.12g} in all {value.size} readings; no energy is derived",
            )
            return None
        if repeats:
            self.log.add(
                "repeats_merged",
                f"{series.name}: {repeats} of {value.size} readings repeat the one before; each update is spread over "
                "the time since the update before it",
                severity=Severity.INFO,
            )
        time_ns, value = time_ns[keep & forward], value[keep & forward]
        if time_ns.size < 2:
            return None
        span_s = np.diff(time_ns) * 1e-9
        domain = series.domain
        largest = None if domain.largest_w is None else domain.largest_w / domain.scale * span_s
        steps = difference_counter(value, modulus=domain.modulus, largest=largest)
        self._say_steps(series, steps, time_ns)
        power_w = np.where(steps.lost, np.nan, steps.delta * domain.scale / span_s)
        self._say_outliers(series, power_w)
        return self._stepped(series, time_ns, power_w)

    def _say_outliers(self, series: Series, power_w: NDArray[np.float64]) -> None:
        real = power_w[np.isfinite(power_w)]
        if real.size < 3:
            return
        usual = float(np.median(real))
        high = np.flatnonzero(power_w > max(_OUTLIER * usual, _OUTLIER_W))
        for row in high.tolist():
            self.log.add(
                "outlier_power",
                f"{series.name}: {power_w[row]:.6g} W in one step where {usual:.6g} W is usual; a glitch?",
                f"line {series.line[row]}",
            )

    def _say_steps(self, series: Series, steps: CounterSteps, time_ns: NDArray[np.int64]) -> None:
        for row in np.flatnonzero(steps.wrapped).tolist():
            self.log.add(
                "counter_wrapped",
                f"{series.name}: the counter passed its end; {series.domain.modulus:.12g} was added",
                f"{int(time_ns[row + 1])} ns",
                Severity.INFO,
            )
        for row in np.flatnonzero(steps.lost).tolist():
            self.log.add(
                "counter_lost",
                f"{series.name}: the counter fell without a known range, or jumped beyond any possible power; the "
                "step is a gap, not a number",
                f"{int(time_ns[row + 1])} ns",
            )

    def _step_trace(
        self, series: Series, time_ns: NDArray[np.int64], energy_j: NDArray[np.float64]
    ) -> EnergyTrace | None:
        forward = np.ones(time_ns.size, np.bool_)
        forward[1:] = time_ns[1:] > np.maximum.accumulate(time_ns)[:-1]
        if not forward.all():
            self.log.add(
                "duplicate_stamp",
                f"{series.name}: {int((~forward).sum())} rows do not move time forward; they are left out",
                f"line {series.line[int(np.argmin(forward))]}",
            )
        time_ns, energy_j = time_ns[forward], energy_j[forward]
        if series.first_ns is not None and series.first_ns < time_ns[0]:
            time_ns = np.concatenate(([series.first_ns], time_ns))
        else:
            if np.isfinite(energy_j[0]):
                self.log.add(
                    "first_interval_unknown",
                    f"{series.name}: its first value ({energy_j[0]:.9g} J) began before the first stamp, nobody knows "
                    "when; left out",
                    f"line {series.line[0]}",
                    Severity.INFO,
                )
            energy_j = energy_j[1:]
        if energy_j.size == 0:
            return None
        power_w = self._bounded_plain(series, energy_j / (np.diff(time_ns) * 1e-9))
        return self._stepped(series, time_ns, power_w)

    def _bounded_plain(self, series: Series, power_w: NDArray[np.float64]) -> NDArray[np.float64]:
        negative = (power_w < 0) & (series.domain.meaning is not Meaning.POWER)
        if negative.any():
            self.log.add(
                "impossible_power",
                f"{series.name}: {int(negative.sum())} intervals with energy below 0; they are gaps",
                f"interval {int(np.argmax(negative))}",
            )
        limit = series.domain.largest_w
        if limit is not None:
            with np.errstate(invalid="ignore"):
                wild = power_w > limit
            if wild.any():
                self._impossible(series, float(power_w[int(np.argmax(wild))]), int(np.argmax(wild)))
            negative |= wild
        return np.where(negative, np.nan, power_w)

    def _stepped(self, series: Series, time_ns: NDArray[np.int64], power_w: NDArray[np.float64]) -> EnergyTrace | None:
        if not np.isfinite(power_w).any():
            return None
        return timed_trace(
            TimedColumns(time_ns=time_ns[1:], value=power_w, gap_factor=None),
            channel=self._channel(series, time_ns),
            clock=self.clock,
            log=self.log,
            first_ns=int(time_ns[0]),
        )

    def _channel(self, series: Series, time_ns: NDArray[np.int64], renewal_s: float | None = None) -> Channel:
        domain = series.domain
        counter = domain.meaning is not Meaning.POWER
        steps = np.diff(time_ns)
        steps = steps[steps > 0]
        window_s = domain.window_s
        if window_s is None:
            window_s = max(float(np.median(steps)) * 1e-9 if steps.size else 0.0, renewal_s or 0.0)
        kind = KernelKind.COUNTER if counter else domain.kind
        kernel = SensorKernel(
            kind=kind, window_s=0.0 if counter else window_s, quantum_w=0.0 if counter else domain.resolution_w
        )
        return Channel(name=series.name, boundary=domain.boundary, provenance=domain.provenance, kernel=kernel)

    def _single(self, series: Series, row: int, unit: str) -> None:
        span = f"line {series.line[row]}" if series.line[row] else ""
        self.log.add(
            "single_reading",
            f"{series.name}: one reading spans no time; it is kept as a stated figure and gives no energy",
            span,
            Severity.INFO,
        )
        value = series.value[row] * series.domain.scale
        if math.isfinite(value):
            self.totals.append(series.domain.stated(f"{key_of(series.name)}_{unit}", value, span))
