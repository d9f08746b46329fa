"""The report page in one run (V1, V2): its size, how fast it is made and drawn, how fast a waveform becomes bins.

Baselines: plotly's page with its script inlined for making the page (where plotly is installed: it is no dependency),
``np.sum`` over the same samples for the envelope (lowest and highest; the exact mean is shown apart), a frame of 16 ms
for drawing (where a Chromium is installed).
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from ratios import print_ratio, time_in_turn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from chromium import Chromium, find_chromium
from joulemap.estimate import Boundary, Provenance
from joulemap.report.html.page import render_page
from joulemap.report.source import load_page
from joulemap.report.view.recording.page import build_recording_page
from joulemap.report.view.recording.sections import ValueLine
from joulemap.report.view.scene import Scene
from joulemap.report.view.tracks import plan_edges
from joulemap.trace import Channel, Clock, ClockKind, EnergyTrace, KernelKind, SensorKernel, Timeline, mean_power
from joulemap.trace.resample import build_envelope
from mapped_traces import METER, build_trace
from recording_sections import build_sections
from report_bundle import large_page, shaped_facts, write_report_bundle

SAMPLES = 50_000_000
FRAME_MS = 16.0
_BENCH = """(async () => {
  const times = [];
  for (let i = 0; i < 120; i++) {
    const window = WINDOW;
    joulemap.showWindow(window[0], window[1]);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push(joulemap.timing.last);
  }
  return times;
})()"""
_WINDOWS = {
    "zoom in": "[0.9 * i / 120, 2 - 0.9 * i / 120]",
    "pan at 10 %": "[i * 0.015, i * 0.015 + 0.2]",
    "pan at 1 %": "[i * 0.015, i * 0.015 + 0.02]",
    "all of it": "[0, 2]",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = make_page(Path(folder))
        draw_page(page, "profile")
        draw_page(make_recording_page(Path(folder)), "recording")
    make_envelope()


def make_page(folder: Path) -> Path:
    """Prints size and duration of the largest page that is promised, and returns it."""
    view = large_page(load_page(write_report_bundle(folder / "run.jm", shaped_facts())))
    html = render_page(view)
    size_mb = len(html.encode()) / 1e6
    print_ratio("V1 page, 20 tracks x 4,000 x 3 and 1e4 slices, MB", size_mb, target="<= 1.0", met=size_mb <= 1.0)
    assert view.scene is not None
    scene = view.scene
    if importlib.util.find_spec("plotly") is None:
        print_ratio("V1 plotly inline over this page, time", float("nan"), target=">= 10", met=None)
    else:
        taken_s = time_in_turn({"ours": lambda: render_page(view), "plotly": lambda: render_plotly(scene)})
        ratio = taken_s["plotly"] / taken_s["ours"]
        print_ratio("V1 plotly inline over this page, time", ratio, target=">= 10", met=ratio >= 10)
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    return page


def make_recording_page(folder: Path) -> Path:
    """Prints the size of the same page of a recording, the time of a crowded one, and returns the first."""
    rng = np.random.default_rng(4)
    at_ns = np.arange(0, 2_000_000_000, 250_000, dtype=np.int64)
    values = [ValueLine(name=f"counter {k}", unit="1", time_ns=at_ns, value=rng.random(at_ns.size)) for k in range(19)]
    trace = build_trace(5.0 + rng.random(200_000), period_s=1e-5)
    sections = build_sections(_side_by_side(10_000), trace=trace, values=values)
    view = build_recording_page(sections)
    html = render_page(view)
    size_mb = len(html.encode()) / 1e6
    assert view.scene is not None
    whole = len(view.scene.slices) == 10_000 and len(view.scene.tracks) == 20
    print_ratio("V1 page of a recording, the same size, MB", size_mb, target="<= 1.0", met=size_mb <= 1.0 and whole)
    crowded = build_sections(_side_by_side(1_000_000), trace=trace, values=values)
    calls = {"crowded": lambda: build_recording_page(crowded), "plain": lambda: build_recording_page(sections)}
    taken_s = time_in_turn(calls, rounds=3)
    ratio = taken_s["crowded"] / taken_s["plain"]
    print_ratio("   page of 1e6 slices over that of 1e4, no target", ratio, target="-", met=None)
    page = folder / "recording.html"
    page.write_text(html, encoding="utf-8")
    return page


def _side_by_side(n: int) -> Timeline:
    """Returns n slices over 2 s in four lanes of forty names."""
    edges_ns = np.linspace(0, 2_000_000_000, n + 1).astype(np.int64)
    index = np.arange(n)
    return Timeline(
        clock=METER,
        start_ns=edges_ns[:-1],
        end_ns=edges_ns[1:],
        name_index=(index % 40).astype(np.int32),
        names=tuple(f"CONV_2D #{k}" for k in range(40)),
        track_index=(index % 4).astype(np.int32),
        tracks=tuple(f"core {k}" for k in range(4)),
        kind_index=np.zeros(n, np.int32),
        kinds=("op",),
    )


def render_plotly(scene: Scene) -> str:
    """Returns the same tracks as a page of plotly with everything inlined."""
    import plotly.graph_objects as go

    at_s = np.arange(scene.tracks[0].mean.size) * scene.span_s / scene.tracks[0].mean.size
    figure: Any = go.Figure()
    for track in scene.tracks:
        for values in (track.low, track.high, track.mean):
            figure.add_trace(go.Scattergl(x=at_s, y=values, name=track.name))
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def draw_page(page: Path, what: str) -> None:
    """Prints the 95th percentile of the script's share of a frame, against a frame."""
    program = find_chromium()
    if program is None:
        print_ratio(f"V1 draw() of a {what}, 95th percentile over 16 ms", float("nan"), target="<= 1", met=None)
        return
    with Chromium(program) as browser:
        for tracks in ("six tracks open", "all tracks open"):
            browser.open(page)
            if tracks.startswith("all"):
                browser.click("#more")
            every: list[float] = []
            for name, window in _WINDOWS.items():
                times_ms = browser.evaluate(_BENCH.replace("WINDOW", window))
                every += times_ms
                share = float(np.percentile(times_ms, 95)) / FRAME_MS
                print_ratio(
                    f"   draw() of a {what}, {tracks}, {name}: p95 over 16 ms", share, target="<= 1", met=share <= 1
                )
            share = float(np.percentile(every, 95)) / FRAME_MS
            print_ratio(f"V1 draw() of a {what}, {tracks}: p95 over 16 ms", share, target="<= 1", met=share <= 1)


def make_envelope() -> None:
    """Prints the envelope of a long trace against one sum over its samples."""
    power_w = np.random.default_rng(0).normal(0.01, 1e-3, SAMPLES).astype(np.float32)
    kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1e-6)
    trace = EnergyTrace(
        clock=Clock(name="instrument", kind=ClockKind.SAMPLE_INDEX),
        channel=Channel(name="rail", boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel),
        power_w=power_w,
        start_ns=0,
        period_s=1e-6,
    )
    edges_ns = plan_edges(trace.start_ns, trace.end_ns)
    calls = {
        "envelope": lambda: build_envelope(trace, edges_ns),
        "mean": lambda: mean_power(trace, edges_ns[:-1], edges_ns[1:]),
        "sum": lambda: np.sum(power_w),
    }
    taken_s = time_in_turn(calls, rounds=5)
    ratio = (taken_s["envelope"] - taken_s["mean"]) / taken_s["sum"]
    print_ratio("V2 low and high (envelope less its mean) over np.sum", ratio, target="<= 1.5", met=ratio <= 1.5)
    whole = taken_s["envelope"] / taken_s["sum"]
    print_ratio("   the same with the exact mean, no target", whole, target="-", met=None)


if __name__ == "__main__":
    main()
