"""Records as what JSON knows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum

import numpy as np

from joulemap.estimate import Estimate, Unavailable
from joulemap.records.finding import Finding

__all__ = ["plain"]


def plain(value: object) -> object:
    """Returns records, enums, mappings and arrays as JSON values; a number that is not finite becomes null."""
    if isinstance(value, Estimate | Unavailable | Finding):
        return value.to_json()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return _plain_builtin(value)


def _plain_builtin(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
