"""What to do about each finding, in the very words of docs/findings.md: ``cures.json`` is written from it by a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

__all__ = ["CURES"]

CURES: Mapping[str, str] = MappingProxyType(json.loads((files(__package__) / "cures.json").read_text("utf-8")))
"""Slug of a finding -> cure; backticks mean code, links are the paths of their pages."""
