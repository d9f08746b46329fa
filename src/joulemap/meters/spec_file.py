"""Instrument declarations from TOML: strict, because a misspelt limit would be a silent claim of accuracy."""

from __future__ import annotations

import math
import tomllib
from dataclasses import fields
from pathlib import Path

from joulemap.errors import InputError
from joulemap.estimate import Provenance
from joulemap.records.instrument import ErrorDistribution, InstrumentSpec

__all__ = ["read_instrument_spec"]

_POSITIVE = ("rate_hz", "edge_rate_hz")
_TEXT = ("name", "source")
_DRIVER_SAYS = "provenance"
_KEYS = tuple(f.name for f in fields(InstrumentSpec) if f.name != _DRIVER_SAYS)
_NUMBERS = tuple(key for key in _KEYS if key not in (*_TEXT, "distribution"))
_SLUG = "instrument-file-invalid"


def read_instrument_spec(path: Path) -> InstrumentSpec:
    """Returns the declaration of a TOML file; every key of ``InstrumentSpec`` but ``provenance``, in SI units.

    Provenance is not a matter of limits: the driver that records sets it, and a file alone is ``simulated``.

    Raises:
        InputError: the file is missing or unreadable, or a key is missing, unknown, of the wrong type or out of range.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no instrument file {path}",
            hint="Give the path of a TOML file, or the name of a shipped instrument.",
            slug="instrument-file-missing",
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _refuse(path, f"cannot be read as TOML: {error}") from error
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
    number = {key: _number(path, key, document[key]) for key in _NUMBERS}
    return InstrumentSpec(
        name=document["name"],
        source=document["source"],
        distribution=distribution,
        provenance=Provenance.SIMULATED,
        **number,
    )


def _text(path: Path, key: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _refuse(path, f"{key} must be a non-empty string, got {value!r}")


def _number(path: Path, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse(path, f"{key} must be a plain number in the unit of its name, got {value!r}")
    low = "greater than 0" if key in _POSITIVE else "at least 0"
    if not math.isfinite(value) or value < 0 or (key in _POSITIVE and value == 0):
        raise _refuse(path, f"{key} must be finite and {low}, got {value!r}")
    return float(value)


def _near(key: str) -> str:
    """Returns a remark when the key is a known one in another unit (``rate_khz``)."""
    stem = key.rpartition("_")[0]
    known = [k for k in _NUMBERS if stem and (k.rpartition("_")[0] == stem or k == stem)]
    if known:
        return f": the unit is part of the name, write {known[0]!r}"
    return f"; the keys are {', '.join(_KEYS)}"


def _refuse(path: Path, what: str) -> InputError:
    return InputError(f"instrument file {path}: {what}", hint="docs/instruments.md lists every key.", slug=_SLUG)
