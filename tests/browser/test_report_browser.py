"""The page in a real browser: quiet, closed, exact, reachable by keyboard, and what it says is what the bundle says."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chromium import Chromium
from joulemap.formats.bundle import read_bundle
from joulemap.formats.registry import load_trace
from joulemap.report.view.text import format_quantity, format_supported
from joulemap.trace import integrate_energy
from joulemap.units import format_estimate
from page_reading import SIZES, box, hover, quiet
from report_bundle import HOSTILE

U_FACTOR = 1.959963984540054
PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}


def result_of(page: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((page.with_suffix(".jm") / "result.json").read_text("utf-8"))
    return document


@pytest.mark.parametrize("name", ["valid", "hostile", "degraded", "profile_only", "large"])
@pytest.mark.parametrize(("width", "height", "scheme"), SIZES)
def test_a_page_is_quiet_closed_and_fits(
    browser: Chromium, pages: dict[str, Path], name: str, width: int, height: int, scheme: str
) -> None:
    browser.open(pages[name], width=width, height=height, scheme=scheme)
    quiet(browser, pages[name])
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(15, 18, 21)") == (scheme == "dark")
    if width >= 1280:  # a table that has to be pushed aside hides its numbers
        spare = "Math.min(...[...document.querySelectorAll('.scroll')].map(e => e.clientWidth - e.scrollWidth))"
        assert browser.evaluate(f"document.querySelector('.scroll') ? {spare} : 0") >= 0


def test_the_policy_holds_even_against_a_script_in_the_page(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    browser.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        " document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
        " document.body.setAttribute('style', 'color: red'); })()"
    )
    fetched = browser.evaluate("fetch('data:text/plain,x').then(() => 'fetched', () => 'refused')")
    assert fetched == "refused"
    assert browser.evaluate("window.broken === undefined")
    assert browser.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    blocked = [e for e in browser.complaints if "Content Security Policy" in e]
    assert len(blocked) >= 3


def test_hostile_names_are_shown_as_text_and_do_nothing(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"])
    names = browser.evaluate("[...document.querySelectorAll('button.name')].map(b => b.textContent)")
    assert f"{HOSTILE[0]} #0" in names
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("document.images.length + document.querySelectorAll('iframe, a').length") == 0
    browser.click("#fit")
    document = result_of(pages["hostile"])
    gate = document["captures"][0]["observation"]["result"]["gate"]
    lines = hover(browser, gate["rise_ns"] * 1e-9 + 0.005, "lane", 2)
    assert lines[0] == f"{HOSTILE[0]} #0"
    quiet(browser, pages["hostile"])


def test_hovering_a_layer_says_the_very_words_of_table_and_json(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    document = result_of(pages["valid"])
    start_s, end_s = browser.evaluate("joulemap.state.view")
    cells = browser.evaluate(
        "Object.fromEntries([...document.querySelectorAll('table[data-table=layer] tbody tr')].map(r =>"
        " [r.querySelector('.name').textContent, [...r.cells].map(c => c.textContent)]))"
    )
    seen = set()
    for time_s in np.linspace(start_s, end_s, 60)[1:-1]:
        lines = hover(browser, float(time_s), "lane", 2)
        layer = next((r for r in document["layers"] if f"{r['op']} #{r['index']}" == lines[0]), None)
        if layer is None:
            continue
        energy = format_quantity(layer["energy_j"], "J")
        assert lines[1].startswith(f"{energy} per inference")
        assert energy in cells[lines[0]]
        seen.add(lines[0])
    assert seen == {f"{r['op']} #{r['index']}" for r in document["layers"]}


def test_hovering_the_waveform_reads_the_samples_of_the_bundle(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    trace, _ = load_trace(read_bundle(pages["valid"].with_suffix(".jm")), "rail-1")
    span_s = browser.evaluate("joulemap.scenes[0].span")
    for left_s, width_s in ((0.0, span_s), (0.1, 0.048), (0.13, 0.002)):
        browser.evaluate(f"joulemap.showWindow({left_s}, {left_s + width_s})")
        browser.settle()
        for share in (0.11, 0.37, 0.52, 0.83):
            lines = hover(browser, left_s + share * width_s, "track", 0)
            bin_ = browser.evaluate(
                "(() => { const p = joulemap.state.pointer, b = joulemap.readAt(p.x, p.y).bin;"
                " return [b.start, b.source.step]; })()"
            )
            edges = np.array([round(bin_[0] * 1e9), round((bin_[0] + bin_[1]) * 1e9)], np.int64)
            truth = integrate_energy(trace, edges[:1], edges[1:])
            wanted_w = float(truth.energy_j[0] / truth.covered_s[0])
            match = re.match(r"(?:mean|sample) ([\d.]+) ± ([\d.]+)\u2009([mµ]?)W", lines[1])
            assert match is not None, lines
            scale = PREFIXES[match[3]]
            shown_w, expanded_w = float(match[1]) * scale, float(match[2]) * scale
            assert shown_w == pytest.approx(wanted_w, abs=0.05 * expanded_w + 2e-6)


def test_zoom_pan_and_fit_by_wheel_drag_and_button(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    left, top = box(browser)
    before = browser.evaluate("joulemap.state.view")
    browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=left + 600, y=top + 80, deltaX=0, deltaY=-200)
    browser.settle()
    zoomed = browser.evaluate("joulemap.state.view")
    assert zoomed[1] - zoomed[0] < 0.8 * (before[1] - before[0])
    browser.move(left + 600, top + 80)
    browser.move(left + 600, top + 80, kind="mousePressed", held=True)
    browser.move(left + 500, top + 80, held=True)
    browser.move(left + 500, top + 80, kind="mouseReleased")
    browser.settle()
    panned = browser.evaluate("joulemap.state.view")
    assert panned[0] > zoomed[0]
    assert panned[1] - panned[0] == pytest.approx(zoomed[1] - zoomed[0])
    browser.click("#fit")
    assert browser.evaluate("joulemap.state.view") == [0, browser.evaluate("joulemap.scenes[0].span")]
    quiet(browser, pages["valid"])


def test_a_brush_says_the_energy_of_its_window_with_its_doubt(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    browser.click("#fit")
    left, top = box(browser)
    browser.move(left + 500, top + 80)
    browser.move(left + 500, top + 80, kind="mousePressed", shift=True, held=True)
    browser.move(left + 800, top + 80, shift=True, held=True)
    browser.move(left + 800, top + 80, kind="mouseReleased", shift=True)
    browser.settle()
    start_s, end_s = browser.evaluate("joulemap.state.selection")
    trace, _ = load_trace(read_bundle(pages["valid"].with_suffix(".jm")), "rail-1")
    edges = np.array([round(start_s * 1e9), round(end_s * 1e9)], np.int64)
    truth_j = float(integrate_energy(trace, edges[:1], edges[1:]).energy_j[0])
    measured = browser.evaluate("joulemap.measureWindow(joulemap.state.selection)")
    assert measured["energy"] == pytest.approx(truth_j, rel=2e-5)
    spec = json.loads((pages["valid"].with_suffix(".jm") / "run.json").read_text("utf-8"))["instrument"]
    duration_s = end_s - start_s
    expanded_j = U_FACTOR * float(
        np.sqrt(
            (truth_j * spec["gain_std"]) ** 2
            + (truth_j * spec["clock_std_ppm"] * 1e-6) ** 2
            + (duration_s * spec["offset_std_w"]) ** 2
            + spec["noise_std_w"] ** 2 * duration_s / spec["rate_hz"]
        )
    )
    assert measured["expanded"] == pytest.approx(expanded_j, rel=1e-2)
    said = browser.evaluate("document.getElementById('selection').textContent")
    assert format_estimate(measured["energy"], measured["expanded"], "J") in said
    browser.click("#clear")
    assert browser.evaluate("joulemap.state.selection") is None


def test_the_page_writes_numbers_as_the_program_does(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    rng = np.random.default_rng(3)
    values = 10 ** rng.uniform(-12, 6, 300) * rng.choice([-1, 1], 300)
    expanded = np.abs(values) * 10 ** rng.uniform(-6, 1, 300)
    pairs = [(float(v), float(u)) for v, u in zip(values, expanded, strict=True)]
    shown = browser.evaluate(
        f"{json.dumps(pairs)}.map(([v, u]) =>"
        " [joulemap.formatEstimate(v, u, 'J'), joulemap.formatSupported(v, u, 'J')])"
    )
    wrong = [
        (pair, texts)
        for pair, texts in zip(pairs, shown, strict=True)
        if texts != [format_estimate(pair[0], pair[1], "J"), format_supported(pair[0], pair[1], "J")]
    ]
    assert wrong == []


def test_a_name_in_the_table_lights_up_its_slices_and_again_takes_the_light_away(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages["valid"])
    browser.click('button[data-key="layer:DEPTHWISE_CONV_2D #1"]')
    names = browser.evaluate("[...joulemap.state.hot].map(k => joulemap.scenes[0].slices.names[k].name)")
    assert names == ["DEPTHWISE_CONV_2D #1"]
    assert browser.evaluate("document.querySelectorAll('[aria-pressed=true][data-key]').length") == 1
    browser.click('button[data-key="layer:DEPTHWISE_CONV_2D #1"]')
    assert browser.evaluate("joulemap.state.hot") is None


def test_the_table_filters_and_groups(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    browser.evaluate(
        "(() => { const f = document.getElementById('filter'); f.value = 'depth';"
        " f.dispatchEvent(new Event('input')); })()"
    )
    visible = (
        "[...document.querySelectorAll('table:not([hidden]) tbody tr:not([hidden])')].map(r => r.cells[0].textContent)"
    )
    assert browser.evaluate(visible) == ["DEPTHWISE_CONV_2D #1"]
    assert browser.evaluate("document.getElementById('matches').textContent") == "1 of 4"
    browser.evaluate(
        "(() => { document.getElementById('filter').value = ''; const g = document.getElementById('grouping');"
        " g.value = 'path'; g.dispatchEvent(new Event('change')); })()"
    )
    assert browser.evaluate(visible) == ["model", "between layers"]


def test_the_fold_shows_one_period_of_all(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    browser.click("#fold")
    assert browser.evaluate("document.getElementById('what').textContent") == "10 inferences folded into one"
    document = result_of(pages["valid"])
    span_s = browser.evaluate("joulemap.state.scene.span")
    assert span_s == pytest.approx(document["latency_s"]["value"], rel=1e-4)
    energy_j = browser.evaluate("joulemap.measureWindow([0, joulemap.state.scene.span]).energy")
    assert energy_j == pytest.approx(document["energy_per_inference_j"]["value"], rel=5e-3)
    browser.click("#fold")
    assert browser.evaluate("joulemap.state.scene === joulemap.scenes[0]")
    quiet(browser, pages["valid"])


def test_everything_can_be_done_with_the_keyboard_alone(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    reached: list[str] = []
    for _ in range(40):
        browser.press("Tab")
        reached.append(
            browser.evaluate(
                "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
                " const shown = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0"
                " || e.matches('.box:focus-visible'); return [e.id || e.dataset.key || e.dataset.window || e.className"
                " || e.tagName, shown].join('|'); })()"
            )
        )
    names = [entry.split("|")[0] for entry in reached]
    for wanted in ("fold", "tall", "pick", "out", "in", "fit", "map", "grouping", "filter", "layer:CONV_2D #0"):
        assert wanted in names, names
    assert any(name.startswith("flame:") for name in names)
    assert all(entry.endswith("|true") for entry in reached if not entry.startswith("BODY")), reached
    browser.evaluate("document.getElementById('map').focus()")
    before = browser.evaluate("joulemap.state.view")
    browser.press("+")
    inner = browser.evaluate("joulemap.state.view")
    assert inner[1] - inner[0] == pytest.approx(0.6 * (before[1] - before[0]))
    browser.press("ArrowRight")
    assert browser.evaluate("joulemap.state.view[0]") > inner[0]
    browser.press(".")
    assert "mean" in browser.evaluate("document.getElementById('said').textContent")
    browser.press("s")
    for _ in range(5):
        browser.press("ArrowRight", shift=True)
    assert browser.evaluate("joulemap.state.selection !== null")
    assert "±" in browser.evaluate("document.getElementById('selection').textContent")
    browser.press("Escape")
    assert browser.evaluate("joulemap.state.selection === null && joulemap.state.cursor === null")
    browser.press("0")
    assert browser.evaluate("joulemap.state.view[0]") == 0
    browser.evaluate("document.querySelector('#icicle .box:last-child').focus()")
    browser.press("Enter")
    assert browser.evaluate("joulemap.state.hotKey").startswith("flame:")
    quiet(browser, pages["valid"])


def test_every_control_has_a_name_and_a_role(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    nameless = []
    for node in tree:
        role = node.get("role", {}).get("value")
        if role in {"button", "combobox", "searchbox", "application", "region", "table"} and not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            if not name.strip():
                nameless.append(role)
    assert nameless == []
    roles = {node.get("role", {}).get("value") for node in tree if not node.get("ignored")}
    assert {"heading", "button", "searchbox", "application", "table", "columnheader", "rowheader"} <= roles


def test_a_link_restores_the_view(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"], fragment="#t=0.1,0.12&sel=0.105,0.11&hot=layer%3ACONV_2D%20%230")
    assert browser.evaluate("joulemap.state.view") == pytest.approx([0.1, 0.12])
    assert browser.evaluate("joulemap.state.selection") == pytest.approx([0.105, 0.11], abs=1e-4)
    assert browser.evaluate("joulemap.state.hotKey") == "layer:CONV_2D #0"
    browser.evaluate("joulemap.showWindow(0.12, 0.13)")
    browser.evaluate("new Promise(done => setTimeout(done, 400))")
    fragment = browser.evaluate("location.hash")
    browser.open(pages["valid"], fragment=fragment)
    assert browser.evaluate("joulemap.state.view") == pytest.approx([0.12, 0.13])
    assert browser.evaluate("joulemap.state.hotKey") == "layer:CONV_2D #0"
    browser.open(pages["valid"], fragment="#t=nonsense&sel=9,1&hot=%3Cscript%3E&fold=1")
    assert browser.evaluate("joulemap.state.scene === joulemap.scenes[1]")
    quiet(browser, pages["valid"])


def test_two_fingers_zoom(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"], width=390, height=844)
    left, top = box(browser)
    before = browser.evaluate("joulemap.state.view")
    for kind, apart in (("touchStart", 30), ("touchMove", 45), ("touchMove", 60), ("touchEnd", 0)):
        points = [{"x": left + 200 + s * apart, "y": top + 80, "id": k} for k, s in enumerate((-1, 1))] if apart else []
        browser.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    browser.settle()
    after = browser.evaluate("joulemap.state.view")
    assert after[1] - after[0] == pytest.approx(0.5 * (before[1] - before[0]), rel=1e-2)


def test_a_worst_window_shows_its_raw_samples(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"])
    trace, _ = load_trace(read_bundle(pages["valid"].with_suffix(".jm")), "rail-1")
    browser.click("[data-window]")
    start_s, end_s = browser.evaluate("joulemap.state.view")
    inside = trace.power_w[int(start_s * 1e5) : int(end_s * 1e5)]
    assert inside.max() == trace.power_w.max()  # the first of them is the highest peak
    peak_s = (int(np.argmax(trace.power_w)) + 0.5) * 1e-5
    browser.evaluate(f"joulemap.showWindow({peak_s} - 0.0005, {peak_s} + 0.0005)")
    browser.settle()
    lines = hover(browser, peak_s, "track", 0)
    assert lines[2] == "one sample of 10.0\u2009µs"
    shown = re.match(r"sample ([\d.]+) ± [\d.]+\u2009mW", lines[1])
    assert shown is not None
    assert float(shown[1]) * 1e-3 == pytest.approx(float(trace.power_w.max()), rel=1e-3)


def test_more_than_six_tracks_are_folded_away_until_asked_for(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    tracks = "joulemap.layout.rows.filter(r => r.track !== undefined).length"
    assert browser.evaluate(tracks) == 6
    browser.click("#more")
    assert browser.evaluate(tracks) == 20
    browser.click("#fit")
    browser.click("#more")
    assert browser.evaluate(tracks) == 6
    quiet(browser, pages["large"])


def test_it_prints_on_one_page(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["valid"], scheme="dark")
    printed = browser.send("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]
    assert len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed))) == 1
