"""What is asked of a recording beyond its map: energy above idle, checks of the source, plans, duty, power split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from joulemap.analysis.checks.cross_check import compare_counter, pair_counters
from joulemap.analysis.checks.idle_baseline import IdleBaseline, above_idle, estimate_idle
from joulemap.analysis.checks.plausible import find_impossible_power, stated_limit_w
from joulemap.analysis.efficiency.drivers import split_trace
from joulemap.analysis.efficiency.figures import duty_average_w
from joulemap.analysis.instruments.accuracy import MeterErrors
from joulemap.analysis.intervals.monte_carlo import MonteCarlo
from joulemap.analysis.mapping.planning import runs_for
from joulemap.analysis.mapping.repetition import map_repetitions
from joulemap.analysis.mapping.sums import describe_traces
from joulemap.analysis.mapping.units_of_work import measure_units
from joulemap.analysis.sampling import TraceFacts
from joulemap.errors import UsageError
from joulemap.estimate import Estimate, Provenance, Quantity, Unavailable
from joulemap.formats.sections.recording_json import RecordingEntry
from joulemap.records.finding import Finding
from joulemap.records.mapping.clock_map import ClockMap
from joulemap.records.mapping.energy_map import EnergyMap, MapRow
from joulemap.trace import EnergyTrace, Timeline
from joulemap.trace.streamed import Trace
from joulemap.workflow.recordings.recording_bundle import RecordingBundle

__all__ = ["Laid", "MapExtras", "WorkRequest", "map_in_place", "measure_extras", "measure_per"]

_SUFFIX = " counter"

_EACH = 256
"""So many rows have an interval above idle each; more share those of nearly equal make-up."""
_GRID = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest:
    """What more the user asks.

    Args:
        half_width: wanted relative half-width of every row, > 0; None for no plan.
        in_place: pattern of slices that repeat a layer in place; empty for a map of slices.
        ops: operations of one unit of work, as he counts them; None when not stated.
        duty_s: period in which one unit of work is done and the rest is idle, s; None when not asked.
    """

    half_width: float | None = None
    in_place: str = ""
    ops: float | None = None
    duty_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laid:
    """A timeline over traces with the meter's errors."""

    traces: tuple[Trace, ...]
    timeline: Timeline | None
    clock: ClockMap | None
    meter: MeterErrors

    @property
    def known(self) -> tuple[TraceFacts, MeterErrors]:
        """The traces and their meter as a budget takes them."""
        return describe_traces(self.traces), self.meter

    def work(self, flag: str) -> tuple[Timeline, ClockMap]:
        """Returns timeline and clock.

        Raises:
            UsageError: there is none, and the flag needs one.
        """
        if self.timeline is None or self.clock is None:
            raise UsageError(f"{flag}: there is no timeline", hint="import one", slug="flags-contradict")
        return self.timeline, self.clock


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapExtras:
    """What was found.

    Args:
        idle: power without work; None without a timeline.
        row: further keys of a row of the map.
        document: further keys of the document.
        findings: of the checks.
    """

    idle: IdleBaseline | None
    row: Callable[[MapRow], dict[str, object]]
    document: dict[str, object] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def map_in_place(laid: Laid, work: WorkRequest) -> EnergyMap:
    """Returns the map of layers that slices repeat in place.

    Raises:
        UsageError: there is no timeline.
        InputError: the pattern lacks a part, or fits no slice.
    """
    timeline, clock = laid.work(f"--in-place {work.in_place}")
    return map_repetitions(laid.traces, timeline, clock, laid.known, pattern=work.in_place)


def measure_extras(
    source: tuple[RecordingBundle, RecordingEntry], laid: Laid, energy: EnergyMap, work: WorkRequest
) -> MapExtras:
    """Returns what goes beside the map.

    Args:
        source: recordings of the bundle, and the one of the traces.
        laid: the traces and their timeline.
        energy: their map.
        work: what is asked.
    """
    (recordings, entry), (facts, meter) = source, laid.known
    lanes = recordings.load_lanes()
    findings: list[Finding] = []
    for trace in laid.traces:
        own = facts if len(laid.traces) == 1 else describe_traces([trace])
        findings += find_impossible_power(trace, own, stated_limit_w(trace, lanes))
    findings += _check_counters(recordings, entry, laid)
    idle: IdleBaseline | None = None
    more: list[Callable[[MapRow], dict[str, object]]] = []
    document: dict[str, object] = {}
    if laid.timeline is not None and laid.clock is not None and len(laid.timeline) and not energy.per:
        idle = estimate_idle(laid.traces, laid.timeline, laid.clock, (facts, meter))
        findings += idle.findings
        document["idle"] = idle.to_json()
        above = partial(above_idle, baseline=idle, errors=meter)
        document["energy_above_idle_j"] = above(energy.total_j, facts.seen_s).to_json()
        draws = MonteCarlo(grid=_GRID if len(energy.rows) > _EACH else 0)
        more.append(
            lambda row: {"energy_above_idle_j": above(row.energy_j, row.duration_s, monte_carlo=draws).to_json()}
        )
    split = split_trace(laid.traces[0], lanes) if len(laid.traces) == 1 and lanes else None
    if split is not None:
        document["power_split"] = split.to_json()
    if work.half_width is not None:
        more.append(partial(_planned, half_width=work.half_width))
        document["half_width"] = work.half_width
    row = partial(_joined, more)
    return MapExtras(idle=idle, row=row, document=document, findings=tuple(findings))


def _planned(row: MapRow, *, half_width: float) -> dict[str, object]:
    return {"runs_needed": runs_for(row, half_width)}


def _joined(parts: Sequence[Callable[[MapRow], dict[str, object]]], row: MapRow) -> dict[str, object]:
    return {key: value for part in parts for key, value in part(row).items()}


def measure_per(laid: Laid, extras: MapExtras, name: str, work: WorkRequest) -> dict[str, object]:
    """Returns the figures per unit of work, with the average over a duty cycle where one is stated.

    Raises:
        UsageError: there is no timeline.
        InputError: no slice has that name or kind.
    """
    timeline, clock = laid.work(f"--per {name}")
    told = measure_units(laid.traces, timeline, clock, laid.known, name=name, idle=extras.idle, ops=work.ops)
    if work.duty_s is None:
        return told
    latency_s = told["latency_s"]
    sleep: Quantity = Unavailable(reason="idle_not_recorded") if extras.idle is None else extras.idle.power_w
    each = told["energy_per_unit_j"]
    unknown = each.get("reason") if isinstance(each, dict) else None
    average: Quantity = Unavailable(reason=str(unknown or "slices_outside_trace"))
    if isinstance(each, dict) and each["value"] is not None and isinstance(latency_s, float):
        energy = Estimate(
            value=each["value"],
            std=each["std"],
            k=each["k"],
            dof=each["dof"] or float("inf"),
            provenance=Provenance(each["provenance"]),
            boundary=laid.traces[0].channel.boundary,
        )
        average = duty_average_w(energy, latency_s, sleep, work.duty_s)
    return told | {"duty_period_s": work.duty_s, "duty_average_w": average.to_json()}


def _check_counters(recordings: RecordingBundle, entry: RecordingEntry, laid: Laid) -> list[Finding]:
    """Returns the verdicts on power against counter of the mapped devices."""
    chosen = {trace.channel.name.removesuffix(_SUFFIX) for trace in laid.traces}
    channels = {trace.channel: trace.name for trace in entry.traces}
    wanted: list[EnergyTrace] = []
    for device in sorted(chosen):
        if device in channels and device + _SUFFIX in channels:
            wanted += [recordings.load_trace(channels[device]), recordings.load_trace(channels[device + _SUFFIX])]
    verdicts = (compare_counter(*pair)[1] for pair in pair_counters(wanted))
    return [verdict for verdict in verdicts if verdict is not None]
