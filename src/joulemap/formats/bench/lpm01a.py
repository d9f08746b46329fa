"""ASCII logs of ST's X-NUCLEO-LPM01A (PowerShield): decimal samples between time stamps.

References:
    mlcommons/tiny at 1afd2c9, benchmark/runner/power_manager, and public readers (FORMATS_MORE, "LPM01A ascii_dec").
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.stamped import StampedSamples, stamped_recording
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.recording import Recording

__all__ = ["Lpm01aReader"]

_STAMP: Final = re.compile(r"TimeStamp:\s*(\d{1,6})s\s*(\d{1,3})ms(?:,\s*buff\s*(\d{1,3})%)?")
_SAMPLE: Final = re.compile(r"[+ ]?(\d{1,6})([+-]\d{1,2})")


@dataclass(slots=True)
class _Log:
    """What the lines hold: samples, and before which sample each stamp stands."""

    value: array[float] = field(default_factory=lambda: array("d"))
    line: array[int] = field(default_factory=lambda: array("q"))
    stamps: list[tuple[int, int]] = field(default_factory=list)  # (samples before it, ns)
    fullest_percent: int = 0
    completed: bool = False


class Lpm01aReader:
    """Reads the board's decimal stream; neither the supply nor the output mode is in the log: they must be stated."""

    name = "lpm01a"
    certainty = Certainty.DESCRIBED
    folders = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 0.95 for the board's prompt or time stamp line with samples among the first lines."""
        del path
        lines = [line.strip("\0 ") for line in head_lines(head, 60)]
        said = any(_STAMP.match(line) or line.startswith("PowerShield >") for line in lines)
        return 0.95 if said and any(_SAMPLE.fullmatch(line) for line in lines) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns power on the board's millisecond clock: current times the stated supply, or energy by the period.

        The sample rate is not in the log: it is the stated one, else what lies between two stamps. Nor is the mode:
        ``--unit value=J`` says that the samples are the energy of each period (output mode ``energy``).

        Raises:
            InputError: no supply was stated for currents, or no rate and fewer than two stamps.
            FormatError: no sample.
        """
        log = FindingLog()
        found = _read(path, log)
        if found.fullest_percent >= 100:
            log.add("buffer_full", "the board's buffer was full: samples after it may be missing")
        samples = StampedSamples(
            value=np.array(found.value), stamps=found.stamps, line=found.line, completed=found.completed
        )
        return stamped_recording((self.name, path), samples, options, log)


def _read(path: Path, log: FindingLog) -> _Log:
    found = _Log()
    strange = 0
    for number, text in read_lines(path):
        body = text.strip("\0 \t")  # the first sample after a stamp may follow a NUL
        if not body:
            continue
        if match := _SAMPLE.fullmatch(body):
            found.value.append(int(match[1]) * 10.0 ** int(match[2]))
            found.line.append(number)
        elif match := _STAMP.match(body):
            found.stamps.append((len(found.value), (int(match[1]) * 1000 + int(match[2])) * 1_000_000))
            found.fullest_percent = max(found.fullest_percent, int(match[3] or 0))
        elif "acquisition completed" in body.lower():
            found.completed = True
        elif "error" in body.lower() or "overcurrent" in body.lower():
            log.add("instrument_message", f"the board says {body[:120]!r}", f"line {number}")
        elif not body.startswith("PowerShield") and not found.completed:  # a free text summary follows the end
            strange += 1
            log.add("line_unreadable", f"no sample and no stamp: {body[:40]!r}", f"line {number}")
    if not found.value or strange > len(found.value):
        raise FormatError(
            f"{path.name}: {len(found.value)} samples among {strange} lines that are none",
            hint="Samples look like 6409-07.",
            slug="recording-empty",
        )
    return found
