"""What to import and what the user says about it: flags by file, and what is refused before a file is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from joulemap.errors import UsageError
from joulemap.estimate import Boundary
from joulemap.formats.base import ReadOptions
from joulemap.formats.ground.building import boundary_of
from joulemap.workflow.recordings.stated_provenance import STATED

__all__ = ["ImportRequest", "check_request", "parse_stated"]

_ROLES = frozenset({"time", "power", "current", "voltage", "energy", "value", "ports"})
"""What readers take of ``--column`` and ``--unit``; ``power:gpu`` names a rail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What to import and what the user says about it.

    Args:
        paths: files and folders.
        options: for every reader.
        copy: embed traces however large their files are.
        embed_limit_b: size up to which they are embedded anyway, bytes; None for ``EMBED_LIMIT_B``.
        formats: path as given -> registry name; the key ``""`` holds for all.
        utc_offsets_s: path as given -> offset of its local stamps from UTC, s, in place of that of the options.
        provenances: path as given -> what its powers are at best, in place of that of the options.
    """

    paths: tuple[Path, ...]
    options: ReadOptions
    copy: bool = False
    embed_limit_b: int | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    utc_offsets_s: Mapping[str, float] = field(default_factory=dict)
    provenances: Mapping[str, str] = field(default_factory=dict)

    def options_of(self, path: Path) -> ReadOptions:
        """Returns what the user says about one of the paths."""
        given = str(path)
        return replace(
            self.options,
            utc_offset_s=self.utc_offsets_s.get(given, self.options.utc_offset_s),
            provenance=self.provenances.get(given, self.options.provenance),
        )


def check_request(request: ImportRequest) -> None:
    """Refuses what no reader would ever look at, and what would count a recording twice.

    Raises:
        UsageError: a role that no reader knows (``flag-form``), a provenance or boundary that does not exist, or a path
            that is given twice.
    """
    for stated in (request.options.provenance, *request.provenances.values()):
        if stated is not None and stated not in STATED:
            raise UsageError(
                f"--provenance {stated}: no such provenance", hint=f"one of: {', '.join(STATED)}", slug="flag-form"
            )
    boundary_of(request.options.boundary, Boundary.RAIL)
    for flag, pairs in (("--column", request.options.columns), ("--unit", request.options.units)):
        for role in pairs:
            if role.partition(":")[0] not in _ROLES:
                raise UsageError(
                    f"{flag} {role}=...: no role is called {role!r}",
                    hint=f"one of: {', '.join(sorted(_ROLES))}",
                    slug="flag-form",
                )
    seen: set[Path] = set()
    for path in request.paths:
        whole = Path(os.path.realpath(path))
        if whole in seen:
            raise UsageError(
                f"{path}: is given twice", hint="name each recording once: two would be summed", slug="flags-contradict"
            )
        seen.add(whole)


def parse_stated(flag: str, given: Sequence[str], paths: Sequence[Path]) -> dict[str, str]:
    """Returns what the user named by path: ``NAME`` for every input (key ``""``), ``FILE=NAME`` for one.

    Args:
        flag: as written.
        given: its values.
        paths: the inputs.

    Raises:
        UsageError: a file is named that is not imported, or a value is given twice for the same.
    """
    formats: dict[str, str] = {}
    known = {str(path) for path in paths}
    for text in given:
        file, mark, name = text.rpartition("=")
        if mark and file not in known:
            raise UsageError(
                f"{flag} {text}: {file} is not among the inputs",
                hint="write FILE=NAME with the path as given, or NAME for all",
                slug="flags-contradict",
            )
        if file in formats:
            raise UsageError(f"{flag} {text}: named twice", hint="give it once for a file", slug="flags-contradict")
        formats[file] = name
    return formats
