"""MLPerf Inference power submissions: one folder with the power log, the run's log and both hosts' clocks.

References:
    FORMATS 2 and 3 ("MLPerf spl.txt", "mlperf_log_detail.txt", "client.json / server.json"): nine genuine runs of
    v1.1 to v5.1; mlcommons/power-dev ``check.py`` for the meaning of ``timezone`` and ``phases``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, TimedColumns, boundary_of, sources_of, timed_trace
from joulemap.formats.ground.text import HEAD_B, head_lines, read_json, read_lines
from joulemap.formats.ground.values import decimal_ns, parse_stamp
from joulemap.formats.mlperf.spl import SplColumns, is_spl_line, read_spl
from joulemap.records.finding import Severity
from joulemap.records.published import MlperfRun
from joulemap.records.recording import Lane, MarkerTrack, Recording, StatedTotal
from joulemap.trace import (
    Channel,
    Clock,
    ClockKind,
    EdgeDirection,
    EnergyTrace,
    KernelKind,
    Marker,
    SensorKernel,
    Slice,
    Timeline,
)

__all__ = ["MlperfInferenceReader"]

_DETAIL_PREFIX: Final = ":::MLLOG "
_SKEW_ALLOWED_S: Final = 0.5
"""Skew between client and server that the submission checker tolerates, s (mlcommons/power-dev check.py)."""

_PHASES: Final = ("start", "started", "stop", "stopped")
_LANES: Final = {"Volts": ("volts", "V"), "Amps": ("amps", "A"), "PF": ("power factor", "1")}


@dataclass(slots=True)
class _Detail:
    """What the run's own log says: the first value of each key, with its line."""

    values: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        value = self.values.get(key, (None, 0))[0]
        return value if isinstance(value, str) else None

    def count(self, key: str) -> int | None:
        value = self.values.get(key, (None, 0))[0]
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@dataclass(frozen=True, slots=True)
class _Files:
    root: Path
    spl: Path
    detail: Path | None
    client: Path | None
    server: Path | None

    @property
    def all(self) -> list[Path]:
        return [path for path in (self.spl, self.detail, self.client, self.server) if path is not None]


def _first(*candidates: Path) -> Path | None:
    return next((path for path in candidates if path.is_file()), None)


def _find(path: Path) -> _Files | None:
    """Returns the files of one run, in the layouts of a submission, of power-dev's output, or of a run folder."""
    if path.is_file():
        return _Files(path.parent, path, None, None, None)
    spl = _first(path / "run_1" / "spl.txt", path / "spl.txt")
    if spl is None:
        return None
    return _Files(
        path,
        spl,
        _first(spl.parent / "mlperf_log_detail.txt"),
        _first(path / "power" / "client.json", path / "client.json"),
        _first(path / "power" / "server.json", path / "server.json"),
    )


class MlperfInferenceReader:
    """Reads ``spl.txt`` alone, or a folder with ``run_1/spl.txt``, ``mlperf_log_detail.txt`` and ``power/*.json``."""

    name = "mlperf-inference"
    certainty = Certainty.RECORDING
    folders = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a line of PTDaemon, or a folder that holds such a log where a submission has it."""
        if not head and path.is_dir():
            files = _find(path)
            if files is None:
                return 0.0
            with files.spl.open("rb") as handle:
                head = handle.read(HEAD_B)
        return 1.0 if any(is_spl_line(line) for line in head_lines(head, 3)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the total and its channels, the window, both hosts' moments, and what the published rule needs.

        Raises:
            InputError: no ``spl.txt`` in the folder.
            FormatError: it holds no power samples.
        """
        files = _find(path)
        if files is None:
            raise InputError(
                f"{path.name} holds no spl.txt, neither itself nor in run_1",
                hint="Give the folder of one performance run of the submission.",
                slug="recording-incomplete",
            )
        log = FindingLog()
        columns = read_spl(files.spl, log)
        detail = _read_detail(files.detail, log) if files.detail else _Detail()
        hosts = {
            role: _read_host(host, log)
            for role, host in (("client", files.client), ("server", files.server))
            if host is not None
        }
        _check_skew(hosts, log)
        run = _published(columns, detail, log)
        clock, shift_ns = _power_clock(run, options, log)
        traces = _traces(columns, (clock, shift_ns), boundary_of(options.boundary, Boundary.WALL), log)
        _check_power(columns, log)
        if run is None and files.detail is not None:
            log.add("window_missing", f"{files.detail.name} has no power_begin and power_end: the whole log counts")
        return Recording(
            format=self.name,
            sources=sources_of(files.all, files.root),
            traces=traces,
            timelines=_timelines(run, clock),
            lanes=_lanes(columns, clock, shift_ns),
            markers=_host_markers(hosts),
            totals=_totals(detail),
            overlaps=tuple((trace.channel.name, "total") for trace in traces[1:]),
            metadata=_metadata(columns, detail, hosts),
            findings=log.findings(),
            published=run,
        )


def _read_detail(path: Path, log: FindingLog) -> _Detail:
    detail = _Detail()
    broken = 0
    for number, text in read_lines(path):
        if not text.startswith(_DETAIL_PREFIX):
            continue
        try:
            entry = json.loads(text[len(_DETAIL_PREFIX) :])
            detail.values.setdefault(str(entry["key"]), (entry["value"], number))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            broken += 1
            log.add("line_unreadable", f"{path.name}: the line is left out ({error})", f"line {number}")
    return detail


def _read_host(path: Path, log: FindingLog) -> dict[str, Any]:
    """Returns a host's session record; empty with a finding when it cannot be read."""
    try:
        document = read_json(path)
    except FormatError as error:
        log.add("host_record_unreadable", f"{path.name} is left out: {error}", path.name)
        return {}
    if not isinstance(document, dict):
        log.add("host_record_unreadable", f"{path.name} is left out: it is no object", path.name)
        return {}
    return document


def _phases(host: dict[str, Any], phase: str) -> list[tuple[float, float]]:
    """Returns the moments (wall s, monotonic s) of one phase on one host; empty when they are not there."""
    raw = host.get("phases")
    pairs = raw.get(phase) if isinstance(raw, dict) else None
    if not isinstance(pairs, list):
        return []
    moments = []
    for pair in pairs[: len(_PHASES)]:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(v, int | float) for v in pair)):
            return []
        if not all(-4e9 < moment < 4e9 for moment in pair):
            return []
        moments.append((float(pair[0]), float(pair[1])))
    return moments


def _check_skew(hosts: dict[str, dict[str, Any]], log: FindingLog) -> None:
    client, server = (_phases(hosts.get(role, {}), "testing") for role in ("client", "server"))
    skew_s = [a[0] - b[0] for a, b in zip(client, server, strict=False)]
    if not skew_s:
        return
    drift_s = max(skew_s) - min(skew_s)
    wide = max(map(abs, skew_s)) > _SKEW_ALLOWED_S
    if wide or max(map(abs, skew_s)) > 0.01:
        log.add(
            "clock_skew",
            f"client minus server clock is {skew_s[0]:+.4f} s at the first of {len(skew_s)} moments and "
            f"{skew_s[-1]:+.4f} s at the last ({drift_s:.4f} s of spread); the checker tolerates {_SKEW_ALLOWED_S} s",
            "testing",
            Severity.WARNING if wide else Severity.INFO,
        )


def _published(columns: SplColumns, detail: _Detail, log: FindingLog) -> MlperfRun | None:
    begin, end = detail.text("power_begin"), detail.text("power_end")
    if begin is None or end is None:
        return None
    try:
        begin_ns, end_ns = parse_stamp(begin).ns, parse_stamp(end).ns
    except ValueError as error:
        log.add("window_missing", f"power_begin or power_end is no time stamp ({error}): the whole log counts")
        return None
    if end_ns <= begin_ns:
        log.add("window_missing", f"power_end {end} is not after power_begin {begin}: the whole log counts")
        return None
    time_ns = np.array(columns.time_ns, np.int64)
    inside = int(((time_ns >= begin_ns) & (time_ns <= end_ns)).sum())
    if not inside and time_ns.size:
        apart_s = (int(time_ns[0]) - begin_ns) * 1e-9
        log.add(
            "window_outside",
            f"no power sample lies between power_begin and power_end; the log starts {apart_s:+.0f} s from the window. "
            "A whole number of hours means that one of the two is in local time",
            severity=Severity.ERROR,
        )
    return MlperfRun(
        time_ns=time_ns,
        power_w=np.array(columns.total["Watts"], np.float64),
        begin_ns=begin_ns,
        end_ns=end_ns,
        scenario=detail.text("effective_scenario") or "",
        queries=detail.count("result_query_count"),
        samples_per_query=detail.count("effective_samples_per_query"),
    )


def _power_clock(run: MlperfRun | None, options: ReadOptions, log: FindingLog) -> tuple[Clock, int]:
    """Returns the clock of the log and what to subtract from its stamps, ns.

    ``power_begin`` is UTC from v1.1 on and the log is compared with it as written, so a run with that window is UTC.
    """
    if run is not None:
        return Clock(name="ptdaemon", kind=ClockKind.UTC, resolution_ns=1e6), 0
    if options.utc_offset_s is not None:
        return Clock(name="ptdaemon", kind=ClockKind.UTC, resolution_ns=1e6), round(options.utc_offset_s * 1e9)
    log.add(
        "zone_unstated",
        "the log alone does not say its zone (UTC from v1.1 on, local before): its clock is kept as local",
        severity=Severity.INFO,
    )
    return Clock(name="ptdaemon", kind=ClockKind.LOCAL, resolution_ns=1e6), 0


def _traces(
    columns: SplColumns, base: tuple[Clock, int], boundary: Boundary, log: FindingLog
) -> tuple[EnergyTrace, ...]:
    clock, shift_ns = base
    time_ns = np.array(columns.time_ns, np.int64) - shift_ns
    named = {"total": columns.total["Watts"]} | {label.lower(): power for label, power in columns.channels.items()}
    traces = []
    for name, power_w in named.items():
        channel = Channel(
            name=name,
            boundary=boundary,
            provenance=Provenance.MEASURED_SAMPLED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1.0),
        )
        quiet = log if name == "total" else FindingLog()  # the channels share the stamps of the total
        traces.append(
            timed_trace(
                TimedColumns(time_ns=time_ns, value=np.array(power_w), line=columns.line),
                channel=channel,
                clock=clock,
                log=quiet,
            )
        )
    return tuple(traces)


def _check_power(columns: SplColumns, log: FindingLog) -> None:
    total_w = np.array(columns.total["Watts"])
    negative = total_w <= 0
    if negative.any():
        row = int(np.argmax(negative))
        log.add(
            "negative_power",
            f"{int(negative.sum())} of {total_w.size} samples are at or below 0 W (least {total_w.min():.6g} W): "
            "kept here; MLPerf's published mean leaves them out",
            f"line {columns.line[row]}",
        )
    if columns.channels:
        log.add(
            "channel_keys_repeat",
            f"each line repeats its keys for {len(columns.channels)} channels: the first Watts is the total, "
            "the channels are inside it",
            f"line {columns.line[0]}",
            Severity.INFO,
        )
        parts_w = np.nansum(np.array([np.array(power) for power in columns.channels.values()]), axis=0)
        apart_w = np.abs(parts_w - total_w)
        wrong = apart_w > 0.01 * np.abs(total_w) + 0.2
        if wrong.any():
            row = int(np.argmax(wrong))
            log.add(
                "channels_disagree",
                f"the channels add up to {parts_w[row]:.6g} W where the total says {total_w[row]:.6g} W "
                f"({int(wrong.sum())} lines)",
                f"line {columns.line[row]}",
            )


def _timelines(run: MlperfRun | None, clock: Clock) -> tuple[Timeline, ...]:
    if run is None:
        return ()
    window = Slice(name="measured run", start_ns=run.begin_ns, end_ns=run.end_ns, track="mlperf", kind="run")
    return (Timeline.from_slices(clock, [window]),)


def _lanes(columns: SplColumns, clock: Clock, shift_ns: int) -> tuple[Lane, ...]:
    time_ns = np.array(columns.time_ns, np.int64) - shift_ns
    order = np.argsort(time_ns, kind="stable")
    lanes = []
    for key, (name, unit) in _LANES.items():
        value = np.array(columns.total[key])
        if np.isfinite(value).any():
            lanes.append(Lane(name=name, unit=unit, clock=clock, time_ns=time_ns[order], value=value[order]))
    return tuple(lanes)


def _host_markers(hosts: dict[str, dict[str, Any]]) -> tuple[MarkerTrack, ...]:
    tracks = []
    for role, host in hosts.items():
        for kind, column in ((ClockKind.UTC, 0), (ClockKind.MONOTONIC, 1)):
            moments = [
                (f"{phase} {_PHASES[k]}", pair[column])
                for phase in ("ranging", "testing")
                for k, pair in enumerate(_phases(host, phase))
            ]
            markers = tuple(
                Marker(time_ns=decimal_ns(repr(moment_s)), name=name, direction=EdgeDirection.NONE)
                for name, moment_s in sorted(moments, key=lambda moment: moment[1])
            )
            if markers:
                clock = Clock(name=f"{role} {'wall' if column == 0 else 'monotonic'}", kind=kind, resolution_ns=100.0)
                tracks.append(MarkerTrack(name=f"{role} phases", clock=clock, markers=markers))
    return tuple(tracks)


def _totals(detail: _Detail) -> tuple[StatedTotal, ...]:
    totals = []
    for key, name in (
        ("result_query_count", "queries"),
        ("effective_samples_per_query", "samples_per_query"),
        ("result_samples_per_second", "samples_per_s"),
        ("result_mean_latency_ns", "mean_latency_ns"),
    ):
        value, line = detail.values.get(key, (None, 0))
        if isinstance(value, int | float) and not isinstance(value, bool) and -1e18 < value < 1e18:
            span = f"mlperf_log_detail.txt line {line}"
            totals.append(StatedTotal(key=name, value=float(value), provenance=Provenance.MEASURED_COUNTER, span=span))
    return tuple(totals)


def _metadata(columns: SplColumns, detail: _Detail, hosts: dict[str, dict[str, Any]]) -> dict[str, str]:
    facts = {"samples": str(len(columns.time_ns)), "channels": str(len(columns.channels))}
    if marks := [mark for mark in columns.marks if mark]:
        facts["marks"] = ", ".join(marks[:8])
    for key in ("effective_scenario", "effective_test_mode", "result_validity", "power_begin", "power_end"):
        if (text := detail.text(key)) is not None:
            facts[key] = text
    if (text := detail.text("test_datetime")) is not None:
        facts["test_datetime"] = f"{text} (local time in spite of the Z)"
    for role, host in hosts.items():
        west_s = host.get("timezone")
        if isinstance(west_s, int | float) and not isinstance(west_s, bool) and abs(west_s) <= 86400:
            facts[f"{role}_zone"] = f"{west_s:g} s west of UTC"
        skew = [a[0] - a[1] for a in _phases(host, "testing")]
        if skew:
            facts[f"{role}_wall_minus_monotonic_s"] = f"{skew[0]:.6f}"
    client, server = (_phases(hosts.get(role, {}), "testing") for role in ("client", "server"))
    skews = [f"{a[0] - b[0]:+.6f}" for a, b in zip(client, server, strict=False)]
    if skews:
        facts["client_minus_server_s"] = " ".join(skews)
    return facts
