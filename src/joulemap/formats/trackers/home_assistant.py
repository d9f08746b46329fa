"""Home Assistant's history CSV: rows only where a state changed, UTC, without units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

from joulemap.errors import InputError, UsageError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import key_of, read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, open_table
from joulemap.formats.ground.values import parse_stamp, parse_unit
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["HomeAssistantReader"]


class HomeAssistantReader:
    """Reads the history of power and energy entities.

    A power holds until the next row; the last row holds for an unknown time and is left out. The file has no units:
    they must be stated, and with ``columns`` the entity of a role can be named (otherwise every entity whose id ends
    in the role's name is taken).

    References:
        FORMATS_MORE, "Smart plugs" (Home Assistant history CSV).
    """

    name: ClassVar[str] = "home-assistant"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the header entity_id,state,last_changed."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and lines[0].strip() == "entity_id,state,last_changed" else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power and energy entity.

        Raises:
            FormatError: no row of such an entity.
            InputError: no unit was stated.
        """
        if not {"power", "energy"} & set(options.units):
            raise InputError(
                f"{path.name} has no units",
                hint="State them, for example --unit power=W --unit energy=kWh.",
                slug="unit-needed",
            )
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e6), log)
        boundary = boundary_of(options.boundary, Boundary.WALL)
        held: dict[str, tuple[int, float, int]] = {}
        table = open_table(path, delimiter=",")
        for row in table.rows():
            entity, state, changed = [*row.fields, "", "", ""][:3]
            role = _role(entity, options)
            if role is None:
                continue
            try:
                stamp = parse_stamp(changed)
            except ValueError:
                log.add("stamp_unreadable", f"{changed!r} is no time stamp", f"line {row.line}")
                continue
            time_ns = stamp.ns if stamp.offset_s is None else stamp.utc_ns
            value = read_quantity(log, state, row.line)
            factor = _factor(options, role)
            if role == "energy":
                domain = Domain(
                    boundary=boundary, provenance=Provenance.MEASURED_COUNTER, meaning=Meaning.COUNTER, scale=factor
                )
                book.series(entity, domain).add(time_ns, value, row.line)
                continue
            before = held.get(entity)
            if before is not None and time_ns > before[0]:
                domain = Domain(boundary=boundary, scale=factor)
                book.series(entity, domain).add_interval(before[0], time_ns, before[1], before[2])
            held[entity] = (time_ns, value, row.line)
        for entity, (_, value, line) in held.items():
            if math.isfinite(value):
                log.add(
                    "last_value_open",
                    f"{entity}: the last state holds for an unknown time; left out",
                    f"line {line}",
                    Severity.INFO,
                )
                book.state(
                    f"{key_of(entity)}_last_power_w",
                    value * _factor(options, "power"),
                    Domain(boundary=boundary),
                    f"line {line}",
                )
        return recording_of(self.name, path, book)


def _role(entity: str, options: ReadOptions) -> str | None:
    for role in ("power", "energy"):
        named = options.columns.get(role)
        if role in options.units and (entity == named or (named is None and entity.endswith(f"_{role}"))):
            return role
    return None


def _factor(options: ReadOptions, role: str) -> float:
    try:
        unit = parse_unit(options.units[role])
    except ValueError:
        unit = None
    if unit is None or unit.kind != role:
        raise UsageError(
            f"{options.units[role]!r} is no unit of {role}", hint="For example W or kWh.", slug="unit-unknown"
        )
    return unit.factor
