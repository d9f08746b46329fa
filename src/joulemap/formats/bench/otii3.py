"""Otii 3 projects: float32 samples beside a description; the history of undone edits is never read.

References:
    PyPI otiio 0.1.1 ``_layout.py`` and ``model.py``, project format 17 (FORMATS_MORE, "Otii 3 project").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError
from joulemap.estimate import Boundary
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import (
    FindingLog,
    boundary_of,
    sampled_channel,
    sources_of,
    uniform_trace,
    voltage_of,
)
from joulemap.formats.ground.sample_store import release_pages, sample_store
from joulemap.formats.ground.text import read_json
from joulemap.formats.ground.values import widen
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace

__all__ = ["Otii3Reader"]

_FORMAT: Final = "17"
_SAFE: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_BLOCK: Final = 1 << 20
_RATE_MAX_HZ: Final = 1e6
_FACTS: Final = ("current", "voltage", "power")


@dataclass(frozen=True, slots=True)
class _Measurement:
    """One channel of a recording."""

    name: str
    kind: str
    device: str
    rate_hz: float
    offset_us: float
    path: Path

    @property
    def count(self) -> int:
        return self.path.stat().st_size // 4

    def block(self, first: int, count: int) -> NDArray[np.float32]:
        return np.fromfile(self.path, "<f4", count, offset=first * 4)


class Otii3Reader:
    """Reads the saved version of a project folder (or its ``.otii3`` stub): power per recording and rail."""

    name = "otii3"
    certainty = Certainty.DESCRIBED
    folders = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a folder with ``data/meta/project_format``, 0.95 for a stub beside it."""
        if not head and path.is_dir():
            return 1.0 if (path / "data" / "meta" / "project_format").is_file() else 0.0
        stub = head.strip().startswith(b"{") and len(head) < 4096
        return 0.95 if stub and (path.parent / "data" / "meta" / "project_format").is_file() else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per recording and rail.

        Raises:
            InputError: a file of the project is missing, or a current has no voltage and no supply was stated.
            FormatError: the description breaks its own form.
        """
        root = path if path.is_dir() else path.parent
        log = FindingLog()
        version = _small(root / "data" / "meta" / "project_format")
        if version != _FORMAT:
            log.add(
                "project_format_unknown", f"project format {version!r}; this reader knows {_FORMAT}", "project_format"
            )
        saved = _small(root / "data" / "meta" / "saved_version")
        if not _SAFE.fullmatch(saved):
            raise FormatError(f"{root.name}: the saved version is {saved!r}", hint="Save again.", slug="otii-project")
        description = root / "data" / "versions" / saved / "data" / "project.json"
        if not description.is_file():
            raise InputError(
                f"{root.name}: the saved version {saved} is not there", hint="Save again.", slug="recording-incomplete"
            )
        document = read_json(description)
        recordings = document.get("recordings") if isinstance(document, dict) else None
        if not isinstance(recordings, list):
            raise FormatError(f"{description.name} lists no recordings", hint="Save again.", slug="otii-project")
        traces: list[EnergyTrace] = []
        used: list[Path] = [description]
        for number, entry in enumerate(recordings):
            prefix = f"recording {number + 1} " if len(recordings) > 1 else ""
            traces += _recording(entry, root, (prefix, options), (used, log))
        if not traces:
            raise FormatError(f"{root.name} holds no power", hint="Record current and voltage.", slug="recording-empty")
        return Recording(
            format=self.name,
            sources=sources_of(used, root),
            traces=tuple(traces),
            metadata={"project": str(document.get("name", ""))[:200], "version": saved},
            findings=log.findings(),
        )


def _small(path: Path) -> str:
    try:
        return path.read_bytes()[:256].decode("utf-8", "replace").strip()
    except OSError as error:
        raise InputError(
            f"{path.name} of the project cannot be read: {error.strerror or error}",
            hint="Give the whole project folder.",
            slug="recording-incomplete",
        ) from error


def _number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise FormatError(f"the project says {value!r} where a number belongs", hint="Save again.", slug="otii-project")
    return float(value)


def _measurements(entry: Any, root: Path, log: FindingLog) -> list[_Measurement]:
    found = []
    for item in entry.get("measurements") or []:
        measurement = item.get("measurement") if isinstance(item, dict) else None
        data = item.get("data") if isinstance(item, dict) else None
        source = measurement.get("source") if isinstance(measurement, dict) else None
        if not isinstance(source, dict) or not isinstance(data, dict):
            log.add("measurement_unreadable", "a measurement has no source or no data and is left out")
            continue
        blob = str(data.get("id", ""))
        path = root / "data" / "data" / "project" / blob / "samples.dat"
        if not _SAFE.fullmatch(blob) or blob.startswith(".") or not path.is_file():
            log.add(
                "measurement_unreadable", f"the samples of {str(source.get('name'))[:40]!r} are not there", blob[:80]
            )
            continue
        if source.get("type") != "samples" or source.get("data_type") not in _FACTS:
            log.add(
                "measurement_skipped", f"{str(source.get('name'))[:40]!r} is no current, voltage or power", blob[:80]
            )
            continue
        rate_hz = _number(source.get("sample_rate"), 1e-3, _RATE_MAX_HZ)
        offset_us = _number(item.get("offset", 0), -1e15, 1e15)
        found.append(
            _Measurement(
                str(source.get("name")), str(source["data_type"]), str(source.get("device")), rate_hz, offset_us, path
            )
        )
    return found


def _recording(
    entry: Any, root: Path, context: tuple[str, ReadOptions], out: tuple[list[Path], FindingLog]
) -> list[EnergyTrace]:
    (prefix, options), (used, log) = context, out
    if not isinstance(entry, dict) or not isinstance(entry.get("measurements"), list):
        log.add("measurement_unreadable", f"{prefix}recording has no measurements", "project.json")
        return []
    measurements = _measurements(entry, root, log)
    start_ms = _number(entry.get("start_time", 0), 0, 4e12)
    base_ns = round(start_ms * 1000) * 1000 + round(_number(entry.get("offset", 0), -1e15, 1e15) * 1e3)
    kind = ClockKind.UTC if start_ms else ClockKind.MONOTONIC
    clock = Clock(name=f"{prefix}otii", kind=kind, resolution_ns=1e6)
    traces = []
    rails = dict.fromkeys((one.device, one.name[:1]) for one in measurements)  # mc and mv are main, ac and av are ADC
    names = {"m": "main", "a": "adc", "s": "sense"}
    for device, rail in rails:
        members = {one.kind: one for one in measurements if (one.device, one.name[:1]) == (device, rail)}
        lead = members.get("power") or members.get("current")
        if lead is None or not lead.count:
            continue
        used += [one.path for one in members.values() if one.path not in used]
        label = f"{prefix}{device + ' ' if len({d for d, _ in rails}) > 1 else ''}{names.get(rail, rail)}"
        power_w = _power(members, lead, options)
        traces.append(
            uniform_trace(
                power_w,
                channel=sampled_channel(label, boundary_of(options.boundary, Boundary.RAIL), 1 / lead.rate_hz),
                clock=clock,
                start_ns=base_ns + round(lead.offset_us * 1e3),
                period_s=1 / lead.rate_hz,
                log=log,
            )
        )
    return traces


def _power(members: dict[str, _Measurement], lead: _Measurement, options: ReadOptions) -> NDArray[np.float32]:
    """Returns power, W: the power channel, else current times the voltage held at its own, slower rate."""
    volts = members.get("voltage") if lead.kind == "current" else None
    scale = voltage_of(options.voltage_v, lead.path.parent.name) if lead.kind == "current" and volts is None else 1.0
    if volts is not None and not volts.count:
        raise FormatError("the voltage channel is empty", hint="Record again.", slug="recording-empty")
    held = widen(volts.block(0, volts.count)) if volts is not None else None
    power_w = sample_store(lead.count)
    for first in range(0, lead.count, _BLOCK):
        part = widen(lead.block(first, _BLOCK)) * scale
        if volts is not None and held is not None:
            seconds = np.arange(first, first + part.size) / lead.rate_hz + (lead.offset_us - volts.offset_us) * 1e-6
            at = np.floor(seconds * volts.rate_hz + 1e-6).astype(np.int64)
            with np.errstate(over="ignore", invalid="ignore"):
                part *= held[np.clip(at, 0, held.size - 1)]
        with np.errstate(over="ignore", invalid="ignore"):
            power_w[first : first + part.size] = part
        release_pages(power_w)
    return power_w
