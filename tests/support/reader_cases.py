"""Every reader with its seeds: main form, other forms, folders; what must be said to read them; where a value is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from form_files import FOLDERS, FORMS
from host_files import HOST_OPTIONS, HOST_SEEDS, HOST_VALUES
from joulemap.formats.base import ReadOptions
from recording_files import READ_OPTIONS, SEEDS, VALUE_FIELDS
from timeline_files import TIMELINE_OPTIONS, TIMELINE_SEEDS, TIMELINE_VALUES
from tracker_files import TRACKER_OPTIONS, TRACKER_SEEDS, TRACKER_VALUES
from value_fields import ValueField, digits, in_cell, in_column, in_jls, in_jls_v1, in_member, in_rails, raw

__all__ = ["CASES", "IN_A_CHILD", "Case"]

_NAME = "seed.dat"  # a name that says nothing

IN_A_CHILD = frozenset({"jls"})
"""Readers that work in a process of their own."""


@dataclass(frozen=True, slots=True)
class Case:
    """One recording of a format.

    Args:
        reader: registry name.
        files: gives the content by relative path.
        opened: what the user opens: a file, or ``.`` for the folder.
        options: what the user says.
        value: which file holds a value that can be told, and how it is changed; None when there is none.
        changed: how many values of one trace, lane or timeline such a change may change.
    """

    reader: str
    files: Callable[[], Mapping[str, bytes]]
    opened: str
    options: ReadOptions
    value: tuple[str, ValueField] | None = None
    changed: int = 1

    def write(self, folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
        """Writes the files (default: the seed's) below a folder and returns the path to open."""
        for name, body in (files or self.files()).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        return folder / self.opened


_SEEDS = {**SEEDS, **HOST_SEEDS, **TRACKER_SEEDS, **TIMELINE_SEEDS}
_OPTIONS: dict[str, dict[str, Any]] = {**READ_OPTIONS, **HOST_OPTIONS, **TRACKER_OPTIONS, **TIMELINE_OPTIONS}
_PLACES: dict[str, str | tuple[int, int, int]] = {**VALUE_FIELDS, **HOST_VALUES, **TRACKER_VALUES, **TIMELINE_VALUES}
_FIELDS: dict[str, ValueField] = {
    **{name: digits(place) if isinstance(place, str) else raw(*place) for name, place in _PLACES.items()},
    "jls": in_jls(1),
    "jls-v1": in_jls_v1(),
    "ppk2": in_member("session.raw", raw(0, 6, 300)),
    "sigrok": in_member("analog-1-3-1", raw(0, 4, 64)),
    "parquet": in_column("p"),
    "arrow": in_column("p"),
    "nsight-sqlite": in_cell("CUPTI_ACTIVITY_KIND_KERNEL", "end"),
    "perfetto": in_rails(),
}
_CHANGES_TWO = frozenset({
    "energytrace", "energibridge", "scaphandre", "prometheus", "dcgmi-dmon", "codecarbon", "perfetto", "ftrace",
    "batterystats",
})  # fmt: skip
"""Formats whose reading (a counter, the end of a state) bounds two intervals, or is told as charge and as energy."""
_FOLDER_VALUES = {"otii3": ("data/data/project/blob-mc/samples.dat", raw(0, 4, 240))}


def _single(name: str, seed: Callable[[], bytes], *, main: bool) -> Case:
    value = (_NAME, _FIELDS[name]) if main and name in _FIELDS else None
    changed = 2 if name in _CHANGES_TWO else 1
    return Case(name, lambda: {_NAME: seed()}, _NAME, ReadOptions(**_OPTIONS.get(name, {})), value, changed)


def _folder(name: str) -> Case:
    return Case(name, FOLDERS[name], ".", ReadOptions(**_OPTIONS.get(name, {})), _FOLDER_VALUES.get(name))


def _cases(name: str) -> tuple[Case, ...]:
    seeds = [_single(name, _SEEDS[name], main=True)] if name in _SEEDS else []
    seeds += [_single(name, seed, main=False) for seed in FORMS.get(name, ())]
    return tuple(seeds) + ((_folder(name),) if name in FOLDERS else ())


CASES: dict[str, tuple[Case, ...]] = {name: _cases(name) for name in sorted({*_SEEDS, *FOLDERS})}
"""Registry name -> its seeds, the main form first."""
