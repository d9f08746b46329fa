"""sigrok sessions (``.sr``, version 2): a zip of logic and analog chunks with an ini of names and rate.

References:
    libsigrok 0.5.2, src/output/srzip.c and src/session_file.c, and a session that sigrok-cli wrote
    (``generated/sigrok/demo.sr``; FORMATS 3 and FORMATS_MORE, "sigrok").
"""

from __future__ import annotations

import configparser
import re
import zipfile
from array import array
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.archive import is_zip, member_bytes, member_chunks, member_names, open_archive
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.levels import level_records
from joulemap.formats.ground.values import UnitKind, parse_unit, widen
from joulemap.formats.waveforms.mapping import Axis, Waveform, map_waveforms
from joulemap.records.recording import Lane, MarkerTrack, Recording
from joulemap.trace import Clock, ClockKind, EnergyTrace, Timeline

__all__ = ["SigrokReader"]

_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?Hz)")
_ANALOG: Final = re.compile(r"analog-1-(\d{1,4})(?:-(\d{1,9}))?")
_LOGIC: Final = re.compile(r"logic-1(?:-(\d{1,9}))?")
_SAMPLES_MAX: Final = 1 << 31
_EDGES_MAX: Final = 1_000_000


class SigrokReader:
    """Reads logic channels as slices and edges, analog ones as lanes or, mapped, as power."""

    name = "sigrok"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a zip archive with ``version``, ``metadata`` and a logic or analog member."""
        if not is_zip(head):
            return 0.0
        names = member_names(path)
        data = any(_ANALOG.fullmatch(name) or _LOGIC.fullmatch(name) for name in names)
        return 1.0 if data and {"version", "metadata"} <= set(names) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the channels of device 1.

        Raises:
            FormatError: the archive, its metadata or its rate are damaged.
            InputError: a map that does not fit.
        """
        log = FindingLog()
        with open_archive(path) as archive:
            facts = _metadata(archive, path.name)
            rate_hz = _rate(facts, path.name)
            clock = Clock(name="sigrok", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / rate_hz)
            timelines, markers = _logic(archive, facts, (clock, rate_hz), log)
            channels = _analog(archive, facts, log)
        traces: tuple[EnergyTrace, ...] = ()
        lanes: tuple[Lane, ...] = ()
        if channels:
            axis = Axis(clock=clock, period_s=1 / rate_hz)
            traces, lanes = map_waveforms(channels, axis, options, log)
        if not (timelines or markers or channels):
            raise FormatError(f"{path.name} holds no samples", hint="Record again.", slug="recording-empty")
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=traces,
            lanes=lanes,
            timelines=timelines,
            markers=markers,
            metadata={"rate_hz": f"{rate_hz:g}", "channels": ", ".join(channels)[:200]},
            findings=log.findings(),
        )


def _metadata(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(member_bytes(archive, "metadata", 1 << 20).decode("utf-8", "replace"))
        section = next(part for part in parser.sections() if part.startswith("device"))
    except (configparser.Error, StopIteration) as error:
        raise FormatError(
            f"{name}: the metadata name no device ({type(error).__name__})", hint="Save again.", slug="sigrok-metadata"
        ) from error
    return dict(parser[section])


def _rate(facts: dict[str, str], name: str) -> float:
    found = _RATE.fullmatch(facts.get("samplerate", "").strip())
    rate_hz = float(found[1]) * parse_unit(found[2]).factor if found else 0.0
    if not 0 < rate_hz <= 1e12:
        raise FormatError(
            f"{name}: a sample rate of {facts.get('samplerate')!r} is impossible",
            hint="Save again.",
            slug="rate-impossible",
        )
    return rate_hz


def _parts(archive: zipfile.ZipFile, pattern: re.Pattern[str], log: FindingLog) -> dict[str, list[str]]:
    """Returns the chunk names per channel in order; a missing chunk number is said."""
    chunks: dict[str, list[tuple[int, str]]] = {}
    for name in archive.namelist():
        if found := pattern.fullmatch(name):
            key, number = (found[1], found[2]) if pattern.groups == 2 else ("", found[1])
            chunks.setdefault(key, []).append((int(number or 1), name))
    for key, part in chunks.items():
        part.sort()
        if [number for number, _ in part] != list(range(1, len(part) + 1)):
            log.add("chunk_missing", f"the chunks of {key or 'logic'} are not 1 to {len(part)}", part[0][1])
    return {key: [name for _, name in part] for key, part in chunks.items()}


def _analog(archive: zipfile.ZipFile, facts: dict[str, str], log: FindingLog) -> dict[str, Waveform]:
    channels: dict[str, Waveform] = {}
    for key, names in _parts(archive, _ANALOG, log).items():
        body = bytearray()
        for name in names:
            for block in member_chunks(archive, name, 1 << 20):
                body += block
                if len(body) > _SAMPLES_MAX * 4:
                    raise FormatError("more analog samples than can be read", hint="Split it.", slug="archive-damaged")
        if len(body) % 4:
            log.add("tail_cut", f"analog channel {key} ends inside a sample", names[-1])
        label = facts.get(f"analog{key}", f"analog{key}")
        value = widen(np.frombuffer(bytes(body[: len(body) // 4 * 4]), "<f4"))
        channels[label] = Waveform(name=label, kind=UnitKind.VOLTAGE, value=value)
    sizes = {channel.value.size for channel in channels.values()}
    if len(sizes) > 1:
        log.add("signals_differ_in_length", f"analog channels have {sorted(sizes)} samples: the shortest counts")
    shortest = min(sizes, default=0)
    return {
        name: Waveform(name=name, kind=channel.kind, value=channel.value[:shortest])
        for name, channel in channels.items()
        if shortest
    }


def _logic(
    archive: zipfile.ZipFile, facts: dict[str, str], base: tuple[Clock, float], log: FindingLog
) -> tuple[tuple[Timeline, ...], tuple[MarkerTrack, ...]]:
    clock, rate_hz = base
    names = _parts(archive, _LOGIC, log).get("", [])
    text = facts.get("unitsize", "1")
    width = int(text) if text in {"1", "2", "3", "4", "5", "6", "7", "8"} else 0
    if not names or not width:
        return (), ()
    probes = {int(key[5:]): label for key, label in facts.items() if key.startswith("probe") and key[5:].isdigit()}
    lines = {bit: (array("q"), array("b")) for bit in sorted(probe - 1 for probe in probes) if 0 <= bit < width * 8}
    at = 0
    rest = b""
    for name in names:
        for block in member_chunks(archive, name, 1 << 20):
            body = rest + block
            count = len(body) // width
            sample = np.frombuffer(body, np.uint8, count * width).reshape(count, width)
            rest = body[count * width :]
            for bit, (index, level) in lines.items():
                values = (sample[:, bit // 8] >> (bit % 8)) & 1
                before = np.concatenate(([level[-1] if level else 2], values[:-1])) if count else values
                turns = np.flatnonzero(values != before)[: max(_EDGES_MAX - len(index), 0)]
                index.extend((turns + at).tolist())
                level.extend(values[turns].tolist())
            at += count
    timelines, markers = [], []
    for bit, (index, level) in lines.items():
        if len(index) >= _EDGES_MAX:
            log.add("line_too_busy", f"{probes[bit + 1]} toggles more than {_EDGES_MAX} times: the rest is left out")
        times_ns = np.round(np.array(index, np.int64) * (1e9 / rate_hz)).astype(np.int64)
        changes = (times_ns, np.array(level, np.int64))
        timeline, edges = level_records(
            probes[bit + 1], changes, clock=clock, end_ns=round(at * 1e9 / rate_hz), log=log
        )
        timelines += [timeline] if timeline is not None else []
        markers += [edges] if edges is not None else []
    return tuple(timelines), tuple(markers)
