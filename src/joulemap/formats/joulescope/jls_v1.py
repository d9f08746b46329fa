"""JLS version 1, the tag-length-value files of the JS110 software: raw ADC samples with their calibration, or floats.

References:
    PyPI joulescope 1.5.0: datafile.py (tags), data_recorder.py (blocks), v0/calibration.py (raw to amperes and
    volts), v0/array_storage.py (float blocks); a file that it wrote (``generated/jls/v1.jls``; FORMATS_MORE, "JLS v1").
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from binascii import crc32
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of, sampled_channel, source_file, uniform_trace
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["JlsV1Reader"]

_MAGIC: Final = bytes.fromhex("d3746167666d74200d0a200a20201a1c")
_HEADER_B: Final = 32
_COMPRESSED: Final = 0x80
_ENCRYPTED: Final = 0x40
_SMALL_B: Final = 1 << 20
_DATA_MAX_B: Final = 1 << 28
_ARRAY_IDS: Final = {0x01: "current", 0x11: "voltage", 0x21: "power"}
_SAMPLES_MAX: Final = 1 << 33


@dataclass(slots=True)
class _Calibration:
    """Counts to amperes per current range and to volts per voltage range; unit gain when the file has none."""

    current_offset: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0] * 8 + [math.nan]))
    current_gain: NDArray[np.float64] = field(default_factory=lambda: np.array([1.0] * 7 + [0.0, math.nan]))
    voltage_offset: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    voltage_gain: NDArray[np.float64] = field(default_factory=lambda: np.ones(2))
    known: bool = False


@dataclass(slots=True)
class _State:
    """What the tags said so far."""

    rate_hz: float = 0.0
    data_format: str = ""
    v_range: int = 0
    closed: bool = False
    toggles: int = 0
    switches: int = 0
    samples: int = 0
    calibration: _Calibration = field(default_factory=_Calibration)
    parts: list[NDArray[np.float32]] = field(default_factory=list)


class JlsV1Reader:
    """Reads current times voltage at the full rate; a tag with a wrong checksum or a cut end is said."""

    name = "jls-v1"
    certainty = Certainty.WRITTEN
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the magic number and a configuration tag of the recorder."""
        del path
        return 1.0 if head.startswith(_MAGIC) and (b"data_recorder_format_version" in head or b"MJS" in head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the power of the one instrument that such a file holds; it has no wall clock.

        Raises:
            FormatError: no configuration, no data, or a format of data that is not known.
        """
        log = FindingLog()
        state = _State()
        with path.open("rb") as handle:
            if handle.read(_HEADER_B)[:16] != _MAGIC:
                raise FormatError(
                    f"{path.name}: no JLS version 1", hint="The magic number is missing.", slug="jls-unreadable"
                )
            for tag, offset, body in _tags(handle, path.stat().st_size, log):
                _take(state, tag, body, (offset, log))
        if not state.rate_hz:
            raise FormatError(f"{path.name} has no configuration", hint="The file is damaged.", slug="jls-unreadable")
        if not state.closed:
            log.add("recording_unfinished", "the file has no end tag: what was written before is read")
        if state.data_format == "raw" and not state.calibration.known:
            log.add(
                "calibration_missing",
                "raw samples without a calibration: unit gain is used and the figures are counts, not watts",
                severity=Severity.ERROR,
            )
        if state.toggles:
            log.add("samples_skipped", f"the sample toggle fails {state.toggles} times: packets were lost there")
        if state.switches:
            log.add(
                "range_glitches_kept",
                f"the current range switches {state.switches} times; the samples around it are not smoothed as the "
                "vendor's software does",
                severity=Severity.INFO,
            )
        power_w = np.concatenate(state.parts) if state.parts else np.zeros(0, np.float32)
        channel = sampled_channel("power", boundary_of(options.boundary, Boundary.RAIL), 1 / state.rate_hz)
        if state.data_format == "raw" and not state.calibration.known:
            channel = replace(channel, provenance=Provenance.ESTIMATED)
        clock = Clock(name="joulescope", kind=ClockKind.SAMPLE_INDEX, resolution_ns=1e9 / state.rate_hz)
        trace = uniform_trace(
            power_w,
            channel=channel,
            clock=clock,
            start_ns=0,
            period_s=1 / state.rate_hz,
            log=log,
        )
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            traces=(trace,),
            metadata={"rate_hz": f"{state.rate_hz:g}", "data_format": state.data_format},
            findings=log.findings(),
        )


def _tags(handle: IO[bytes], size_b: int, log: FindingLog) -> Iterator[tuple[bytes, int, bytes]]:
    """Yields (tag, offset, value); stops at what does not fit, says wrong checksums."""
    at = _HEADER_B
    while at + 8 <= size_b:
        head = handle.read(8)
        tag, flags, length = head[:3], head[3], struct.unpack_from("<I", head, 4)[0]
        pad = -(8 + length + 4) % 8
        if not tag.isalnum() or length > _DATA_MAX_B or at + 8 + length + pad + 4 > size_b:
            log.add("tail_cut", f"{size_b - at} bytes after the last whole tag are left out", f"offset {at}")
            return
        body = handle.read(length + pad)
        if crc32(body, crc32(head)) != struct.unpack("<I", handle.read(4))[0]:
            log.add("checksum_wrong", f"tag {tag.decode('ascii', 'replace')} fails its checksum", f"offset {at}")
        value = body[:length]
        if flags & _ENCRYPTED:
            log.add("tag_encrypted", "an encrypted tag is left out", f"offset {at}")
        elif flags & _COMPRESSED:
            try:
                unpacked = zlib.decompressobj().decompress(value, _DATA_MAX_B)
            except zlib.error as error:
                log.add("tag_unreadable", f"a compressed tag is left out ({error})", f"offset {at}")
            else:
                yield tag, at, unpacked
        else:
            yield tag, at, value
        at += 8 + length + pad + 4


def _take(state: _State, tag: bytes, body: bytes, place: tuple[int, FindingLog]) -> None:
    offset, log = place
    if tag == b"MJS":
        _configure(state, _json(body, place))
    elif tag == b"SUB" and body.split(b"\0", 1)[0] == b"calibration" and len(body) > 128:
        _calibrate(state, body[128:], place)
    elif tag == b"CLS" and len(body) > 12:
        document = _json(body[12:], place)
        v_range, first = document.get("v_range", 0), document.get("sample_id")
        state.v_range = 1 if v_range == 1 else 0
        if isinstance(first, int) and not isinstance(first, bool) and state.samples < first < state.samples + (1 << 24):
            log.add(
                "samples_skipped", f"{first - state.samples} samples are missing before a block", f"offset {offset}"
            )
            state.parts.append(np.full(first - state.samples, np.nan, np.float32))
            state.samples = first
    elif tag == b"ABN":
        part = _raw(state, body) if state.data_format == "raw" else _floats(body, place)
        if state.samples + part.size > _SAMPLES_MAX:
            raise FormatError("the blocks hold more samples than a file can", hint="Damaged.", slug="jls-unreadable")
        state.parts.append(part)
        state.samples += part.size
    elif tag == b"END":
        state.closed = True


def _json(body: bytes, place: tuple[int, FindingLog]) -> dict[str, Any]:
    try:
        document = json.loads(body[:_SMALL_B])
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        place[1].add("tag_unreadable", "a tag holds no JSON object and is left out", f"offset {place[0]}")
        return {}
    return document


def _configure(state: _State, document: dict[str, Any]) -> None:
    if document.get("type") != "config":
        return
    rate_hz = document.get("sampling_frequency")
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, int | float) or not 0 < rate_hz <= 1e7:
        raise FormatError(f"a rate of {rate_hz!r} Hz is impossible", hint="Damaged.", slug="rate-impossible")
    data_format = str(document.get("data_format"))
    if data_format not in {"raw", "float32_v2"}:
        raise FormatError(f"data format {data_format[:40]!r} is not read", hint="Export as CSV.", slug="jls-unreadable")
    state.rate_hz, state.data_format = float(rate_hz), data_format


def _calibrate(state: _State, body: bytes, place: tuple[int, FindingLog]) -> None:
    """Takes the calibration subfile: the first JSON tag in it that has offsets and gains."""
    at = _HEADER_B
    while at + 8 <= len(body):
        flags, (length,) = body[at + 3], struct.unpack_from("<I", body, at + 4)
        value = body[at + 8 : at + 8 + length]
        at += 8 + length + (-(8 + length + 4) % 8) + 4
        if flags & _COMPRESSED:
            try:
                value = zlib.decompressobj().decompress(value, _SMALL_B)
            except zlib.error:
                continue
        try:
            document = json.loads(value)
            current, voltage = document["current"], document["voltage"]
            columns = [np.array(current["offset"], np.float64)[:7], np.array(current["gain"], np.float64)[:7]]
            volts = [np.array(voltage["offset"], np.float64), np.array(voltage["gain"], np.float64)]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            continue
        if any(column.shape != (7,) for column in columns) or any(column.shape != (2,) for column in volts):
            break
        state.calibration = _Calibration(
            current_offset=np.concatenate((columns[0], [0.0, math.nan])),
            current_gain=np.concatenate((columns[1], [0.0, math.nan])),
            voltage_offset=volts[0],
            voltage_gain=volts[1],
            known=True,
        )
        return
    place[1].add("tag_unreadable", "the calibration cannot be read", f"offset {place[0]}")


def _raw(state: _State, body: bytes) -> NDArray[np.float32]:
    """Returns watts of interleaved 14-bit current and voltage; range and toggle ride in their low bits."""
    pair = np.frombuffer(body, "<u2", len(body) // 4 * 2).reshape(-1, 2)
    current, voltage = pair[:, 0], pair[:, 1]
    selected = (current & 3) | ((voltage & 1) << 2)
    toggle = (voltage >> 1) & 1
    state.toggles += int((toggle[1:] == toggle[:-1]).sum())
    state.switches += int((np.diff(selected.astype(np.int8)) != 0).sum())
    missing = (selected == 7) & (current >> 2 == 0x3FFF) & (voltage >> 2 == 0x3FFF)
    selected = selected + missing
    cal = state.calibration
    amps = ((current >> 2) + cal.current_offset[selected]) * cal.current_gain[selected]
    volts = ((voltage >> 2) + cal.voltage_offset[state.v_range]) * cal.voltage_gain[state.v_range]
    with np.errstate(over="ignore", invalid="ignore"):
        power_w: NDArray[np.float32] = (amps * volts).astype(np.float32)
    return power_w


def _floats(body: bytes, place: tuple[int, FindingLog]) -> NDArray[np.float32]:
    """Returns watts of a float block: the power array, else current times voltage."""
    found: dict[str, NDArray[np.float32]] = {}
    if len(body) >= 16 and body[:4] == b"ARRY":
        at, counts = struct.unpack_from("<2I", body, 8)
        for index in range(min(counts >> 24, (len(body) - 16) // 8)):
            head, length = struct.unpack_from("<2I", body, 16 + 8 * index)
            name = _ARRAY_IDS.get((head >> 8) & 0xFF)
            if name is not None and head & 0xFF == 0x02 and at + length <= len(body):
                found[name] = np.frombuffer(body, "<f4", length // 4, at)
            at += (length + 7) // 8 * 8
    if "power" in found:
        return found["power"].copy()
    if "current" in found and "voltage" in found and found["current"].size == found["voltage"].size:
        with np.errstate(over="ignore", invalid="ignore"):
            product: NDArray[np.float32] = found["current"] * found["voltage"]
            return product
    place[1].add("tag_unreadable", "a block has neither power nor current and voltage", f"offset {place[0]}")
    return np.zeros(0, np.float32)
