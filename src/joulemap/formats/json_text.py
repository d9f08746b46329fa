"""JSON as this house writes it: sorted, stable, full numbers, and never a number that JSON does not have."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NoReturn

__all__ = ["decode_json", "encode_json"]


def encode_json(document: object) -> bytes:
    """Returns the document as UTF-8 JSON: keys sorted, two spaces, one newline at the end, floats in full.

    What UTF-8 cannot hold (the bytes of a file name that is none) stands as JSON's own escape and reads back as it
    was.

    Args:
        document: mappings with text keys, lists, tuples, text, finite numbers, booleans and None.

    Raises:
        ValueError: a number is not finite; the message says where.
        TypeError: a key is not text or a value is none of these; the message says where.
    """
    _check(document, "$")
    return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def decode_json(data: bytes) -> object:
    """Returns the document.

    Raises:
        ValueError: not UTF-8, not JSON, nested too deeply, or with NaN or infinity.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _check(value: object, where: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}: JSON has no such number")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}: keys are text")
            _check(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            _check(item, f"{where}[{k}]")
    else:
        raise TypeError(f"{where} is a {type(value).__name__}: not a JSON value")
