"""JSON of rows: those without a figure are written from what they have in common, to the same byte."""

from __future__ import annotations

import json

import numpy as np

from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo, Shape
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.refused_rows import list_refused
from joulemap.analysis.mapping.rows import RowTable
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap, MapRow
from joulemap.trace import Slice, Timeline
from joulemap.workflow.recordings.row_documents import RowDocuments
from mapped_traces import METER, build_trace


def mapped(*, tracks: int) -> EnergyMap:
    """A thousand slices a tenth of a sample long, two long ones, one without length and one outside the recording."""
    rng = np.random.default_rng(1)
    trace = build_trace(5.0 + rng.normal(0.0, 0.1, 2000))
    short = [
        Slice(name=f'op "{k}" µ', start_ns=k * 100_000, end_ns=(k + 1) * 100_000, track=str(k % tracks))
        for k in range(1000)
    ]
    long = [
        Slice(name="long", start_ns=500_000_000, end_ns=900_000_000),
        Slice(name="longer", start_ns=1_000_000_000, end_ns=1_900_000_000),
        Slice(name="none", start_ns=950_000_000, end_ns=950_000_000),
        Slice(name="beyond", start_ns=1_990_000_000, end_ns=2_990_000_000),
    ]
    timeline = Timeline.from_slices(METER, [*short, *long])
    return map_energy([trace], timeline, ClockMap(source=METER, target=METER), MeterErrors(), request=MapRequest())


def test_texts_of_rows_are_their_documents_to_the_byte() -> None:
    for tracks in (1, 2):
        energy = mapped(tracks=tracks)

        def more(row: MapRow) -> dict[str, object]:
            return {"above": row.energy_j.to_json()}

        rows = RowDocuments(rows=energy.rows, more=more)
        assert isinstance(energy.rows, RowTable)
        assert list_refused(energy.rows, 0, 4) is None  # two have a figure
        alike = 0
        for at in range(0, len(rows), 100):
            alike += list_refused(energy.rows, at, at + 100) is not None
            wanted = [json.dumps(rows[k]) for k in range(at, min(at + 100, len(rows)))]
            assert rows.texts(at, min(at + 100, len(rows))) == wanted
        assert alike == 10  # all but the first hundred are refused throughout


def test_a_map_of_short_slices_keeps_what_can_be_told() -> None:
    energy = mapped(tracks=2)
    told = {row.key: row for row in energy.rows if not row.reason}
    assert {"long", "longer"} <= set(told)
    assert len(energy.rows) == 1004


def test_intervals_of_a_grid_are_those_of_their_own_within_a_fifth_of_a_percent() -> None:
    shapes = [("energy", Shape(family="normal")), ("drift", Shape(family="rectangular"))]
    each, many = MonteCarlo(), MonteCarlo(grid=256)
    for own, drift in ((1.0, 0.0), (1.0, 0.3), (1.0, 1.0), (0.2, 1.0), (0.0, 1.0)):
        wanted = each.symmetric_half_width(shapes, [own, drift], coverage=0.95)
        assert abs(many.symmetric_half_width(shapes, [own, drift], coverage=0.95) / wanted - 1.0) < 0.002
