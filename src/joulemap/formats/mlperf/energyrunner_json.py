"""Results of the MLPerf Tiny v1.3 runner: joules per sample and time stamps that are sample indices.

References:
    FORMATS 2, "MLPerf Tiny v1.3 runner": a genuine results file, five published trials reproduced.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, source_file, uniform_trace
from joulemap.formats.ground.text import read_json
from joulemap.records.published import EnergyrunnerTrial, EnergyrunnerTrials
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Channel, Clock, ClockKind, EdgeDirection, KernelKind, Marker, SensorKernel, Slice, Timeline

__all__ = ["EnergyRunnerJsonReader"]

_RATE_HZ: Final = 1000.0
_LIMIT_B: Final = 1 << 28


class EnergyRunnerJsonReader:
    """Reads the JSON list of trials that the v1.3 runner writes in energy mode."""

    name = "energyrunner-json"
    certainty = Certainty.RECORDING
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a list of objects with ``power``, ``samples`` and ``infer``."""
        del path
        text = head.lstrip(b"\xef\xbb\xbf \r\n\t")
        keys = (b'"power"', b'"samples"', b'"infer"')
        return (
            1.0
            if text.startswith(b"[") and text[1:64].lstrip().startswith(b"{") and all(k in text for k in keys)
            else 0.0
        )

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per trial, its window, and what the published rule needs.

        The samples are joules per sample although a ``voltage`` stands beside them: it is not multiplied in.

        Raises:
            FormatError: no JSON, or no trial with samples.
        """
        log = FindingLog()
        boundary = boundary_of(options.boundary, Boundary.BOARD)
        trials, traces, timelines, markers = [], [], [], []
        rate_hz = options.rate_hz or _RATE_HZ
        for number, entry in enumerate(_document(path)):
            trial = _trial(entry, number, log)
            if trial is None:
                continue
            clock = Clock(name=f"trial {number}", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
            channel = Channel(
                name=f"trial {number}",
                boundary=boundary,
                provenance=Provenance.MEASURED_SAMPLED,
                kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1 / rate_hz),
            )
            traces.append(
                uniform_trace(
                    _power_w(trial, rate_hz),
                    channel=channel,
                    clock=clock,
                    start_ns=0,
                    period_s=1 / rate_hz,
                    log=log,
                )
            )
            start_ns, end_ns = (round(index * 1e9 / rate_hz) for index in (trial.begin, trial.end))
            window = Slice(name=f"trial {number} window", start_ns=start_ns, end_ns=end_ns, track="runner", kind="run")
            timelines.append(Timeline.from_slices(clock, [window]))
            marks = tuple(
                Marker(time_ns=t_ns, name="timestamp", direction=EdgeDirection.FALL) for t_ns in (start_ns, end_ns)
            )
            markers.append(MarkerTrack(name=f"trial {number} timestamps", clock=clock, markers=marks))
            trials.append(trial)
        if not trials:
            raise FormatError(
                f"{path.name}: no trial holds power samples",
                hint="The runner writes them in energy mode (mode 'e') only.",
                slug="energyrunner-no-power",
            )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=tuple(traces),
            timelines=tuple(timelines),
            markers=tuple(markers),
            metadata={"trials": str(len(trials)), "rate_hz": f"{rate_hz:g}"},
            findings=log.findings(),
            published=EnergyrunnerTrials(trials=tuple(trials), rate_hz=rate_hz),
        )


def _document(path: Path) -> list[Any]:
    document = read_json(path, _LIMIT_B)
    if not isinstance(document, list):
        raise FormatError(
            f"{path.name} is no list of trials", hint="Give the runner's results.json.", slug="json-damaged"
        )
    return document


def _trial(entry: Any, number: int, log: FindingLog) -> EnergyrunnerTrial | None:
    span = f"trial {number}"
    power = entry.get("power") if isinstance(entry, dict) else None
    samples = power.get("samples") if isinstance(power, dict) else None
    if not isinstance(power, dict) or not isinstance(samples, list) or not samples:
        log.add("trial_without_power", "the trial holds no power samples and is left out", span)
        return None
    energy_j = _samples(samples, number)
    stamps = power.get("timestamps")
    indices = [
        pair[1]
        for pair in (stamps if isinstance(stamps, list) else [])
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], int) and not isinstance(pair[1], bool)
    ]
    infer = entry.get("infer")
    iterations = infer.get("iterations") if isinstance(infer, dict) else None
    if len(indices) < 2 or not 0 <= indices[0] < indices[1] <= energy_j.size:
        log.add("too_few_timestamps", f"the indices {indices[:4]} make no window of {energy_j.size} samples", span)
        return None
    if not isinstance(iterations, int) or isinstance(iterations, bool) or iterations <= 0:
        log.add("iterations_unstated", "the trial does not say how many inferences it holds and is left out", span)
        return None
    if len(indices) > 2:
        log.add("extra_timestamps", f"{len(indices)} time stamps: the window is between the first two", span)
    return EnergyrunnerTrial(energy_j=energy_j, begin=indices[0], end=indices[1], iterations=iterations)


def _samples(samples: list[Any], number: int) -> NDArray[np.float64]:
    for index, value in enumerate(samples):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise FormatError(
                f"trial {number}, sample {index} is {value!r}", hint="Samples are joules.", slug="json-damaged"
            )
    try:
        return np.array([math.nan if value is None else value for value in samples], np.float64)
    except OverflowError as error:
        raise FormatError(f"trial {number}: {error}", hint="Samples are joules.", slug="json-damaged") from error


def _power_w(trial: EnergyrunnerTrial, rate_hz: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is a gap
        power_w: NDArray[np.float64] = trial.energy_j * rate_hz
    return power_w
