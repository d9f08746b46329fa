"""EEMBC EnergyRunner captures of MLPerf Tiny (v0.5 to v1.2): microjoules per sample, time stamps and the host's log.

References:
    FORMATS 2, "MLPerf Tiny, EEMBC EnergyRunner": 30 published windows of six genuine runs reproduced.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, sources_of, uniform_trace
from joulemap.formats.ground.text import read_json, read_lines
from joulemap.formats.ground.values import widen
from joulemap.records.finding import Severity
from joulemap.records.published import EnergyrunnerRun
from joulemap.records.recording import MarkerTrack, Recording
from joulemap.trace import Channel, Clock, ClockKind, EdgeDirection, KernelKind, Marker, SensorKernel, Slice, Timeline

__all__ = ["EnergyRunnerReader"]

_MAGIC: Final = 0xF1
_HEAD_B: Final = 5
_ENERGY: Final = "trace1-energy.bin"
_STAMPS: Final = "trace1-timestamps.json"
_CONFIG: Final = re.compile(r"m-bm-cfg-name\[([^\]]*)\]-key\[([^\]]*)\]-val\[([^\]]*)\]")
_PLAUSIBLE_UJ: Final = 1e6  # a joule per sample: above it the bytes are no energy


class EnergyRunnerReader:
    """Reads ``trace1-energy.bin`` alone or a session folder with its time stamps and log."""

    name = "energyrunner"
    certainty = Certainty.RECORDING
    folders = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for the byte 0xF1, a plausible rate and plausible energies after it."""
        if not head and path.is_dir():
            energy = path / _ENERGY
            if not energy.is_file():
                return 0.0
            with energy.open("rb") as handle:
                head = handle.read(4096)
        return 0.9 if _plausible(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the trace, its windows as slices, and what the published rule needs.

        Raises:
            InputError: the folder holds no capture.
            FormatError: the capture has no head or no sample, or its time stamps break.
        """
        folder = path if path.is_dir() else path.parent
        energy = path / _ENERGY if path.is_dir() else path
        if not energy.is_file():
            raise InputError(
                f"{path.name} holds no {_ENERGY}", hint="Give the session folder.", slug="recording-incomplete"
            )
        log = FindingLog()
        rate_hz, energy_uj = _read_energy(energy, log)
        whole = path.is_dir()
        stamps_s = _read_stamps(folder / _STAMPS, log) if whole and (folder / _STAMPS).is_file() else ()
        config = _read_config(folder / "log.txt") if whole and (folder / "log.txt").is_file() else {}
        _check_zeros(energy_uj, log)
        if whole and len(stamps_s) < 3:
            log.add(
                "too_few_timestamps",
                f"{len(stamps_s)} time stamps make no window: was the performance firmware run in energy mode?",
                _STAMPS,
                Severity.ERROR,
            )
        clock = Clock(name="energy monitor", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
        channel = Channel(
            name="dut",
            boundary=boundary_of(options.boundary, Boundary.BOARD),
            provenance=Provenance.MEASURED_SAMPLED,
            kernel=SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=1 / rate_hz),
        )
        trace = uniform_trace(
            widen(energy_uj) * (1e-6 * rate_hz),
            channel=channel,
            clock=clock,
            start_ns=0,
            period_s=1 / rate_hz,
            log=log,
        )
        iterations = _iterations(config, log) if whole else None
        names = [energy] + [folder / name for name in (_STAMPS, "log.txt") if whole and (folder / name).is_file()]
        return Recording(
            format=self.name,
            sources=sources_of(names, folder),
            traces=(trace,),
            timelines=_windows(stamps_s, clock),
            markers=_marks(stamps_s, clock),
            metadata={"rate_hz": f"{rate_hz:g}"} | {f"config_{key}": value for key, value in config.items()},
            findings=log.findings(),
            published=EnergyrunnerRun(energy_uj=energy_uj, rate_hz=rate_hz, stamps_s=stamps_s, iterations=iterations)
            if len(stamps_s) >= 3
            else None,
        )


def _plausible(head: bytes) -> bool:
    if len(head) < _HEAD_B + 4 or head[0] != _MAGIC:
        return False
    (rate_hz,) = struct.unpack_from("<f", head, 1)
    if not (math.isfinite(rate_hz) and 1 <= rate_hz <= 10e6):
        return False
    body = head[_HEAD_B : _HEAD_B + 4 * min(256, (len(head) - _HEAD_B) // 4)]
    sample = np.frombuffer(body, "<f4")
    return bool(np.mean(np.isfinite(sample) & (np.abs(np.nan_to_num(sample)) < _PLAUSIBLE_UJ)) > 0.9)


def _read_energy(path: Path, log: FindingLog) -> tuple[float, NDArray[np.float32]]:
    raw = path.read_bytes()
    if len(raw) < _HEAD_B + 4 or raw[0] != _MAGIC:
        raise FormatError(
            f"{path.name}: no EnergyRunner capture (byte 0 is not 0xF1, or there is no sample)",
            hint="The capture begins with 0xF1 and a float32 sample rate.",
            slug="energyrunner-head",
        )
    (rate_hz,) = struct.unpack_from("<f", raw, 1)
    if not (math.isfinite(rate_hz) and 1e-3 <= rate_hz <= 10e6):
        raise FormatError(
            f"{path.name}, offset 1: a sample rate of {rate_hz} Hz is impossible",
            hint="The head of the capture is damaged.",
            slug="rate-impossible",
        )
    tail = (len(raw) - _HEAD_B) % 4
    if tail:
        log.add("tail_cut", f"{path.name} ends inside a sample: {tail} bytes are left out", f"offset {len(raw) - tail}")
    return rate_hz, np.frombuffer(raw, "<f4", offset=_HEAD_B, count=(len(raw) - _HEAD_B) // 4).copy()


def _check_zeros(energy_uj: NDArray[np.float32], log: FindingLog) -> None:
    """Says when every second (or third) sample is 0: a supply that sends extra samples stretches the trace."""
    zero = energy_uj == 0
    if energy_uj.size < 20 or not 0.2 <= zero.mean() <= 0.6:
        return
    single = zero[1:-1] & ~zero[:-2] & ~zero[2:]
    if single.sum() > 0.9 * zero.sum():
        share = float(zero.mean())
        log.add(
            "alternate_zeros",
            f"{share:.0%} of the samples are single zeros between others, as a supply writes that sends extra samples: "
            f"the time axis is stretched {1 / (1 - share):.2f} times and energy per time too low",
            severity=Severity.ERROR,
        )


def _read_stamps(path: Path, log: FindingLog) -> tuple[float, ...]:
    document = read_json(path, 1 << 22)
    good = isinstance(document, list) and all(
        isinstance(stamp, int | float) and not isinstance(stamp, bool) and -1e9 < stamp < 1e9 for stamp in document
    )
    if not good:
        raise FormatError(
            f"{path.name} is no list of seconds",
            hint="The file is a JSON list: start and stop of each window alternate.",
            slug="energyrunner-stamps",
        )
    stamps_s = tuple(map(float, document))
    if any(b < a for a, b in itertools.pairwise(stamps_s)):
        log.add("backward_stamp", f"the stamps of {path.name} are not in order of time", path.name, Severity.ERROR)
    return stamps_s


def _read_config(path: Path) -> dict[str, str]:
    """Returns the last configuration of the run that the log shows, by key."""
    config: dict[str, str] = {}
    for _, text in read_lines(path):
        if "m-bm-cfg" in text and (found := _CONFIG.search(text)) and len(config) < 64:
            config[found[2]] = found[3]
    return config


def _iterations(config: dict[str, str], log: FindingLog) -> int | None:
    text = config.get("iterInfer", "")
    if text.isascii() and text.isdigit() and int(text[:9]) > 0:
        return int(text[:9])
    log.add(
        "iterations_unstated", "no log says how many inferences a window holds: energy per inference is unavailable"
    )
    return None


def _windows(stamps_s: tuple[float, ...], clock: Clock) -> tuple[Timeline, ...]:
    pairs = zip(stamps_s[1::2], stamps_s[2::2], strict=False)
    slices = [
        Slice(
            name=f"window {2 * (k + 1)}",
            start_ns=round(start_s * 1e9),
            end_ns=round(stop_s * 1e9),
            track="energyrunner",
            kind="run",
        )
        for k, (start_s, stop_s) in enumerate(pairs)
        if stop_s >= start_s
    ]
    return (Timeline.from_slices(clock, slices),) if slices else ()


def _marks(stamps_s: tuple[float, ...], clock: Clock) -> tuple[MarkerTrack, ...]:
    markers = tuple(
        Marker(time_ns=round(stamp_s * 1e9), name="timestamp", direction=EdgeDirection.FALL)
        for stamp_s in sorted(stamps_s)
    )
    return (MarkerTrack(name="timestamp", clock=clock, markers=markers),) if markers else ()
