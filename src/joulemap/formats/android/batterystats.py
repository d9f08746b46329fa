"""dumpsys batterystats --checkin: Android's own estimate of where the charge of its battery went, in mAh."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.logs import key_of
from joulemap.formats.ground.text import head_lines, read_lines, split_fields
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal
from joulemap.trace import Clock, ClockKind, Slice, Timeline

__all__ = ["BatterystatsReader"]

_LINE = re.compile(r"^9,(\d+),([ilcu]),([a-z]+),?(.*)$")
_COULOMB_PER_MAH = 3.6
_FIRST_APP_UID, _USER = 10_000, 100_000


@dataclass(slots=True)
class _State:
    packages: dict[int, str] = field(default_factory=dict)
    rows: list[tuple[str, float, int]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    span_ns: tuple[int, int] | None = None
    sections: int = 0


class BatterystatsReader:
    """Reads the check-in form, statistics since the last full charge (``l``).

    Everything is an estimate by the device's power profile, in charge: energy needs a voltage, so joules are stated
    only when one is given. Users above 0 have ids of 100000 and more (1010123 is app 10123 of user 10). Lines may
    come from apps' own names; only known sections with numbers in their places are read.

    References:
        google/battery-historian d2356ba4, checkinparse (versions 11 to 21); FORMATS_MORE, "batterystats --checkin".
    """

    name: ClassVar[str] = "batterystats"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the version line of a check-in."""
        del path
        return 1.0 if any(text.startswith("9,0,i,vers,") for text in head_lines(head, 5)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the charges as stated figures, in coulombs and with a stated voltage in joules.

        Raises:
            FormatError: no section of a check-in.
        """
        log = FindingLog()
        state = _State()
        for line, text in read_lines(path):
            match = _LINE.match(text)
            if match is None:
                if text.strip():
                    log.add("line_unreadable", f"not a check-in line: {text[:40]!r}", f"line {line}", Severity.INFO)
                continue
            uid, scope, section, rest = match.groups()
            try:
                self._take((uid, scope, section), split_fields(rest), line, state)
            except (ValueError, IndexError, OverflowError):
                log.add("line_unreadable", f"section {section} without its numbers; left out", f"line {line}")
        if not state.rows:
            raise FormatError(
                f"{path.name} holds no charge of a check-in",
                hint="Use dumpsys batterystats --checkin.",
                slug="recording-empty",
            )
        totals = []
        for key, charge_mah, line in state.rows:
            totals.append(_total(f"{key}_charge_c", charge_mah * _COULOMB_PER_MAH, line))
            if options.voltage_v is not None:
                totals.append(_total(f"{key}_energy_j", charge_mah * _COULOMB_PER_MAH * options.voltage_v, line))
        if options.voltage_v is None:
            log.add(
                "voltage_needed", "charges only: state the battery's voltage to have joules", severity=Severity.INFO
            )
        timelines: tuple[Timeline, ...] = ()
        if state.span_ns is not None:
            clock = Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e6)
            piece = Slice(name="since last charge", start_ns=state.span_ns[0], end_ns=state.span_ns[1], kind="run")
            timelines = (Timeline.from_slices(clock, [piece]),)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            totals=tuple(totals),
            timelines=timelines,
            metadata=state.metadata,
            findings=log.findings(),
        )

    @staticmethod
    def _take(kind: tuple[str, str, str], fields: list[str], line: int, state: _State) -> None:
        uid_text, scope, section = kind
        uid = int(uid_text[:12])
        if scope == "i":
            BatterystatsReader._facts(section, fields, state)
        elif scope == "l":
            BatterystatsReader._charges((uid, section), fields, line, state)

    @staticmethod
    def _facts(section: str, fields: list[str], state: _State) -> None:
        if section == "vers":
            state.metadata["checkin_version"] = fields[0]
            state.metadata["build"] = fields[-1]
        elif section == "uid":
            state.packages.setdefault(int(fields[0][:12]), fields[1])

    @staticmethod
    def _charges(kind: tuple[int, str], fields: list[str], line: int, state: _State) -> None:
        uid, section = kind
        if section == "pws":
            capacity, computed, low, high = (_mah(text) for text in fields[:4])
            for word, value in (
                ("capacity", capacity),
                ("computed", computed),
                ("min_drained", low),
                ("max_drained", high),
            ):
                state.rows.append((word, value, line))
        elif section == "pwi":
            if fields[0] == "uid":
                state.rows.append((_who(uid, state), _mah(fields[1]), line))
            else:
                state.rows.append((f"part_{key_of(fields[0])}", _mah(fields[1]), line))
        elif section == "bt":
            start_ms, realtime_ms = int(fields[5][:18]), int(fields[3][:18])
            if start_ms > 0 and 0 <= realtime_ms < 1 << 42 and start_ms < 1 << 42:
                state.span_ns = (start_ms * 1_000_000, (start_ms + realtime_ms) * 1_000_000)
        elif section == "dc":
            state.metadata["discharge_lower_percent"] = fields[0]
            state.metadata["discharge_upper_percent"] = fields[1]


def _who(uid: int, state: _State) -> str:
    """Returns the key of a user id: its package when one is named, with the user when that is not 0."""
    user, app = divmod(uid, _USER)
    package = state.packages.get(uid) or state.packages.get(app, "")
    word = f"uid_{app}_{key_of(package)}" if package else f"uid_{app}"
    return f"user_{user}_{word}" if user and app >= _FIRST_APP_UID else word


def _mah(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e9:
        raise ValueError("no charge")
    return value


def _total(key: str, value: float, line: int) -> StatedTotal:
    return StatedTotal(key=key, value=value, provenance=Provenance.ESTIMATED, span=f"line {line}")
