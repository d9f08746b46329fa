"""What a processor is, from ``/proc/cpuinfo``: maker, family, model, and whether a hypervisor stands between."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from joulemap.meters.live.ground.number_file import read_text

__all__ = ["CpuFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """The first processor of a machine.

    Args:
        vendor: as the processor says, ``GenuineIntel`` or ``AuthenticAMD``; empty when it says nothing.
        family: None when not known.
        model: None when not known.
        hypervisor: this is a virtual machine.
    """

    vendor: str = ""
    family: int | None = None
    model: int | None = None
    hypervisor: bool = False

    @classmethod
    def read(cls, proc: Path) -> Self:
        """Returns the facts of a ``/proc`` folder; nothing is known when it cannot be read."""
        text = read_text(proc / "cpuinfo") or ""
        first = text.split("\n\n", 1)[0]
        fields = dict(re.findall(r"^([^:\n]+?)[ \t]*:[ \t]*(.*)$", first, flags=re.MULTILINE))
        return cls(
            vendor=fields.get("vendor_id", ""),
            family=_whole(fields.get("cpu family")),
            model=_whole(fields.get("model")),
            hypervisor="hypervisor" in fields.get("flags", "").split(),
        )


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
