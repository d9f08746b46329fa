"""Independent random streams of one run, each named, all from the one seed that the user gave."""

from __future__ import annotations

import math
import zlib

import numpy as np

from joulemap.firmware.stages.policy import CONTRAST_LIMIT, RUN_TO_RUN_STD

__all__ = ["contrast_factors", "named_stream", "run_factor"]


def named_stream(seed: int, name: str, *indices: int) -> np.random.SeedSequence:
    """Returns the stream of that name; streams of different names or indices are independent.

    References:
        NumPy, "Parallel random number generation": spawn keys of SeedSequence.
    """
    return np.random.SeedSequence(entropy=seed, spawn_key=(zlib.crc32(name.encode()), *indices))


def run_factor(seed: int, repeat: int) -> float:
    """Returns the factor on the rail's power in that repeat: the board's run-to-run variation."""
    rng = np.random.default_rng(named_stream(seed, "run_factor", repeat))
    return 1.0 + RUN_TO_RUN_STD * float(rng.standard_normal())


def contrast_factors(seed: int, layers: int) -> tuple[float, ...]:
    """Returns a factor on each layer's power, log-uniform between 1/2 and 2."""
    rng = np.random.default_rng(named_stream(seed, "contrast"))
    limit = math.log(CONTRAST_LIMIT)
    return tuple(float(factor) for factor in np.exp(rng.uniform(-limit, limit, layers)))
