"""A calibration record: a TOML file that says how one unit compared with a reference, when, and until when it holds."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from joulemap.errors import FormatError, InputError
from joulemap.records.mapping.calibration import Calibration

__all__ = ["read_calibration"]

_KEYS = (
    "instrument",
    "serial",
    "calibrated",
    "expires",
    "gain",
    "gain_std",
    "offset_w",
    "offset_std_w",
    "reference",
)


def read_calibration(path: Path) -> Calibration:
    """Returns the record of a file.

    Raises:
        InputError: the file cannot be read (``input-unreadable``).
        FormatError: it is no calibration record (``calibration-damaged``).
    """
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error})", hint="check the path", slug="input-unreadable"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, f"is no TOML ({error})") from error
    unknown = sorted(set(document) - set(_KEYS))
    if unknown:
        raise _damaged(path, f"has keys that mean nothing: {', '.join(unknown)}")
    try:
        return Calibration(
            instrument=str(document["instrument"]),
            serial=str(document.get("serial", "")),
            calibrated=_day(document["calibrated"]),
            expires=_day(document["expires"]),
            gain=float(document.get("gain", 1.0)),
            gain_std=float(document["gain_std"]),
            offset_w=float(document.get("offset_w", 0.0)),
            offset_std_w=float(document["offset_std_w"]),
            reference=str(document["reference"]),
        )
    except KeyError as error:
        raise _damaged(path, f"lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _day(value: Any) -> date:
    if type(value) is not date:
        raise ValueError(f"{value!r} is no day; write it without quotes, as 2026-05-04")
    return value


def _damaged(path: Path, what: str) -> FormatError:
    return FormatError(
        f"{path}: {what}", hint=f"a calibration record has the keys {', '.join(_KEYS)}", slug="calibration-damaged"
    )
