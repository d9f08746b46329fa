"""Times of samples that follow a stamp now and then, as the LPM01A sends them in both of its forms."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, InputError

__all__ = ["stamped_times"]

_RATE_MAX_HZ: Final = 100_000.0


def stamped_times(stamps: list[tuple[int, int]], samples: int, rate_hz: float | None) -> tuple[NDArray[np.int64], int]:
    """Returns the time of each sample from the first stamp on, ns, and the sample period, ns.

    Args:
        stamps: (index of the sample that follows, ns) in order; samples before the first have no time.
        samples: how many there are.
        rate_hz: stated by the user; None to take it from the samples between stamps.

    Raises:
        InputError: no rate was stated and the stamps do not tell it.
        FormatError: the stated rate is impossible.
    """
    if rate_hz is not None and not 0 < rate_hz <= _RATE_MAX_HZ:
        raise FormatError(f"a rate of {rate_hz} Hz is impossible", hint="Say --rate in Hz.", slug="rate-impossible")
    marks = stamps or [(0, 0)]
    blocks = [(a, t, b, u) for (a, t), (b, u) in itertools.pairwise(marks) if b > a and u > t]
    if rate_hz is None and not blocks:
        raise InputError(
            "the log holds no two time stamps with samples between them, so it has no sample rate",
            hint="Say the acquisition frequency with --rate, in Hz.",
            slug="rate-needed",
        )
    usual_ns = 1e9 / rate_hz if rate_hz else float(np.median([(u - t) / (b - a) for a, t, b, u in blocks]))
    period_ns = max(round(usual_ns), 1)
    ends = [index for index, _ in marks[1:]] + [samples]
    parts = []
    for (index, start_ns), end in zip(marks, ends, strict=True):
        parts.append(start_ns + np.round(np.arange(max(end - index, 0)) * usual_ns).astype(np.int64))
    return np.concatenate(parts) if parts else np.zeros(0, np.int64), period_ns
