"""The virtual host: a clock that only work and rest move on, and the energy that left its rail until each instant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VirtualHost"]

Floats = NDArray[np.float64]


class VirtualHost:
    """Time and energy of a machine that runs one thing at a time.

    Args:
        idle_w: power while nothing runs, W.
        origin_ns: the clock's first instant, ns; not 0, so that nothing takes an instant for a duration.
    """

    def __init__(self, *, idle_w: float = 4.0, origin_ns: int = 1_000_000_000) -> None:
        self.idle_w = idle_w
        self._origin_ns = origin_ns
        self._times_s: list[Floats] = [np.zeros(1)]
        self._energies_j: list[Floats] = [np.zeros(1)]
        self._now_s = 0.0
        self._now_j = 0.0

    def now_ns(self) -> int:
        """Returns the present instant, ns."""
        return self._origin_ns + round(self._now_s * 1e9)

    def rest(self, duration_s: float) -> None:
        """Lets time pass at idle power."""
        self.work(np.array([duration_s]), np.array([self.idle_w]))

    def work(self, durations_s: Floats, powers_w: Floats) -> None:
        """Lets pieces of work pass one after another.

        Args:
            durations_s: (n,) s.
            powers_w: (n,) mean power of each, W.
        """
        times_s = self._now_s + np.cumsum(durations_s)
        energies_j = self._now_j + np.cumsum(durations_s * powers_w)
        self._times_s.append(times_s)
        self._energies_j.append(energies_j)
        self._now_s, self._now_j = float(times_s[-1]), float(energies_j[-1])

    def energy_j(self, at_ns: NDArray[np.int64]) -> Floats:
        """Returns the energy that had left the rail at each instant, (k,) J."""
        times_s, energies_j = np.concatenate(self._times_s), np.concatenate(self._energies_j)
        self._times_s, self._energies_j = [times_s], [energies_j]
        return np.asarray(np.interp((at_ns - self._origin_ns) * 1e-9, times_s, energies_j), np.float64)

    def forget(self) -> None:
        """Drops the past, which no recording needs any more; the clock and the energy go on."""
        self._times_s = [np.array([self._now_s])]
        self._energies_j = [np.array([self._now_j])]
