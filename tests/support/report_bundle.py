"""Bundles and scenes for the tests of the report, made by hand: a waveform with a level per layer, odd names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from joulemap.formats.bundle_writer import BundleWriter
from joulemap.records.finding import Validity
from joulemap.records.power import PowerCapture
from joulemap.records.run import ProfileRequest
from joulemap.report.view.page import PageView
from joulemap.report.view.scene import Band, Excerpt, Level, PowerUncertainty, Scene, SliceName, SliceTable, Track
from joulemap.trace import EnergyTrace
from joulemap.workflow.result import ProfileFacts
from joulemap.workflow.save import write_sections
from profile_facts import COUNT, LAYER_CYCLES, LAYER_J, PERIOD_S, TOTAL_J, capture, facts, power_run

__all__ = ["HOSTILE", "hostile_facts", "large_page", "shaped_facts", "write_report_bundle"]

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</script><script>document.title='owned'</script>\u202e|`x` [a](javascript:1) &amp; 'q'",
)
"""Names that would run, load or break something where they are not text."""

_RATE_HZ = 100_000
_IDLE_W = 4.2e-3


def shaped_facts() -> ProfileFacts:
    """Returns a valid run whose waveform has the power of each layer, with a seeded ripple."""
    run = facts()
    captures = tuple(_shape(capture(k), seed=k) for k in range(1, 6))
    return replace(run, power=power_run(captures))


def hostile_facts() -> ProfileFacts:
    """Returns the same run with hostile names for model, layers, operations and findings."""
    run = shaped_facts()
    layers = tuple(
        replace(layer, op=op, name=f"path/{op}") for layer, op in zip(run.model.layers, HOSTILE, strict=True)
    )
    return replace(run, model=replace(run.model, name=HOSTILE[0], layers=layers, engine=HOSTILE[1]))


def write_report_bundle(folder: Path, run: ProfileFacts) -> Path:
    """Writes the facts as a bundle and returns its folder."""
    tool = {"name": "joulemap", "version": "0"}
    with BundleWriter(folder, kind="profile", run_id=run.run_id, tool=tool, created="2026-01-01T00:00:00Z") as writer:
        request = ProfileRequest(model=Path("three.tflite"), power=run.power is not None)
        write_sections(writer, run, request, truths={}, timings=(), log=("made by hand",), name=folder.name)
        writer.commit(validity=run.validity)
    return folder


def large_page(view: PageView, *, tracks: int = 20, bins: int = 4000, slices: int = 10_000) -> PageView:
    """Returns the view with a scene of so many tracks and slices in four lanes.

    Args:
        view: everything else.
        tracks: of the scene.
        bins: of each track.
        slices: in all.
    """
    rng = np.random.default_rng(5)
    span_s = 2.0
    periods = slices // 40
    period_s = span_s / periods
    wave = 0.011 + 0.03 * np.abs(np.sin(np.arange(bins) * span_s / bins * np.pi / period_s))
    made = []
    for k in range(tracks):
        mean = wave * (1 + 0.05 * rng.standard_normal(bins))
        made.append(Track(name=f"track {k}", unit="W", low=0.9 * mean, high=1.1 * mean, mean=mean, uncertainty=_LIMITS))
    start_s = np.sort(rng.uniform(0, span_s * 0.999, slices))
    lane = np.arange(slices, dtype=np.int32) % 4
    duration_s = np.diff(np.append(start_s, span_s)) * 0.9
    names = tuple(
        SliceName(name=f"CONV_2D #{k}", op="CONV_2D", color=k % 8, facts=("1.0 ± 0.1 µJ",)) for k in range(40)
    )
    table = SliceTable(
        start_s=start_s,
        duration_s=duration_s,
        energy_j=duration_s * 0.03,
        name_index=np.arange(slices, dtype=np.int32) % 40,
        lane_index=lane,
        names=names,
        lanes=("Run", "Inference", "Layer", "Kernel"),
    )
    scene = Scene(
        label="twenty tracks",
        span_s=span_s,
        tracks=tuple(made),
        slices=table,
        bands=(Band(label="GATE", start_s=0.1, end_s=1.9),),
        level=Level(label="idle 11 mW", value=0.011),
        excerpts=tuple(_excerpt(k, rng) for k in range(5)),
        open_s=(0.5, 0.5 + 3 * period_s),
        period_s=period_s,
    )
    return replace(view, scene=scene, fold=None)


def _excerpt(number: int, rng: np.random.Generator) -> Excerpt:
    """Returns the finer bins that the page opens on, and raw samples of four other windows."""
    samples = 0.03 + 0.01 * rng.random(2000)
    spread = samples if number else samples * 1.02
    step_s = 1e-6 if number else 12e-6
    start_s = 0.5 + 0.3 * number
    return Excerpt(
        label=f"window {number}" if number else "",
        track=0,
        start_s=start_s,
        step_s=step_s,
        low=samples,
        high=spread,
        mean=samples,
    )


_LIMITS = PowerUncertainty(gain_std=5e-4, clock_std=1e-5, offset_std_w=1e-6, noise_std_w=2e-5, rate_hz=1e6)


def _shape(made: PowerCapture, *, seed: int) -> PowerCapture:
    """Returns the capture with a waveform that holds the energy of each layer, idle before and after GATE."""
    result = made.observation.result
    assert result is not None
    assert result.gate is not None
    assert made.observation.integrity is Validity.VALID
    at_s = (np.arange(round(0.26 * _RATE_HZ)) + 0.5) / _RATE_HZ
    power_w = np.full(at_s.size, _IDLE_W)
    rise_s = result.gate.rise_ns * 1e-9
    head_s = PERIOD_S - sum(LAYER_CYCLES) / 1e8
    levels = [(head_s, (TOTAL_J - sum(LAYER_J)) / head_s)]
    levels += [
        (cycles / 1e8, energy_j / (cycles / 1e8)) for cycles, energy_j in zip(LAYER_CYCLES, LAYER_J, strict=True)
    ]
    phase_s = (at_s - rise_s) % PERIOD_S
    inside = (at_s >= rise_s) & (at_s < rise_s + COUNT * PERIOD_S)
    begin_s = 0.0
    for length_s, level_w in levels:
        power_w[inside & (phase_s >= begin_s) & (phase_s < begin_s + length_s)] = level_w
        begin_s += length_s
    power_w += np.random.default_rng(seed).normal(0.0, 2e-5, at_s.size)
    recording = result.recording
    trace = EnergyTrace(
        clock=recording.trace.clock,
        channel=recording.trace.channel,
        power_w=power_w.astype(np.float32),
        start_ns=0,
        period_s=1 / _RATE_HZ,
    )
    shaped = replace(result, recording=replace(recording, trace=trace))
    return replace(made, observation=replace(made.observation, result=shaped))
