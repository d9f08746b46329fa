"""Outputs of two sessions of one model, compared: whatever a model may give back."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_alike"]


def is_alike(one: Any, other: Any) -> bool:
    """Returns whether two outputs are the same: floats to rounding, all else exactly, lists and maps item by item."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_alike(one[key], other[key]) for key in one)
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))
    return bool(np.array_equal(a, b))
