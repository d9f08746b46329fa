"""Powers of rows by ridge least squares over samples: every row keeps its own power, and so does what lies between.

A weak prior (mean power +-100 %) keeps what the samples do not say finite and honest; residuals that are not white
widen the covariance by their sums over neighbouring samples. Unlike the fit of a firmware run it knows no period, so
it takes any slices.

References:
    METHODS 1.5 in docs/methods.md. Liang and Zeger, Biometrika 73 (1986) (covariance that is robust to correlation
    inside clusters).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.whiteness import look_white

__all__ = ["RowFit", "Samples", "fit_rows"]

_MIN_CLUSTERS = 40
_ROUNDS = 12

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Samples as least squares sees them.

    Args:
        time_s: (n, rows + 1) time that each sample spends in each row, s; the last column is what lies between.
        energy_j: (n,) J.
        cluster: (n,) number of the neighbourhood whose samples may share an error.
    """

    time_s: Matrix
    energy_j: Matrix
    cluster: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFit:
    """Mean powers of the rows and of what lies between them.

    Args:
        power_w: (rows + 1,) W.
        covariance: (rows + 1, rows + 1) W², prior included.
        robust: (rows + 1, rows + 1) W², robust to correlation between neighbours; None while residuals are white.
        residual_std_j: of one sample, J.
        dof: samples less fitted parameters.
        white: the residuals look independent.
    """

    power_w: Matrix
    covariance: Matrix
    robust: Matrix | None
    residual_std_j: float
    dof: float
    white: bool

    def variance(self, weight_s: Matrix) -> float:
        """Returns the variance of ``weight_s @ power_w``, J²."""
        plain = float(weight_s @ self.covariance @ weight_s)
        robust = float(weight_s @ self.robust @ weight_s) if self.robust is not None else 0.0
        return max(plain, robust, 0.0)


def fit_rows(samples: Samples, noise_std_j: float) -> RowFit:
    """Returns the powers that fit the samples.

    Args:
        samples: at least one, of at least some time.
        noise_std_j: declared noise of one sample, J; the residual is not taken for less than a tenth of it.
    """
    time_s, energy_j = samples.time_s, samples.energy_j
    mean_w = float(energy_j.sum() / time_s.sum())
    scale_w = abs(mean_w) or 1.0
    gram = time_s.T @ time_s
    excess = time_s.T @ (energy_j - mean_w * time_s.sum(axis=1))
    noise = max(noise_std_j, 1e-12 * scale_w * float(time_s.sum(axis=1).mean()))
    floor = 0.1 * noise
    for _ in range(_ROUNDS):
        unit: Matrix = np.asarray(np.linalg.inv(gram + (noise / scale_w) ** 2 * np.eye(gram.shape[0])), np.float64)
        power_w = mean_w + unit @ excess
        residual = energy_j - time_s @ power_w
        dof = max(energy_j.size - float(np.sum(unit * gram)), 1.0)
        before, noise = noise, max(math.sqrt(float(residual @ residual) / dof), floor)
        if abs(noise / before - 1.0) < 1e-3:
            break
    white = look_white([residual])
    return RowFit(
        power_w=power_w,
        covariance=unit * noise**2,
        robust=None if white else _clustered(samples, residual, unit),
        residual_std_j=noise,
        dof=dof,
        white=white,
    )


def _clustered(samples: Samples, residual: Matrix, unit: Matrix) -> Matrix | None:
    """Returns the covariance from the residuals' sums over neighbourhoods, W²; None for too few of them."""
    numbers, cluster = np.unique(samples.cluster, return_inverse=True)
    if numbers.size < _MIN_CLUSTERS:
        return None
    score = np.zeros((numbers.size, unit.shape[0]))
    np.add.at(score, cluster, samples.time_s * residual[:, None])
    moved = score @ unit
    return np.asarray(moved.T @ moved * (numbers.size / (numbers.size - 1.0)), np.float64)
