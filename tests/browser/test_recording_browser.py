"""The page of recordings in a real browser: quiet, exact, and what it says is what the map says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chromium import Chromium
from joulemap.analysis.clocks.solve import AlignRequest
from joulemap.formats.bundle import read_bundle
from joulemap.formats.registry import load_trace
from joulemap.report.html.page import render_page
from joulemap.report.view.text import format_measured
from joulemap.trace import integrate_energy
from joulemap.workflow.recordings.map_bundle import BundleMapRequest, map_bundle
from page_reading import SIZES, box, hover, quiet
from recording_sections import SLOW_NAMES, import_files, load_recording_page, write_nested, write_rails

COLUMNS = {"columns": {"time": "moment (s)", "power": "power (W)"}}
PLACED = BundleMapRequest(align=AlignRequest(offset_s=0.0))
PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Pages by what they are of, and the bundle of the first."""

    pages: dict[str, Path]
    bundle: Path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("recordings")
    power, trace = write_nested(folder)
    nested = import_files(folder / "nested.jm", power, trace, **COLUMNS)
    rails = import_files(folder / "rails.jm", write_rails(folder), utc_offset_s=0.0)
    times = import_files(folder / "times.jm", trace)
    views = {
        "nested": load_recording_page(nested, PLACED),
        "unplaced": load_recording_page(nested),
        "units": load_recording_page(nested, BundleMapRequest(align=PLACED.align, per="infer")),
        "rails": load_recording_page(rails),
        "times": load_recording_page(times),
    }
    pages = {}
    for name, view in views.items():
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(render_page(view), encoding="utf-8")
    return Made(pages=pages, bundle=nested)


@pytest.mark.parametrize("name", ["nested", "unplaced", "units", "rails", "times"])
@pytest.mark.parametrize(("width", "height", "scheme"), SIZES)
def test_a_page_of_recordings_is_quiet_closed_and_fits(
    browser: Chromium, made: Made, name: str, width: int, height: int, scheme: str
) -> None:
    browser.open(made.pages[name], width=width, height=height, scheme=scheme)
    quiet(browser, made.pages[name])
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    browser.evaluate("joulemap.showWindow(0, joulemap.state.scene.span / 7)")
    browser.settle()
    quiet(browser, made.pages[name])


def rows_of(made: Made) -> dict[str, Any]:
    document = map_bundle(made.bundle, PLACED)
    rows = document["rows"]
    assert isinstance(rows, Sequence)
    return {row["key"]: row for row in rows}


def test_hovering_a_slice_says_the_very_words_of_table_and_map(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    browser.evaluate("joulemap.showWindow(0.05, 0.45)")
    browser.settle()
    cells = browser.evaluate(
        "Object.fromEntries([...document.querySelectorAll('table[data-table=name] tbody tr')].map(r =>"
        " [r.querySelector('.name').textContent, [...r.cells].map(c => c.textContent)]))"
    )
    rows, seen = rows_of(made), set()
    operators = browser.evaluate("joulemap.scenes[0].slices.lanes.indexOf('Operator')")
    for time_s in np.linspace(0.06, 0.44, 30):
        lines = hover(browser, float(time_s), "lane", operators)
        if lines[0] not in rows:
            continue
        energy = format_measured(rows[lines[0]]["energy_j"], "J")
        assert lines[1] == f"{energy} in all (10 slices)"
        assert energy in cells[lines[0]]
        seen.add(lines[0])
    assert seen == set(SLOW_NAMES)
    quiet(browser, made.pages["nested"])


def test_one_slice_says_its_own_energy_with_u(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    browser.evaluate("joulemap.showWindow(0.05, 0.45)")
    browser.settle()
    lane = browser.evaluate("joulemap.scenes[0].slices.lanes.indexOf('Operator')")
    lines = hover(browser, 0.19, "lane", lane)  # conv of the first unit: 0.14 s to 0.24 s
    assert lines[0] == "conv"
    here = next(line for line in lines if line.startswith("here: "))
    match = re.match(r"here: ([\d.]+) ± ([\d.]+)\u2009([mµ]?)J in 100.0\u2009ms", here)
    assert match is not None, here
    trace, _ = load_trace(read_bundle(made.bundle), "power")
    truth = integrate_energy(trace, np.array([140_000_000]), np.array([240_000_000]))
    scale = PREFIXES[match[3]]
    assert float(match[1]) * scale == pytest.approx(float(truth.energy_j[0]), abs=float(match[2]) * scale)


def test_hovering_power_reads_the_samples_of_the_bundle(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    trace, _ = load_trace(read_bundle(made.bundle), "power")
    for left_s, width_s in ((0.0, 4.0), (1.0, 0.5)):
        browser.evaluate(f"joulemap.showWindow({left_s}, {left_s + width_s})")
        browser.settle()
        for share in (0.13, 0.48, 0.81):
            lines = hover(browser, left_s + share * width_s, "track", 0)
            start_s, step_s = browser.evaluate(
                "(() => { const p = joulemap.state.pointer, b = joulemap.readAt(p.x, p.y).bin;"
                " return [b.start, b.source.step]; })()"
            )
            edges = np.array([round(start_s * 1e9), round((start_s + step_s) * 1e9)], np.int64) + trace.start_ns
            truth = integrate_energy(trace, edges[:1], edges[1:])
            match = re.match(r"(?:mean|sample) ([\d.]+) ± [\d.]+\u2009([mµ]?)W", lines[1])
            assert match is not None, lines
            wanted_w = float(truth.energy_j[0] / truth.covered_s[0])
            assert float(match[1]) * PREFIXES[match[2]] == pytest.approx(wanted_w, abs=2e-3)


def test_a_hostile_name_is_text_in_table_icicle_and_tooltip(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    hostile = SLOW_NAMES[2]
    assert hostile in browser.evaluate("[...document.querySelectorAll('button.name')].map(b => b.textContent)")
    assert hostile in browser.evaluate("[...document.querySelectorAll('.box')].map(b => b.dataset.label)")
    browser.evaluate("joulemap.showWindow(0.05, 0.45)")
    browser.settle()
    lane = browser.evaluate("joulemap.scenes[0].slices.lanes.indexOf('Operator')")
    assert hover(browser, 0.27, "lane", lane)[0] == hostile
    assert browser.evaluate("document.title") != "owned"
    quiet(browser, made.pages["nested"])


def test_a_row_lights_up_its_slices(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    browser.click('button[data-key="name:conv"]')
    assert browser.evaluate("[...joulemap.state.hot].map(k => joulemap.scenes[0].slices.names[k].name)") == ["conv"]
    browser.evaluate(
        "(() => { const g = document.getElementById('grouping'); g.value = 'path';"
        " g.dispatchEvent(new Event('change')); })()"
    )
    browser.click('table[data-table=path] button[data-key="path:infer \u203a post"]')
    assert browser.evaluate("[...joulemap.state.hot].map(k => joulemap.scenes[0].slices.names[k].name)") == ["post"]


def test_utc_is_told_as_time_of_day(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["rails"])
    assert "0 = 2026-01-02 03:0" in browser.evaluate("document.getElementById('what').textContent")
    lines = hover(browser, 10.25, "track", 0)
    origin_s, origin_ns = browser.evaluate("joulemap.scenes[0].origin.utc")
    assert origin_ns == 0
    at = np.datetime64(origin_s, "s") + np.timedelta64(10, "s")
    assert lines[-1].startswith(str(at).replace("T", " ")[:19])
    assert lines[-1].endswith(" UTC")
    temperature = browser.evaluate("joulemap.scenes[0].tracks.findIndex(t => t.unit === '\u00b0C')")
    if browser.evaluate("!document.getElementById('more').hidden"):
        browser.click("#more")
    assert any(
        line.startswith("mean 4") and line.endswith("\u00b0C") for line in hover(browser, 5.5, "track", temperature)
    )
    quiet(browser, made.pages["rails"])


@pytest.mark.parametrize(
    ("time_s", "step_s", "text"),
    [
        (0.0, 10.0, "2026-01-02 03:04:05 UTC"),
        (0.123456789, 1e-9, "2026-01-02 03:04:05.323456789 UTC"),
        (0.9, 0.1, "2026-01-02 03:04:06.1 UTC"),
        (86400.0, 1.0, "2026-01-03 03:04:05 UTC"),
    ],
)
def test_the_time_of_day_keeps_its_nanoseconds(
    browser: Chromium, made: Made, time_s: float, step_s: float, text: str
) -> None:
    browser.open(made.pages["times"])
    origin = [1767323045, 200_000_000]
    assert browser.evaluate(f"joulemap.formatUtc({origin}, {time_s!r}, {step_s!r})") == text


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(0.0, "0\u2009min"), (300.0, "5\u2009min"), (5400.0, "1\u2009h 30\u2009min"), (90000.0, "1\u2009d 1\u2009h")],
)
def test_long_times_are_told_in_minutes_hours_and_days(browser: Chromium, made: Made, time_s: float, text: str) -> None:
    browser.open(made.pages["times"])
    assert browser.evaluate(f"joulemap.formatLong({time_s})") == text


def test_times_alone_have_a_map_and_no_joule(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["times"])
    assert browser.evaluate("joulemap.scenes[0].tracks[0].name") == "Busy tracks"
    assert "J" not in browser.evaluate(
        "joulemap.describeSelection([0, joulemap.scenes[0].span / 2]).replace('Joule', '')"
    )
    left, top = box(browser)
    y = browser.evaluate("(() => { const r = joulemap.layout.rows.find(r => r.lane === 0); return r.y + 5; })()")
    browser.move(left + 300, top + y)
    browser.settle()
    assert "\u2009J" not in browser.evaluate("document.getElementById('tip').textContent")
    quiet(browser, made.pages["times"])


def test_units_of_work_fold(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["units"])
    browser.click("#fold")
    assert browser.evaluate("document.getElementById('what').textContent") == "10 units of work folded into one"
    energy_j = browser.evaluate("joulemap.measureWindow([0, joulemap.state.scene.span]).energy")
    assert energy_j == pytest.approx(1.07, rel=0.01)
    quiet(browser, made.pages["units"])


def test_the_map_of_a_recording_is_worked_by_keyboard(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["nested"])
    reached = []
    for _ in range(40):
        browser.press("Tab")
        reached.append(browser.evaluate("document.activeElement.id || document.activeElement.dataset.key || ''"))
    for wanted in ("map", "fit", "grouping", "filter", "name:conv"):
        assert wanted in reached, reached
    assert any(name.startswith("flame:") for name in reached)
    browser.evaluate("document.getElementById('map').focus()")
    before = browser.evaluate("joulemap.state.view")
    browser.press("+")
    after = browser.evaluate("joulemap.state.view")
    assert after[1] - after[0] == pytest.approx(0.6 * (before[1] - before[0]))
    browser.press(".")
    assert "mean" in browser.evaluate("document.getElementById('said').textContent")


def test_every_control_of_a_recording_page_has_a_name(browser: Chromium, made: Made) -> None:
    browser.open(made.pages["rails"])
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in tree
        if node.get("role", {}).get("value") in {"button", "combobox", "searchbox", "application", "region"}
        and not node.get("ignored")
        and not node.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []
