"""Traces made of series of samples, and the dates of what a polled sensor showed."""

from __future__ import annotations

from joulemap.formats.ground.series.maker import TraceMaker

__all__ = ["TraceMaker"]
