"""Instrument declarations from TOML: strict, because a misspelt limit would be a silent claim of accuracy."""

from __future__ import annotations

import math
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from joulemap.errors import InputError
from joulemap.estimate import Provenance
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec

__all__ = ["read_instrument_spec"]

_LIMITS = {
    "rate_hz": (1e-3, 1e8),
    "gain_std": (0.0, 1.0),
    "offset_std_w": (0.0, 1e6),
    "noise_std_w": (0.0, 1e6),
    "quantum_w": (0.0, 1e6),
    "clock_std_ppm": (0.0, 1e5),
    "edge_rate_hz": (1e-3, 1e9),
    "edge_skew_std_s": (0.0, 1.0),
}
"""Lowest and highest value of each number: wider than any meter, and narrow enough that nothing overflows."""
_FILE_LIMIT_B = 64 * 1024
_TEXT = ("name", "source")
_DRIVER_SAYS = "provenance"
_KEYS = tuple(f.name for f in fields(InstrumentSpec) if f.name != _DRIVER_SAYS)
_SLUG = "instrument-file-invalid"


def read_instrument_spec(path: Path) -> InstrumentSpec:
    """Returns the declaration of a TOML file; every key of ``InstrumentSpec`` but ``provenance``, in SI units.

    Provenance is not a matter of limits: the driver that records sets it, and a file alone is ``simulated``.

    Raises:
        InputError: the file is missing or unreadable, or a key is missing, unknown, of the wrong type or out of range.
    """
    document = _read_toml(path)
    for key in document:
        if key not in _KEYS:
            raise _refuse(path, f"unknown key {key!r}{_near(key)}")
    for key in _KEYS:
        if key not in document:
            raise _refuse(path, f"key {key!r} is missing")
    for key in _TEXT:
        _text(path, key, document[key])
    try:
        distribution = ErrorDistribution(document["distribution"])
    except ValueError:
        words = ", ".join(ErrorDistribution)
        raise _refuse(path, f"distribution must be one of {words}, got {document['distribution']!r}") from None
    number = {key: _number(path, key, document[key]) for key in _LIMITS}
    return InstrumentSpec(
        name=document["name"],
        source=document["source"],
        distribution=distribution,
        provenance=Provenance.SIMULATED,
        **number,
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():  # a folder, a pipe, a device: to read it may never end
            raise _refuse(path, "is no regular file")
        with path.open("rb") as file:
            content = file.read(_FILE_LIMIT_B + 1)
        if len(content) > _FILE_LIMIT_B:
            raise _refuse(path, f"has more than {_FILE_LIMIT_B} bytes")
        return tomllib.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no instrument file {path}",
            hint="Give the path of a TOML file, or the name of a shipped instrument.",
            slug="instrument-file-missing",
        ) from None
    except (OSError, ValueError) as error:
        raise _refuse(path, f"cannot be read as TOML: {error}") from error
    except RecursionError as error:
        raise _refuse(path, "cannot be read as TOML: nested too deeply") from error


def _text(path: Path, key: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _refuse(path, f"{key} must be a non-empty string, got {value!r}")


def _number(path: Path, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse(path, f"{key} must be a plain number in the unit of its name, got {value!r}")
    lowest, highest = _LIMITS[key]
    low = "greater than 0" if lowest > 0 else "at least 0"
    if not 0 <= value < math.inf or value == 0 < lowest:
        raise _refuse(path, f"{key} must be finite and {low}, got {value!r}")
    if not lowest <= value <= highest:
        raise _refuse(path, f"{key} must lie between {lowest:g} and {highest:g}, got {value!r}")
    return float(value)


def _near(key: str) -> str:
    """Returns a remark when the key is a known one in another unit (``rate_khz``)."""
    stem = key.rpartition("_")[0]
    known = [k for k in _LIMITS if stem and (k.rpartition("_")[0] == stem or k == stem)]
    if known:
        return f": the unit is part of the name, write {known[0]!r}"
    return f"; the keys are {', '.join(_KEYS)}"


def _refuse(path: Path, what: str) -> InputError:
    return InputError(f"instrument file {path}: {what}", hint="docs/instruments.md lists every key.", slug=_SLUG)
