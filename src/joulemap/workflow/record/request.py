"""What is to be recorded, and what came of each run of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from joulemap.analysis.recorded.work import CountedUnit
from joulemap.meters.live.sampling.plan import Priority
from joulemap.records.finding import Finding
from joulemap.records.recording import Recording
from joulemap.workflow.record.command import CommandEnd

__all__ = ["LiveLine", "RecordRequest", "Recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """What the user asks for.

    Args:
        command: program and arguments.
        output: bundle to write.
        meters: names as written; empty for every usable one.
        rate_hz: readings per second.
        repeats: runs of the command.
        baseline_s: time at rest before the first and after the last run, s; 0 for none.
        overhead: run the command as often again without sampling, in alternation.
        priority: of the sampling process.
        force: replace a bundle that is there.
        keep: leave the capture beside the bundle.
        server: address of the metrics of a server that the command loads; empty for none.
        counted: metric of each unit of its work; empty for what is known.
        headline: domains whose sum is the headline, or ``sum`` alone; empty for those of the widest boundary.
    """

    command: tuple[str, ...]
    output: Path
    meters: tuple[str, ...] = ()
    rate_hz: float = 10.0
    repeats: int = 1
    baseline_s: float = 0.0
    overhead: bool = False
    priority: Priority = Priority.NORMAL
    force: bool = False
    keep: bool = False
    headline: tuple[str, ...] = ()
    server: str = ""
    counted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLine:
    """What is going on, for whoever shows it.

    Args:
        phase: ``baseline`` or ``run``.
        run: number of the run, from 1.
        runs: of them.
        elapsed_s: since the phase began.
        power_w: by domain, now; empty when nothing is known yet.
        energy_j: by domain since the phase began; counters only where they moved.
    """

    phase: str
    run: int
    runs: int
    elapsed_s: float
    power_w: dict[str, float] = field(default_factory=dict)
    energy_j: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """What was recorded.

    Args:
        recording: of the meters.
        ends: of the sampled runs.
        plain: of the runs without sampling, in the order of their partners.
        baselines: begin and end, ns.
        findings: of the command and of the recording as a whole.
        headline: as asked for.
        through: the recording with what counters tell across its pauses; None when it has none.
        server: address of the server's metrics; empty for none.
        units: what it counted.
    """

    recording: Recording
    ends: tuple[CommandEnd, ...]
    plain: tuple[CommandEnd, ...] = ()
    baselines: tuple[tuple[int, int], ...] = ()
    findings: tuple[Finding, ...] = ()
    headline: tuple[str, ...] = ()
    through: Recording | None = None
    server: str = ""
    units: tuple[CountedUnit, ...] = ()
