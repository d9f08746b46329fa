"""What rounding to a resolution leaves of a mean, however many readings it is made of."""

from __future__ import annotations

import math

__all__ = ["rounding_std"]

_HARMONICS = 1000
"""Beyond them lies less than a thousandth of the variance."""


def rounding_std(quantum: float, noise_std: float) -> float:
    """Returns the standard uncertainty that rounding leaves of a mean of many readings, in the unit of the quantum.

    Rounding errors average out only while the noise carries a steady value across the steps. Of a value of unknown
    place between two steps the mean rounding error has the Fourier components (-1)^k q / (pi k), each damped by
    exp(-2 pi^2 k^2 (noise / q)^2); without noise their variance is the q^2 / 12 of one reading.

    Args:
        quantum: resolution; 0 for none.
        noise_std: of one reading before it is rounded, 1 sd.

    References:
        Widrow and Kollar, Quantization Noise, 2008, ch. 4 (a dithered quantiser); JCGM 100:2008, F.2.2.1.
    """
    if not quantum or noise_std > quantum:
        return 0.0
    if not noise_std:
        return quantum / math.sqrt(12.0)
    damping = (2.0 * math.pi * noise_std / quantum) ** 2
    squares = (math.exp(-damping * k * k) / (k * k) for k in range(1, _HARMONICS))
    return quantum / math.pi * math.sqrt(0.5 * math.fsum(squares))
