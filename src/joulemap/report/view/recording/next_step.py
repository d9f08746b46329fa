"""The command that goes on from a bundle of recordings, with the flags that it cannot do without."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

__all__ = ["suggest_next"]


def suggest_next(document: Mapping[str, Any]) -> str:
    """Returns the next command of an import or a record document.

    Args:
        document: with ``bundle`` and ``recordings``.

    Returns:
        ``joulemap map``; of several traces or timelines the first is named, since the map would ask.
    """
    recordings = document["recordings"]
    outer = [
        trace["name"]
        for recording in recordings
        for trace in recording["traces"]
        if trace["channel"] not in {inner for inner, _ in recording["overlaps"]}
    ]
    if not outer:
        return "no power is in it: import it again, together with a recording of power"
    words = ["joulemap", "map", str(document["bundle"])]
    if [recording["published_rule"] for recording in recordings].count(True) == 1:
        words += ["--rule", "mlperf"]  # which says by itself what it is of
    else:
        timelines = [timeline["name"] for recording in recordings for timeline in recording["timelines"]]
        words += ["--trace", outer[0]] if len(outer) > 1 else []
        words += ["--timeline", timelines[0]] if len(timelines) > 1 else []
    return shlex.join(words)
