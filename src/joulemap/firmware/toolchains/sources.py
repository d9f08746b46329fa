"""Which files and definitions one C file depends on: the closure of its ``#include`` lines.

It is what makes an object's cache key exact: a changed ``main.c`` or another ``-DN`` does not rebuild the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["CompileUnit", "plan_units"]

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(?:[<\"]([^>\"\n]+)[>\"])?", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileUnit:
    """One C file with everything that its object depends on.

    Args:
        name: the C file.
        files: it and the headers that it reaches, name -> text.
        defines: the definitions whose names occur in them, name -> value.
    """

    name: str
    files: Mapping[str, str]
    defines: Mapping[str, str]


def plan_units(files: Mapping[str, str], defines: Mapping[str, str]) -> tuple[CompileUnit, ...]:
    """Returns a unit per C file, ordered by name.

    A definition whose name occurs nowhere in a unit's text is not passed to that unit.

    Raises:
        ValueError: a file name leaves the source folder.
    """
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"source file {name} leaves the source folder")
    units = []
    for name in sorted(files):
        if not name.endswith(".c"):
            continue
        closure = _closure(name, files)
        words = {word for text in closure.values() for word in _WORD.findall(text)}
        used = {key: defines[key] for key in sorted(defines) if key in words}
        units.append(CompileUnit(name=name, files=closure, defines=used))
    return tuple(units)


def _closure(name: str, files: Mapping[str, str]) -> dict[str, str]:
    reached: dict[str, str] = {}
    pending = [name]
    while pending:
        current = pending.pop()
        if current in reached:
            continue
        reached[current] = files[current]
        for included in _INCLUDE.findall(files[current]):
            if not included:  # the name is computed by a macro: any file may be meant
                pending.extend(other for other in files if other.endswith((".h", ".inc")))
                continue
            for candidate in (str(PurePosixPath(current).parent / included), included):
                if candidate in files:
                    pending.append(candidate)
                    break
    return {key: reached[key] for key in sorted(reached)}
