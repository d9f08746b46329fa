"""What a recording says of pauses that were ordered: time that is in no figure and is no loss."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["stated_pause_s"]


def stated_pause_s(metadata: Mapping[str, str], channel: str) -> float:
    """Returns how much of a channel's trace is a gap because sampling was paused, s; 0 where the facts hold none."""
    try:
        paused_s = float(metadata.get(f"paused_s {channel}", "0"))
    except ValueError:
        return 0.0
    return paused_s if math.isfinite(paused_s) and paused_s > 0 else 0.0
