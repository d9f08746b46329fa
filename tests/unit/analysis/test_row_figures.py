"""Rows in columns: their figures are those of one row at a time, however many there are; what rounding leaves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.intervals.rounding import rounding_std
from joulemap.analysis.intervals.uncertainty import combine
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.row_figures import TermColumn, coverage_factors
from joulemap.analysis.sampling import describe_trace
from joulemap.estimate import Estimate, Unavailable
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.trace import EnergyTrace, Slice, Timeline
from mapped_traces import METER, build_trace

LIMITS = MeterErrors(gain_std=0.01, offset_std_w=0.002, rectangular=True)


def many(names: int) -> tuple[EnergyTrace, Timeline]:
    """Slices of ten samples of 1 ms, each with a name and a power of its own and two samples of rest."""
    power_w = np.full(12 * names, 0.5)
    for k in range(names):
        power_w[12 * k : 12 * k + 10] = 1.0 + 0.01 * (k % 97)
    slices = [Slice(start_ns=12_000_000 * k, end_ns=12_000_000 * k + 10_000_000, name=f"op{k}") for k in range(names)]
    return build_trace(power_w), Timeline.from_slices(METER, slices)


def test_a_thousand_rows_with_limits_have_the_intervals_of_few() -> None:
    few, all_ = (
        map_energy([trace], timeline, ClockMap(source=METER, target=METER), LIMITS, request=MapRequest())
        for trace, timeline in map(many, (97, 970))
    )
    known = {row.key: row.energy_j for row in few.rows}
    assert len(all_.rows) == 970
    for row in all_.rows:
        wanted = known.get(row.key)
        if not isinstance(wanted, Estimate) or row.key in ("op0", "op96"):
            continue
        assert isinstance(row.energy_j, Estimate)
        assert row.energy_j.value == pytest.approx(wanted.value, rel=1e-9)
        assert row.energy_j.std == pytest.approx(wanted.std, rel=0.05)  # scatter is of the whole recording
        assert row.energy_j.k == pytest.approx(wanted.k, rel=0.01)


def test_rows_are_made_when_they_are_asked_for_and_are_ordered() -> None:
    trace, timeline = many(50)
    rows = map_energy([trace], timeline, ClockMap(source=METER, target=METER), MeterErrors(), request=MapRequest()).rows
    assert [row.key for row in rows[:2]] == ["op49", "op48"]
    assert rows[-1] == rows[49]
    assert rows[10:12] == (rows[10], rows[11])
    assert rows[-1].cumulative_share == pytest.approx(sum(row.share or 0.0 for row in rows), rel=1e-12)
    with pytest.raises(IndexError):
        rows[50]


def test_refused_rows_are_told_with_their_reason() -> None:
    trace, _ = many(10)
    slices = [Slice(start_ns=12_000_000 * k, end_ns=12_000_000 * k + 1_000, name=f"op{k}") for k in range(10)]
    slices.append(Slice(start_ns=10**12, end_ns=2 * 10**12, name="late"))
    timeline = Timeline.from_slices(METER, slices)
    energy = map_energy([trace], timeline, ClockMap(source=METER, target=METER), MeterErrors(), request=MapRequest())
    late = next(row for row in energy.rows if row.key == "late")
    assert late.energy_j == Unavailable(reason="slices_outside_trace")
    assert "too_short_for_samples" in {row.reason for row in energy.rows}
    told = [finding.message for finding in energy.findings if finding.slug == "too_short_for_samples"]
    assert told[0].startswith("10 of 11 rows have a refused figure")


def test_shared_factors_are_those_of_a_draw_each_within_half_a_percent() -> None:
    rng = np.random.default_rng(1)
    columns = [TermColumn(name=name, std=rng.uniform(0, 1, 2000), rectangular=name != "noise") for name in "ab"]
    columns.append(TermColumn(name="noise", std=rng.uniform(0, 1, 2000)))
    std = np.sqrt(sum(column.std**2 for column in columns))
    factors = coverage_factors(columns, std, MonteCarlo())
    draws = MonteCarlo()
    for row in range(0, 2000, 100):
        alone = combine((column.at(row) for column in columns), monte_carlo=draws).k
        assert factors[row] == pytest.approx(alone, rel=0.01)


@pytest.mark.parametrize(
    ("noise", "left"),
    [(0.0, 1 / math.sqrt(12)), (0.3, math.exp(-0.18 * math.pi**2) / (math.pi * math.sqrt(2))), (2.0, 0.0)],
)
def test_rounding_averages_out_only_with_noise(noise: float, left: float) -> None:
    assert rounding_std(1.0, noise) == pytest.approx(left, rel=1e-3, abs=1e-12)


def test_a_constant_trace_is_known_to_its_last_digit_and_no_better() -> None:
    trace = build_trace(np.full(1000, 5.0))
    trace = with_quantum(trace, 0.01)
    total = map_energy([trace], None, None, MeterErrors(), request=MapRequest())
    assert isinstance(total.total_j, Estimate)
    assert total.total_j.value == pytest.approx(5.0)
    assert total.total_j.std == pytest.approx(0.01 / math.sqrt(12), rel=2e-3)  # W over 1 s, whatever the samples
    assert [line.name for line in total.budget if line.std_j > 1e-4] == ["resolution"]
    assert not total.findings


def test_power_that_moves_across_digits_is_not_doubted_by_them() -> None:
    wave = np.round(5.0 + np.sin(np.arange(1000) / 20.0), 2)
    facts = describe_trace(with_quantum(build_trace(wave), 0.01))
    assert facts.rounding_w == 0.0


def with_quantum(trace: EnergyTrace, quantum_w: float) -> EnergyTrace:
    kernel = replace(trace.channel.kernel, quantum_w=quantum_w)
    return replace(trace, channel=replace(trace.channel, kernel=kernel))
