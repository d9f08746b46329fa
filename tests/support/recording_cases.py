"""The cases of METHODS 1.5 and 1.6 as studies: what is drawn, how it is mapped, what is compared."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from joulemap.analysis.clocks.regression import fit_clock
from joulemap.analysis.clocks.solve import Align, AlignRequest, solve_clock
from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.mapping.energy_map import MapRequest, map_energy
from joulemap.analysis.mapping.repetition import map_repetitions
from joulemap.analysis.sampling import describe_trace
from joulemap.estimate import Estimate
from joulemap.records.mapping.clock_map import AlignMethod, ClockMap
from joulemap.trace import Slice, Timeline
from joulemap.trace.sweep import GroupedSlices, Split, sweep_energy
from mapped_traces import build_trace
from recording_study import Study, Tally, ideal_half_widths, map_drawn, run_study
from recording_truth import METER_CLOCK, WORK_CLOCK, Case, Drawn, layer_schedule

if importlib.util.find_spec("numba") is not None:
    importlib.import_module("joulemap.trace.kernels")  # the compiled sweep pays for itself over so many draws

__all__ = ["LAYER_CASES", "LayerCase", "repetition_study", "study_layers", "tracks_study"]

Relation = Callable[[Drawn], ClockMap]


def same(drawn: Drawn) -> ClockMap:
    return ClockMap(source=drawn.timeline.clock, target=METER_CLOCK)


def stated(drawn: Drawn) -> ClockMap:
    """The clocks are known to the limits that the case draws from, nothing more."""
    return ClockMap(
        source=drawn.timeline.clock,
        target=METER_CLOCK,
        reference_ns=int(drawn.edges_s[-1] * 0.5e9),
        std_s=drawn.case.offset_s / math.sqrt(3.0),
        drift_std=drawn.case.drift_ppm * 1e-6 / math.sqrt(3.0),
        method=AlignMethod.UTC,
    )


def marked(drawn: Drawn) -> ClockMap:
    """A hundred marks that both clocks saw, each to 2 us."""
    rng = np.random.default_rng(round(drawn.truth_j["total"] * 1e9) % 2**31)
    end_s = drawn.edges_s[-1]
    at_s = np.sort(rng.uniform(0.0, end_s, 100))
    work_s = at_s - drawn.offset_s - drawn.drift * (at_s - 0.5 * end_s) + 2e-6 * rng.standard_normal(100)
    return fit_clock(
        (WORK_CLOCK, np.rint(work_s * 1e9).astype(np.int64)),
        (METER_CLOCK, np.rint(at_s * 1e9).astype(np.int64)),
        method=AlignMethod.MARKERS,
    )


def likeliest(drawn: Drawn) -> ClockMap:
    return solve_clock(drawn.trace, drawn.timeline, (), AlignRequest(method=Align.LIKELIHOOD))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCase:
    """A case of layers.

    Args:
        case: what is drawn.
        relate: how its clocks are related.
        own_ideal: the ideal is of each draw's own schedule.
    """

    case: Case
    relate: Relation = same
    own_ideal: bool = False


SLOW = layer_schedule(shortest_s=500e-6, longest_s=5e-3)
LONG = layer_schedule(layers=8, shortest_s=30e-3, longest_s=200e-3)
NAMED = [
    Case(name="1 kHz, noise 0.5 %"),
    Case(name="1 kHz, noise 1 %", runs=1000),
    Case(name="1 kHz, noise 2 %", runs=1000),
    Case(name="1 kHz, noise 5 %", runs=2000),
    Case(name="10 kHz, noise 1 %", runs=60, rate_hz=1e4),
    Case(name="100 Hz, noise 0.1 %", runs=1500, rate_hz=100.0, noise=0.001),
    Case(name="100 Hz, layers of 0.5 to 5 ms", rate_hz=100.0, schedule=SLOW, gap_s=1e-2),
    Case(name="overlap: 1 kHz, layers of 30 to 200 ms", runs=25, schedule=LONG, gap_s=0.2),
    Case(name="overlap: 1 kHz, noise 0.1 %", runs=25, schedule=LONG, gap_s=0.2, noise=0.001),
    Case(name="run to run: power 2 %, duration 1 %", run_power=0.02, run_duration=0.01),
    Case(name="stamps jitter by 5 us", jitter_s=5e-6),
    Case(name="stamps jitter by 20 us", jitter_s=20e-6),
    Case(name="stamps in whole us", tick_s=1e-6),
    Case(name="stamps in ticks of 20 us", tick_s=20e-6),
    Case(name="noise with memory 0.5", memory=0.5),
    Case(name="noise with memory 0.9", memory=0.9),
    Case(name="counter of 61 uJ, uneven reads", counter_j=61e-6),
    Case(name="counter of 0.5 mJ, uneven reads", counter_j=0.5e-3),
    Case(name="gain 2 % and offset 50 mW, rectangular", gain=0.02, offset_w=0.05),
    Case(name="a run holds its layers", nested=True),
    Case(name="window a quarter of the step", runs=1500, rate_hz=100.0, window_s=2.5e-3, noise=0.002),
    Case(name="window four steps", window_s=4e-3, noise=0.001),
    Case(name="point samples, noise 1 %", runs=1000, point=True),
]
NOISE = {"1 kHz, noise 0.5 %": 0.005, "1 kHz, noise 2 %": 0.02, "1 kHz, noise 5 %": 0.05}
LAYER_CASES = [
    *(LayerCase(case=replace(case, noise=NOISE.get(case.name, case.noise))) for case in NAMED),
    LayerCase(case=Case(name="random schedules", random_schedule=True, runs=250), own_ideal=True),
    LayerCase(case=Case(name="clock: offset within 100 us", offset_s=100e-6), relate=stated),
    LayerCase(
        case=Case(name="clock: offset within 100 us, drift 50 ppm", offset_s=100e-6, drift_ppm=50), relate=stated
    ),
    LayerCase(case=Case(name="clock: marks of 2 us, drift 50 ppm", offset_s=10.0, drift_ppm=50), relate=marked),
    LayerCase(case=Case(name="clock: unknown, by likelihood", offset_s=0.1, drift_ppm=50), relate=likeliest),
]


def study_layers(what: LayerCase, draws: int, *, first: int = 0) -> Study:
    """Returns the counts of a case of layers, rows, idle time and total."""
    common = None if what.own_ideal else ideal_half_widths(what.case)

    def counted(drawn: Drawn) -> Iterable[tuple[str, float, object, float]]:
        ideal = common
        if ideal is None:
            ideal = ideal_half_widths(replace(drawn.case, random_schedule=False))
        energy = map_drawn(drawn, what.relate(drawn))
        for row in energy.rows:
            yield row.key, drawn.truth_j[row.key], row.energy_j, ideal.get(row.key, math.nan)
        yield "idle", drawn.truth_j["idle"], energy.idle_j, ideal["idle"]
        if not what.case.memory:  # a meter whose error wanders is one whose offset is not known (docs/uncertainty.md)
            yield "total", drawn.truth_j["total"], energy.total_j, math.nan

    return run_study(what.case, draws, counted, first=first)


Asked = list[tuple[str, float, object, float]]
TIMES = (1, 5, 10, 20)


def repetition_study(draws: int, *, drift_w: float = 0.0, first: int = 0) -> Study:
    """Returns the counts of METHODS 1.6: 10 Hz, k in 1, 5, 10, 20, ten seconds each, in random order, noise 1 %.

    The ideal knows the noise; a drift is a parameter to him as well.
    """
    rows: dict[str, Tally] = defaultdict(Tally)
    shares, ratios = [], []
    for number in range(first, first + draws):
        asked = _repeated(np.random.default_rng((5, number)), drift_w)
        held = 0
        for key, truth, quantity, best in asked:
            if not isinstance(quantity, Estimate):
                rows[key].refused += 1
                continue
            inside = abs(quantity.value - truth) <= quantity.expanded
            rows[key].told += 1
            rows[key].held += inside
            held += inside
            if math.isfinite(best):
                ratios.append(quantity.expanded / best)
        shares.append(held / len(asked))
    name = "in place, 10 Hz, noise 1 %" + (", power drifts" if drift_w else "")
    return Study(name=name, draws=draws, rows=dict(rows), shares=tuple(shares), ratio=float(np.median(ratios)))


def _repeated(rng: np.random.Generator, drift_w: float) -> Asked:
    """Returns what one recording of repetitions says beside the truth and the ideal."""
    duration_s, power_w = layer_schedule()
    noise_w = 0.01 * float((duration_s * power_w).sum() / duration_s.sum())
    slices, edges, powers, lines = [], [0.0, 1.0], [2.0], []
    for place in rng.permutation(duration_s.size * len(TIMES)):
        layer, k = int(place) // len(TIMES), TIMES[int(place) % len(TIMES)]
        pass_s = duration_s.sum() + (k - 1) * duration_s[layer]
        passes = max(int(10.0 / pass_s), 1)
        pass_j = (duration_s * power_w).sum() + (k - 1) * duration_s[layer] * power_w[layer]
        at, long_s = edges[-1], round(passes * pass_s * 1e9) * 1e-9
        middle_s = at + 0.5 * long_s
        name = f"l{layer:02d} x{k} n{passes}"
        slices.append(Slice(name=name, start_ns=round(at * 1e9), end_ns=round((at + long_s) * 1e9)))
        edges += [at + long_s, at + long_s + 0.3]
        powers += [pass_j * passes / long_s + drift_w * middle_s, 2.0]
        line = np.zeros(duration_s.size + 4)
        line[[0, 1 + layer, -3]], line[-2:] = (
            (1.0, k - 1.0, pass_s),
            (middle_s, noise_w * math.sqrt(0.1 * long_s) / passes),
        )
        lines.append(line)
    until = np.concatenate([[0.0], np.cumsum(np.array(powers) * np.diff(edges))])
    stamps = np.arange(int(edges[-1] / 0.1) + 1) * 0.1
    sampled = np.diff(np.interp(stamps, edges, until)) / 0.1 + noise_w * rng.standard_normal(stamps.size - 1)
    trace = build_trace(sampled, period_s=0.1)
    told = map_repetitions(
        [trace], Timeline.from_slices(METER_CLOCK, slices), ClockMap(source=METER_CLOCK, target=METER_CLOCK),
        (describe_trace(trace), MeterErrors()), pattern="{layer} x{k} n{n}",
    )  # fmt: skip
    table = np.array(lines)
    centre_s = float(table[:, -2].mean())
    design = np.column_stack([table[:, :-3], table[:, -3] * (table[:, -2] - centre_s)]) / table[:, -1:]
    norm = np.linalg.norm(design, axis=0)
    ideal = 1.959963984540054 * np.sqrt(np.diag(np.linalg.inv((design / norm).T @ (design / norm)))) / norm
    truth = duration_s * (power_w + drift_w * centre_s)  # what is asked for is that in the middle of the slices
    asked: Asked = [
        (row.key, float(truth[int(row.key[1:])]), row.energy_j, float(ideal[1 + int(row.key[1:])])) for row in told.rows
    ]
    return [*asked, ("pass", float(truth.sum()), told.total_j, math.nan)]


def tracks_study(draws: int, *, first: int = 0) -> Study:
    """Returns the counts of two tracks that are busy at once and share the power equally, each with nested slices.

    The truth is the rule applied to the true power. No ideal: without a rule nobody could tell the tracks apart.
    """
    case = Case(name="two tracks, equal split", runs=25, schedule=LONG, gap_s=0.2)

    def counted(drawn: Drawn) -> Iterable[tuple[str, float, object, float]]:
        rng = np.random.default_rng(round(drawn.truth_j["total"] * 1e9) % 2**31)
        own = list(drawn.timeline)
        end_ns = drawn.trace.end_ns
        begins = np.sort(rng.integers(0, end_ns - 400_000_000, 30))
        other = [
            Slice(name="copy", start_ns=int(at), end_ns=int(at) + int(rng.integers(50, 150)) * 1_000_000, track="dma")
            for at in begins[::2]
        ]
        other = [s for k, s in enumerate(other) if k == 0 or s.start_ns >= other[k - 1].end_ns]
        timeline = Timeline.from_slices(METER_CLOCK, [*own, *other])
        exact_ns = np.rint(drawn.edges_s * 1e9).astype(np.int64)
        keep = np.append(True, np.diff(exact_ns) > 0)
        power_w = drawn.power_w[np.flatnonzero(keep)[1:] - 1]
        exact = build_trace(power_w, edges_ns=exact_ns[keep].tolist(), clock=METER_CLOCK)
        order = np.lexsort((-timeline.end_ns, timeline.start_ns))
        slices = GroupedSlices(
            start_ns=timeline.start_ns[order], end_ns=timeline.end_ns[order], group=timeline.name_index[order],
            groups=len(timeline.names), track=timeline.track_index[order], tracks=2,
        )  # fmt: skip
        truth = sweep_energy(exact, slices, split=Split.EQUAL, backend="numpy")
        clock = ClockMap(source=METER_CLOCK, target=METER_CLOCK)
        energy = map_energy([drawn.trace], timeline, clock, drawn.errors, request=MapRequest())
        for row in energy.rows:
            at = timeline.names.index(row.key)
            yield row.key, float(truth.self_j[at]), row.self_j, math.nan

    return run_study(case, draws, counted, first=first, ideal=False)
