"""Marks of a program under test: named, nested stretches of its time, at well under a microsecond each.

It must not know who reads them, nor what power is.
"""

from joulemap.meters.live.marking.mark import Mark, instant
from joulemap.meters.live.marking.sink import MarkSink, current_sink, install_sink

__all__ = ["Mark", "MarkSink", "current_sink", "install_sink", "instant"]
