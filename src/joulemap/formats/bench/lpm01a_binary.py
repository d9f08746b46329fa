"""Binary streams of ST's X-NUCLEO-LPM01A: 16-bit samples with metadata packets among them, big endian.

References:
    zephyr at 4a4ee3a9, scripts/pylib/power-twister-harness/stm32l562e_dk/PowerShield.py, and public readers
    (FORMATS_MORE, "LPM01A, bin_hexa").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.stamped import StampedSamples, stamped_recording
from joulemap.records.recording import Recording

__all__ = ["Lpm01aBinaryReader"]

_MARK: Final = 0xF0
_END: Final = b"\xff\xff"
_STAMP_B: Final = 9
_BLOCK_B: Final = 1 << 16
_TEXT_MAX_B: Final = 4096


@dataclass(slots=True)
class _Stream:
    """Samples in order, and before which sample each stamp stands."""

    parts: list[NDArray[np.float64]] = field(default_factory=list)
    samples: int = 0
    stamps: list[tuple[int, int]] = field(default_factory=list)
    completed: bool = False


class Lpm01aBinaryReader:
    """Reads the board's binary stream; neither the supply nor the output mode is in it: they must be stated."""

    name = "lpm01a-binary"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.9 for a metadata packet at the beginning and a well-formed stamp in the first kilobytes."""
        del path
        if len(head) < _STAMP_B or head[0] != _MARK or head[1] not in {0xF1, 0xF2, 0xF3}:
            return 0.0
        at = head.find(b"\xf0\xf3")
        return 0.9 if at >= 0 and head[at + 7 : at + 9] == _END else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power on the board's millisecond clock: current times the stated supply, or energy by the period.

        The mode is not in the stream: ``--unit value=J`` says that the samples are the energy of each period.

        Raises:
            InputError: no supply was stated for currents, or no rate and fewer than two stamps.
            FormatError: no sample after a time stamp.
        """
        log = FindingLog()
        found = _decode(path.read_bytes(), log)
        if not found.stamps or not found.samples:
            raise FormatError(
                f"{path.name}: no sample after a time stamp", hint="Record again.", slug="recording-empty"
            )
        samples = StampedSamples(value=np.concatenate(found.parts), stamps=found.stamps, completed=found.completed)
        return stamped_recording((self.name, path), samples, options, log)


def _decode(raw: bytes, log: FindingLog) -> _Stream:
    found = _Stream()
    at = 0
    while at + 1 < len(raw):
        if raw[at] == _MARK:
            at = _metadata(raw, at, found, log)
        else:
            word = np.frombuffer(raw, ">u2", min(_BLOCK_B, len(raw) - at) // 2, at)
            marked = np.flatnonzero((word >> 8) == _MARK)
            take = int(marked[0]) if marked.size else word.size
            sample = word[:take]
            found.parts.append((sample & 0x0FFF) * 16.0 ** -(sample >> 12).astype(np.float64))
            found.samples += take
            at += 2 * take
    if at < len(raw):
        log.add("tail_cut", "the stream ends inside a sample: 1 byte is left out", f"offset {at}")
    return found


def _metadata(raw: bytes, at: int, found: _Stream, log: FindingLog) -> int:
    """Takes one packet and returns the offset after it; a packet without its end costs two bytes."""
    kind = raw[at + 1]
    if kind == 0xF3:
        if raw[at + 7 : at + 9] == _END:
            found.stamps.append((found.samples, struct.unpack_from(">I", raw, at + 2)[0] * 1_000_000))
            return at + _STAMP_B
    else:
        end = raw.find(_END, at + 2, at + 2 + _TEXT_MAX_B)
        if end >= 0 and kind in {0xF1, 0xF2, 0xF4, 0xF5}:
            text = raw[at + 2 : end].decode("ascii", "replace").strip()
            if kind == 0xF4:
                found.completed = True
            elif kind == 0xF5:
                log.add("instrument_overcurrent", "the board reports an overcurrent", f"offset {at}")
            elif kind == 0xF1:
                log.add("instrument_message", f"the board says {text[:120]!r}", f"offset {at}")
            return end + 2
    log.add("packet_damaged", f"a metadata packet of type {kind:#04x} has no end", f"offset {at}")
    return at + 2
