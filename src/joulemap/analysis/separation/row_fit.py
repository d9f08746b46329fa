"""Powers of rows by ridge least squares over samples: every row keeps its own power, and so does what lies between.

A weak prior (mean power +-100 %) keeps what the samples do not say finite and honest. An uncertain clock is one or two
parameters more, with what is known of it as their prior. Where residuals follow each other they are taken for an
autoregression and whitened, since neighbours that share an error tell their difference better than either value; the
readings of a counter are summed up again instead, each being off by its own rounding. What is left correlated widens
the covariance by sums over neighbouring samples. Unlike the fit of a firmware run it knows no period, so it takes any
slices.

References:
    METHODS 1.5 in docs/methods.md. G. E. P. Box, G. M. Jenkins, G. C. Reinsel, Time Series Analysis (2008), 7.3
    (Yule and Walker), and D. Cochrane, G. H. Orcutt, J. Am. Stat. Assoc. 44 (1949) (whitened regression). G. Schwarz,
    Ann. Statist. 6 (1978) (order). Liang and Zeger, Biometrika 73 (1986) (covariance robust inside clusters).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.intervals.whiteness import look_white
from joulemap.analysis.separation.row_design import Samples

__all__ = ["Aside", "RowFit", "fit_rows", "residual_square"]

_MIN_CLUSTERS = 40
_ROUNDS = 12
_REFITS = 3
_CURVED = 0.35
"""How far off a straight extrapolation of the effect of errors in the design is taken to be, 1 sd, relative."""
_SINGULAR = 1e-11
"""Weight of the prior that rounding asks for where samples hold no noise at all."""
_BLOCK = 256
"""Samples, or neighbourhoods of them, at a time: they stay in the cache."""
_ORDER = 8
"""Longest memory of the noise that is looked for, samples."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aside:
    """Parameters beside the powers: how the samples answer to them, and what is known of them.

    Args:
        column: (n, k) J per unit of each parameter.
        mean: (k,) prior mean.
        std: (k,) prior standard deviation, > 0.
    """

    column: Matrix
    mean: Matrix
    std: Matrix


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFit:
    """Mean powers of the rows and of what lies between them.

    Args:
        power_w: (rows + 1,) W.
        aside: (k,) further parameters.
        covariance: (rows + 1 + k, rows + 1 + k) prior included.
        robust: the same, robust to correlation between neighbours; None while residuals are white.
        residual_std_j: of one sample, J.
        dof: samples less fitted parameters.
        white: the residuals look independent, whitened if need be.
        memory: order of the noise's autoregression; 0 for independent noise.
        inflation: variance of a sum of many residuals over that of independent ones.
    """

    power_w: Matrix
    aside: Matrix
    covariance: Matrix
    robust: Matrix | None
    residual_std_j: float
    dof: float
    white: bool
    memory: int
    inflation: float

    def variance(self, weight_s: Matrix) -> float:
        """Returns the variance of ``weight_s @ power_w``, J²."""
        own = slice(weight_s.size)
        plain = float(weight_s @ self.covariance[own, own] @ weight_s)
        robust = float(weight_s @ self.robust[own, own] @ weight_s) if self.robust is not None else 0.0
        return max(plain, robust, 0.0)

    def corrected(self, others_w: Matrix) -> RowFit:
        """Returns the fit freed of what errors in its design did to it, as further errors of the same size do it again.

        Args:
            others_w: (k, rows + 1) powers with further errors in the design, W, over the times they were taken for.

        References:
            J. R. Cook and L. A. Stefanski, J. Am. Stat. Assoc. 89 (1994) (simulation and extrapolation).
        """
        moved_w = others_w.mean(axis=0) - self.power_w
        spread_w = np.cov(others_w.T) + _CURVED**2 * np.outer(moved_w, moved_w)
        covariance = self.covariance.copy()
        covariance[: moved_w.size, : moved_w.size] += spread_w * (1.0 + 1.0 / others_w.shape[0])
        robust = None if self.robust is None else self.robust.copy()
        if robust is not None:
            robust[: moved_w.size, : moved_w.size] += spread_w
        return replace(self, power_w=self.power_w - moved_w, covariance=covariance, robust=robust)


def fit_rows(samples: Samples, noise_std_j: float, aside: Aside | None = None, *, rough: bool = False) -> RowFit:
    """Returns the powers that fit the samples.

    Args:
        samples: at least one, of at least some time.
        noise_std_j: declared noise of one sample, J; the residual is not taken for less than a tenth of it.
        aside: further parameters.
        rough: the powers alone are wanted, not what is uncertain of them.
    """
    system = _System.build(samples, aside, noise_std_j)
    value, unit, noise = system.solve(system.design, system.excess)
    design, residual, phi = system.design, system.excess - system.design @ value, np.empty(0)
    white = look_white([residual])
    if not white and samples.readings:
        design, excess = _summed(system.design), _summed(system.excess)
        told = system.solve(design, excess)
        left = excess - design @ told[0]
        white = look_white([left])
        (value, unit, noise), residual = (told, left) if white else ((value, unit, noise), residual)
        design = design if white else system.design
    if not white:
        for _ in range(_REFITS):
            phi = _autoregression(residual)
            if not phi.size:
                break
            value, unit, noise = system.solve(_whiten(system.design, phi), _whiten(system.excess, phi))
            residual = system.excess - system.design @ value
        design, residual = _whiten(system.design, phi), _whiten(residual, phi)
        white = look_white([residual])
    powers = samples.time_s.shape[1]
    spread = math.sqrt(float(np.mean((system.excess - system.design @ value) ** 2)))
    return RowFit(
        power_w=system.mean_w + value[:powers],
        aside=value[powers:],
        covariance=unit * noise**2,
        robust=None if white or rough else _clustered(design, residual, samples.cluster[phi.size :], unit),
        residual_std_j=max(spread, system.floor_j),
        dof=max(residual.size - float(np.sum(unit * (design.T @ design))), 1.0),
        white=white,
        memory=int(phi.size),
        inflation=_inflation(phi, noise, spread),
    )


def _inflation(phi: Matrix, noise_j: float, spread_j: float) -> float:
    if not phi.size:
        return 1.0
    share: float = noise_j / (1.0 - float(phi.sum())) / max(spread_j, 1e-300)
    return min(max(share * share, 1e-3), 1e6)


def _summed(columns: Matrix) -> Matrix:
    """Returns sums from the first sample on, centred: readings of a counter whose zero is not known."""
    until = np.cumsum(columns, axis=0)
    return np.asarray(until - until.mean(axis=0), np.float64)


def residual_square(samples: Samples) -> float:
    """Returns the mean square that is left of the samples by the powers that fit best, J²: to compare designs by."""
    scale = np.linalg.norm(samples.time_s, axis=0)
    used = scale > 1e-9 * float(scale.max())
    design = samples.time_s[:, used] / scale[used]
    gram = design.T @ design
    value = np.linalg.solve(gram + 1e-12 * np.eye(gram.shape[0]), design.T @ samples.energy_j)
    residual = samples.energy_j - design @ value
    return float(residual @ residual) / float(residual.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _System:
    """The regression with its prior, relative to the mean power."""

    design: Matrix
    excess: Matrix
    mean: Matrix  # prior mean of each parameter
    std: Matrix  # prior standard deviation of each parameter
    mean_w: float
    noise_j: float

    @classmethod
    def build(cls, samples: Samples, aside: Aside | None, noise_std_j: float) -> _System:
        time_s, energy_j = samples.time_s, samples.energy_j
        mean_w = float(energy_j.sum() / time_s.sum())
        scale_w = abs(mean_w) or 1.0
        powers = time_s.shape[1]
        mean, std, design = np.zeros(powers), np.full(powers, scale_w), time_s
        if aside is not None:
            design = np.hstack([time_s, aside.column])
            mean, std = np.append(mean, aside.mean), np.append(std, aside.std)
        noise_j = max(noise_std_j, 1e-12 * scale_w * float(time_s.sum(axis=1).mean()))
        excess = energy_j - mean_w * time_s.sum(axis=1)
        return cls(design=design, excess=excess, mean=mean, std=std, mean_w=mean_w, noise_j=noise_j)

    @property
    def floor_j(self) -> float:
        """Least residual that is believed, J."""
        return 0.1 * self.noise_j

    def solve(self, design: Matrix, excess: Matrix) -> tuple[Matrix, Matrix, float]:
        """Returns the parameters, their covariance per unit variance of the noise, and the noise, J."""
        gram, moment = design.T @ design, design.T @ excess
        noise, scale = self.noise_j, np.diag(gram)
        least = _SINGULAR * np.maximum(scale, float(scale.max(initial=0.0)) * _SINGULAR)
        for _ in range(_ROUNDS):
            weight = np.maximum((noise / self.std) ** 2, least)
            unit: Matrix = np.asarray(np.linalg.inv(gram + np.diag(weight)), np.float64)
            value = unit @ (moment + weight * self.mean)
            residual = excess - design @ value
            dof = max(residual.size - float(np.sum(unit * gram)), 1.0)
            before, noise = noise, max(math.sqrt(float(residual @ residual) / dof), self.floor_j)
            if abs(noise / before - 1.0) < 1e-3:
                break
        return value, unit, noise


def _autoregression(residual: Matrix) -> Matrix:
    """Returns the coefficients of the noise's memory by Yule and Walker, as many as Schwarz's criterion asks for."""
    n = residual.size
    most = min(_ORDER, n // 20)
    correlation = np.array([float(residual[lag:] @ residual[: n - lag]) for lag in range(most + 1)])
    if most < 1 or correlation[0] <= 0:
        return np.empty(0)
    correlation /= correlation[0]
    best, chosen, left = 0.0, np.empty(0), 1.0
    phi = np.empty(0)
    for order in range(1, most + 1):  # Durbin and Levinson
        reflect = (
            (correlation[order] - float(phi @ correlation[order - 1 : 0 : -1])) / left
            if order > 1
            else (correlation[1])
        )
        phi = np.append(phi - reflect * phi[::-1], reflect)
        left *= max(1.0 - reflect**2, 1e-12)
        criterion = n * math.log(left) + order * math.log(n)
        if criterion < best:
            best, chosen = criterion, phi
    return chosen if abs(float(chosen.sum())) < 0.995 else np.empty(0)


def _whiten(columns: Matrix, phi: Matrix) -> Matrix:
    """Returns the columns less what their own past says of them; the first samples have no past and go."""
    order = phi.size
    if not order:
        return columns
    white: Matrix = columns[order:].copy()
    for at in range(0, white.shape[0], _BLOCK):  # what is taken off stays in the cache
        part = white[at : at + _BLOCK]
        for lag, factor in enumerate(phi.tolist(), 1):
            part -= factor * columns[order + at - lag : order + at - lag + part.shape[0]]
    return white


def _clustered(design: Matrix, residual: Matrix, clusters: NDArray[np.int64], unit: Matrix) -> Matrix | None:
    """Returns the covariance from the residuals' sums over neighbourhoods; None for too few of them."""
    first = np.flatnonzero(np.diff(clusters, prepend=clusters[:1] - 1))  # neighbours stand together
    if first.size < _MIN_CLUSTERS:
        return None
    score = np.empty((first.size, unit.shape[0]))
    for at in range(0, first.size, _BLOCK):
        some = first[at : at + _BLOCK]
        part = slice(some[0], first[at + _BLOCK] if at + _BLOCK < first.size else residual.size)
        np.add.reduceat(design[part] * residual[part, None], some - some[0], axis=0, out=score[at : at + _BLOCK])
    moved = score @ unit
    return np.asarray(moved.T @ moved * (first.size / (first.size - 1.0)), np.float64)
