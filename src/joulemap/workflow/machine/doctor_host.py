"""What this machine itself needs to be a target: a runtime, a meter, and how each of them stands."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Final

from joulemap import __version__
from joulemap.errors import JoulemapError
from joulemap.meters.live.discovery import discover
from joulemap.records.live.domain import DomainReading, MeterCandidate
from joulemap.runtimes.registry import runtime, runtime_names
from joulemap.workflow.machine.check import Check

__all__ = ["HOST", "check_host", "check_meters", "check_runtimes"]

HOST: Final = "host"


def check_host(candidates: Sequence[MeterCandidate] | None = None) -> tuple[Check, ...]:
    """Returns what a run on this machine needs: Python, one runtime, one meter; each runtime and meter by itself.

    Args:
        candidates: meters that were found; None to look for them.
    """
    detail = f"{platform.python_implementation()} {platform.python_version()}, joulemap {__version__}"
    python = Check(name="python", ok=True, required=True, detail=detail)
    found = discover() if candidates is None else candidates
    return (python, *check_runtimes(), *check_meters(found))


def check_runtimes() -> tuple[Check, ...]:
    """Returns one check that there is a runtime, and one for each."""
    each = []
    for name in runtime_names():
        kind = runtime(name)
        if kind.traits.simulated:
            continue
        files = ", ".join(kind.traits.suffixes)
        try:
            detail = f"{name} {kind.version()} loads {files}"
            each.append(Check(name=f"runtime {name}", ok=True, required=False, detail=detail))
        except JoulemapError as error:
            detail = f"{error.message}: needed for {files}"
            each.append(Check(name=f"runtime {name}", ok=False, required=False, detail=detail, fix=error.hint))
    present = [check for check in each if check.ok]
    whole = Check(
        name="runtimes",
        ok=bool(present),
        required=True,
        detail=f"{len(present)} of {len(each)} are installed",
        fix="" if present else "pip install 'joulemap[host]'",
    )
    return (whole, *each)


def check_meters(candidates: Sequence[MeterCandidate]) -> tuple[Check, ...]:
    """Returns one check that power can be read, and one for each candidate."""
    each = [
        Check(
            name=f"meter {candidate.name}",
            ok=candidate.usable,
            required=False,
            detail=candidate.problem or f"reads {', '.join(d.name for d in candidate.domains)}",
            fix=candidate.fix,
        )
        for candidate in candidates
    ]
    usable = [c for c in candidates if c.usable and any(d.reading is not DomainReading.SIGNAL for d in c.domains)]
    fixes = [candidate.fix for candidate in candidates if candidate.fix]
    names = ", ".join(candidate.name for candidate in usable)
    whole = Check(
        name="meters",
        ok=bool(usable),
        required=True,
        detail=f"power is read by {names}" if usable else "no power meter can be read here",
        fix="" if usable else (fixes[0] if fixes else "measure on another machine; joulemap meters lists the kinds"),
    )
    return (whole, *each)
