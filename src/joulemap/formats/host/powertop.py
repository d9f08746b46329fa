"""powertop's CSV: blocks with their own headers; its summary line as stated figures. Power columns are not read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal

__all__ = ["PowertopReader"]

_TARGET = re.compile(r"System:\s*(\d+(?:\.\d*)?) wakeup/s;\s*CPU:\s*(\d+(?:\.\d*)?)% usage")
_RAN = re.compile(r"^PowerTOP Version;(\S+) ran at (.+)$")
_INFO = ("Kernel Version", "System Name", "CPU Information", "OS Information")


class PowertopReader:
    """Reads powertop's summary.

    Its estimates of power exist only on battery after calibration, and no recording of them was found, so a file that
    holds them is said to hold more than was read.

    References:
        A file of powertop 2.14 on a machine without battery; FORMATS_MORE, "powertop CSV".
    """

    name: ClassVar[str] = "powertop"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for powertop's banner."""
        del path
        return 1.0 if any("P o w e r T O P" in text for text in head_lines(head, 5)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns wake-ups and processor use as stated figures, and the machine's description.

        Raises:
            FormatError: no summary line.
        """
        del options
        log = FindingLog()
        totals: list[StatedTotal] = []
        metadata: dict[str, str] = {}
        for line, text in read_lines(path):
            ran, target = _RAN.match(text), _TARGET.search(text)
            key, _, value = text.partition(";")
            if ran is not None:
                metadata["version"], metadata["ran_at"] = ran.group(1), ran.group(2).strip()
            elif target is not None:
                for name, group, factor in (("system_wakeups_per_s", 1, 1.0), ("cpu_usage_share", 2, 0.01)):
                    totals.append(
                        StatedTotal(
                            key=name,
                            value=float(target.group(group)) * factor,
                            provenance=Provenance.MEASURED_SAMPLED,
                            span=f"line {line}",
                        )
                    )
            elif key in _INFO and value.strip():
                metadata[key.lower().replace(" ", "_")] = value.strip()
            elif "PW Estimate" in text:
                log.add(
                    "power_not_read", "the file holds powertop's estimates of power; they are not read", f"line {line}"
                )
        if not totals:
            raise FormatError(
                f"{path.name} has no summary line", hint="Run powertop --csv again.", slug="recording-empty"
            )
        log.add("no_power", "powertop's summary holds no power and no time axis", severity=Severity.INFO)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            totals=tuple(totals),
            metadata=metadata,
            findings=log.findings(),
        )
