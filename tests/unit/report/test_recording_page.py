"""The page of a recording: answer, refusals, rails, lanes, clocks, sizes; what it says when something is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.analysis.clocks.solve import AlignRequest
from joulemap.analysis.mapping.energy_map import MapRequest
from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import NotComparableError
from joulemap.report.html.page import render_page
from joulemap.report.markdown import render_markdown
from joulemap.report.view.page import FlameNode, PageView
from joulemap.report.view.recording.page import build_recording_page
from joulemap.report.view.recording.rows import list_times
from joulemap.report.view.recording.scene import describe_origin
from joulemap.trace import Clock, ClockKind
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle
from mapped_traces import METER
from recording_sections import (
    SLOW_NAMES,
    build_sections,
    import_files,
    load_recording_page,
    make_row,
    slices_at,
    write_nested,
    write_rails,
)

OFFSET = AlignRequest(offset_s=0.0)
COLUMNS = {"columns": {"time": "moment (s)", "power": "power (W)"}}


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nested")
    return import_files(folder / "run.jm", *write_nested(folder), **COLUMNS)


@pytest.fixture(scope="module")
def nested_page(nested: Path) -> PageView:
    return load_recording_page(nested, BundleMapRequest(align=OFFSET))


def slugs(view: PageView) -> set[str]:
    return {finding.slug for finding in view.findings}


def test_the_answer_comes_first_and_is_that_of_the_map(nested: Path, nested_page: PageView) -> None:
    document = map_bundle(nested, BundleMapRequest(align=OFFSET))
    total = document["total_j"]
    assert isinstance(total, dict)
    assert nested_page.headline is not None
    shown, unit = re.fullmatch(r"([\d.]+) ± [\d.]+\u2009(J)", nested_page.headline).groups()  # type: ignore[union-attr]
    assert float(shown) == pytest.approx(total["value"], abs=total["expanded"])
    assert unit == "J"
    assert nested_page.headline_unit == "in 4.000\u2009s"
    assert dict(nested_page.figures)["Length"] == "4.000\u2009s"
    assert nested_page.hotspot.startswith("conv takes 49.2")
    words = [badge.word for badge in nested_page.badges]
    assert words[:3] == ["measured sampled", "boundary rail", "valid"]
    assert words[3] == "meter unknown: U leaves it out"  # a U without gain and offset says so where it is read


def test_a_unit_of_work_makes_the_headline_and_the_fold(nested: Path) -> None:
    view = load_recording_page(nested, BundleMapRequest(align=OFFSET, per="infer"))
    assert view.headline_unit == "per infer"
    assert view.headline is not None
    assert float(view.headline.split()[0]) == pytest.approx(1.07, rel=0.01)  # 0.04*2 + 0.1*6 + 0.06*4 + 0.05*3
    assert view.fold is not None
    assert view.fold.span_s == pytest.approx(0.25)
    assert view.scene is not None
    assert view.scene.open_s[1] - view.scene.open_s[0] < 1.2  # about three of ten units
    panel = next(panel for panel in view.panels if panel.title == "Per unit of work")
    assert dict(panel.rows)["Unit"] == "infer, 10 of them"


def test_rows_are_those_of_the_map_with_what_is_inside_taken_off(nested: Path, nested_page: PageView) -> None:
    document = map_bundle(nested, BundleMapRequest(align=OFFSET))
    rows = document["rows"]
    assert isinstance(rows, Sequence)
    table = nested_page.tables[0]
    assert [row.name for row in table.rows] == [*(row["key"] for row in rows), "idle: no slice runs"]
    for shown, row in zip(table.rows, rows, strict=False):
        assert shown.own_j == row["self_j"]["value"]
        assert shown.energy_j == row["energy_j"]["value"]
    outer = next(row for row in table.rows if row.name == "infer")
    assert outer.energy != outer.own
    assert {table.key for table in nested_page.tables} >= {"name", "path"}
    assert any(" \u203a " in row.name for row in next(t for t in nested_page.tables if t.key == "path").rows)


def test_a_wanted_grouping_comes_first(nested: Path) -> None:
    view = load_recording_page(nested, BundleMapRequest(align=OFFSET, map=MapRequest(key=MapKey.PATH)))
    assert view.tables[0].key == "path"
    assert "name" in {table.key for table in view.tables}


def test_a_refused_row_shows_its_reason_and_never_a_number() -> None:
    none = {"value": None, "provenance": "unavailable", "reason": "too_short_for_samples"}
    figures = dict.fromkeys(("energy_j", "self_j", "mean_power_w"), none)
    why = {"resolution": "refused", "reason": "too_short_for_samples", "runs_needed": 41.6}
    refused = make_row("tiny", 1.0, total_j=11.0, share=None, cumulative_share=None, **figures, **why)
    rows = [make_row("conv", 5.5, total_j=11.0), refused]
    timeline = slices_at(METER, [("conv", 0, 10**9, "a"), ("tiny", 10**9, 10**9 + 10, "a")])
    view = build_recording_page(build_sections(timeline, rows=rows))
    row = next(row for row in view.tables[0].rows if row.name == "tiny")
    assert row.energy == "refused"
    assert (row.energy_j, row.expanded_j, row.own_j) == (None, None, None)
    assert {row.share, row.cumulative, row.power} == {"—"}
    assert row.resolution == "refused: too short for samples; about 42\u00d7 this recording would tell"
    assert ("tiny", "too short for samples; about 42\u00d7 this recording would tell") in view.refused
    assert view.scene is not None
    name = next(name for name in view.scene.slices.names if name.name == "tiny")
    assert name.facts == ("no energy: too short for samples; about 42\u00d7 this recording would tell",)
    assert name.no_energy == "refused"
    assert "tiny" not in json.dumps([child.name for child in view.flame.children]) if view.flame else True


def test_what_least_squares_tell_of_all_is_not_shown_of_one() -> None:
    rows = [make_row("short", 5.5, total_j=11.0, resolution="least_squares")]
    timeline = slices_at(METER, [("short", 0, 10**6, "a")])
    view = build_recording_page(build_sections(timeline, rows=rows))
    assert view.scene is not None
    assert view.scene.slices.names[0].no_energy == "samples tell it for all of them, not for one"
    assert view.tables[0].rows[0].resolution == "least squares"


def test_rails_inside_another_are_marked_and_never_added(tmp_path: Path) -> None:
    view = load_recording_page(import_files(tmp_path / "run.jm", write_rails(tmp_path)))
    total_j = 30 * 5.0 + 30 * 14.0 + 4.5  # readings are points: three steps up and two down lie between them
    assert view.headline is not None
    value_j, _, u_j = view.headline.split()[:3]
    assert float(value_j) == pytest.approx(total_j, abs=5.0)  # printed to the digits that U leaves
    assert abs(float(value_j) - total_j) < float(u_j)
    roles = {row.name: (row.inside, row.role) for row in view.traces}
    assert roles["VDD_IN"] == ("", "mapped")
    assert roles["VDD_SOC"] == ("VDD_IN", "inside, never added")
    assert view.flame is not None
    assert view.flame.name == "VDD_IN"
    assert {child.name for child in view.flame.children} == {"VDD_CPU_GPU_CV", "VDD_SOC"}
    assert view.flame_title == "Energy by rail"
    assert view.scene is not None
    names = [track.name for track in view.scene.tracks]
    assert names[0] == "Power, VDD_IN"
    soc = view.scene.tracks[names.index("\u21b3 VDD_SOC")]
    assert soc.note == "inside VDD_IN: part of it, never added"
    temperature = next(track for track in view.scene.tracks if "temperature" in track.name)
    assert temperature.unit == "\u00b0C"
    assert view.hotspot.startswith("Inside it VDD_CPU_GPU_CV holds 50")
    assert view.tables == ()  # nothing ran, and the page says what it can


def test_two_traces_are_summed_only_when_both_are_named(tmp_path: Path) -> None:
    bundle = import_files(tmp_path / "run.jm", write_rails(tmp_path))
    view = load_recording_page(bundle, BundleMapRequest(traces=("VDD_CPU_GPU_CV", "VDD_SOC")))
    assert view.scene is not None
    track = view.scene.tracks[0]
    assert track.name == "Power, VDD_CPU_GPU_CV + VDD_SOC"
    assert track.spread == "sums of lows and highs"
    assert float(np.nanmax(track.mean)) == pytest.approx(7.0 + 2.8)
    assert {row.role for row in view.traces if row.name != "VDD_IN"} == {"mapped"}


def test_several_traces_of_equal_standing_are_chosen_from_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "smi.csv"
    rows = ["timestamp, index, power.draw [W]"]
    rows += [f"2026/01/02 03:04:{k:02d}.000, {gpu}, {50 + 10 * gpu + k % 3}.00 W" for k in range(40) for gpu in (0, 1)]
    path.write_text("\n".join(rows) + "\n")
    view = load_recording_page(import_files(tmp_path / "run.jm", path))
    assert "trace_chosen" in slugs(view)
    assert {row.name: row.role for row in view.traces} == {"gpu1": "mapped", "gpu0": "beside"}


def test_clocks_that_nothing_relates_leave_the_power_alone(nested: Path) -> None:
    view = load_recording_page(nested)
    assert view.headline is not None
    assert "timeline_unplaced" in slugs(view)
    assert view.scene is not None
    assert len(view.scene.slices) == 0
    assert any("load" in finding.message for finding in view.findings if finding.slug == "lanes_unplaced")
    with pytest.raises(NotComparableError):  # who says which unit of work wants an answer, not another page
        load_recording_page(nested, BundleMapRequest(per="infer"))


def test_a_degraded_recording_has_no_headline_and_says_what_to_do(nested: Path) -> None:
    view = load_recording_page(nested, BundleMapRequest(align=AlignRequest(offset_s=1e6)))
    assert view.headline is None
    assert "degraded" in view.no_headline
    assert view.next_step == "Record power from before the work to after it; check the offset of the clocks."
    assert dict(view.figures)["Energy"].endswith("\u2009J")


def test_a_timeline_without_power_is_a_page_of_times(tmp_path: Path) -> None:
    _, trace = write_nested(tmp_path)
    view = load_recording_page(import_files(tmp_path / "run.jm", trace))
    assert view.headline is None
    assert [badge.word for badge in view.badges] == ["no power", "valid"]
    assert view.scene is not None
    assert view.scene.tracks[0].name == "Busy tracks"
    assert float(np.nanmax(view.scene.tracks[0].mean)) == 1.0
    table = view.tables[0]
    assert table.own_label == "Self time"
    times = {row.name: (row.time, row.own) for row in table.rows}
    assert times["conv"] == ("1.000\u2009s", "1.000\u2009s")
    assert times["infer"] == ("2.500\u2009s", "0\u2009s")
    assert {row.energy for row in table.rows} == {"—"}
    conv = next(name for name in view.scene.slices.names if name.name == "conv")
    assert conv.facts == ("1.000\u2009s in all (10 slices)",)
    assert "joulemap import POWER TIMELINE" in view.next_step
    assert render_markdown(view).count("No headline") == 1


def test_figures_of_one_instant_are_a_page_too(tmp_path: Path) -> None:
    path = tmp_path / "stat.csv"
    path.write_text("12.34,Joules,power/energy-pkg/,1000000,100.00,,\n")
    view = load_recording_page(import_files(tmp_path / "run.jm", path))
    assert view.scene is None
    assert view.no_scene
    panel = next(panel for panel in view.panels if panel.title == "What the source states")
    assert any(text.startswith("12.34 ") for _, text in panel.rows)
    assert "<canvas" not in render_page(view)


def test_the_times_of_a_timeline_are_held_and_own() -> None:
    timeline = slices_at(METER, [("out", 0, 10**9, "a"), ("in", 2 * 10**8, 5 * 10**8, "a"), ("out", 0, 10**9, "b")])
    times = {name: [count, held, own] for name, count, held, own in list_times(timeline)}
    assert times == {"out": pytest.approx([2, 2.0, 1.7]), "in": pytest.approx([1, 0.3, 0.3])}


@pytest.mark.parametrize(
    ("clock", "at_ns", "label", "utc_ns"),
    [
        (Clock(name="host", kind=ClockKind.UTC), 1_700_000_000_123_456_789, "0 = 2023-11-14 22:13:20.123 UTC",
         1_700_000_000_123_456_789),
        (Clock(name="host", kind=ClockKind.LOCAL), 1_700_000_000_000_000_000,
         "0 = 2023-11-14 22:13:20.000 local time, as the source has it", None),
        (Clock(name="adc", kind=ClockKind.SAMPLE_INDEX), 0,
         "0 = the first sample; the source has no time of day", None),
        (Clock(name="boot", kind=ClockKind.MONOTONIC), 1_500_000_000,
         "0 = 1.500000\u2009s of the monotonic clock boot", None),
    ],
)  # fmt: skip
def test_the_axis_says_what_its_zero_is(clock: Clock, at_ns: int, label: str, utc_ns: int | None) -> None:
    origin = describe_origin(clock, at_ns)
    assert (origin.label, origin.utc_ns) == (label, utc_ns)


def test_everything_from_the_files_is_text(nested_page: PageView) -> None:
    page = render_page(nested_page)
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    assert "<script" not in body
    assert "&lt;script&gt;document.title=&#x27;owned&#x27;&lt;/script&gt;" in body
    assert "<script>document" not in re.sub(r"\\.", "", render_markdown(nested_page))


def test_the_same_bundle_gives_the_same_bytes(nested: Path) -> None:
    pages = [render_page(load_recording_page(nested, BundleMapRequest(align=OFFSET))) for _ in range(2)]
    assert pages[0] == pages[1]
    assert str(nested.parent) not in pages[0]  # no path of the machine either


def test_every_slice_of_a_name_is_found_from_its_row(nested_page: PageView) -> None:
    assert nested_page.scene is not None
    slices = nested_page.scene.slices
    for name in SLOW_NAMES:
        row = next(row for row in nested_page.tables[0].rows if row.name == name)
        lit = np.isin(slices.name_index, row.names)
        assert int(lit.sum()) == 10
        assert {slices.names[k].name for k in slices.name_index[lit]} == {name}


def test_boxes_of_the_icicle_hold_what_is_inside_and_add_up(nested: Path, nested_page: PageView) -> None:
    root = nested_page.flame
    assert root is not None

    def check(node: FlameNode) -> None:
        assert sum(child.energy_j for child in node.children) <= node.energy_j * (1 + 1e-12)
        for child in node.children:
            check(child)

    check(root)
    document = map_bundle(nested, BundleMapRequest(align=OFFSET))
    total = document["total_j"]
    assert isinstance(total, dict)
    assert sum(child.energy_j for child in root.children) == pytest.approx(total["value"], rel=1e-3)
    infer = next(child for child in root.children if child.name == "infer")
    assert {child.name for child in infer.children} == set(SLOW_NAMES)


def test_clocks_and_published_figures_stand_beside_the_map() -> None:
    sections = build_sections(slices_at(METER, [("a", 0, 10**9, "t")]))
    clock = {"source": "board", "target": "meter", "method": "markers", "reference_ns": 0, "offset_ns": 1_500_000_033,
             "offset_fraction_ns": 0.25, "drift_ppm": 12.5, "std_s": 1e-6, "drift_std_ppm": 0.5, "residual_s": 3e-6,
             "points": 20}  # fmt: skip
    metrics = {"published_value": 262.48847977862425, "published_unit": "mJ/stream", "average_power_w": 34.57,
               "own_average_power_w": 34.59, "energy_per_query_j": 0.262, "own_energy_per_query_j": 0.263,
               "energy_per_sample_j": None}  # fmt: skip
    assert sections.document is not None
    document = {**sections.document, "clocks": [clock], "rule": "mlperf", "metrics": metrics}
    view = build_recording_page(replace(sections, document=document))
    panels = {panel.title: dict(panel.rows) for panel in view.panels}
    assert panels["Clocks"]["board \u2192 meter"] == (
        "from marks that both saw; offset 1.5000000\u2009s \u00b1 2.0\u2009µs; drift 12.50 \u00b1 0.98\u2009ppm;"
        " residual 3.0\u2009µs (1 sd) over 20 points"
    )
    published = panels["Published rule"]
    assert published["Published figure"] == "262.48847977862425 mJ/stream"  # to the last digit
    assert published["The same by exact integration"] == "0.263 J"
    assert dict(view.figures)["By the rule mlperf"] == "262.4885\u2009mJ/stream"
