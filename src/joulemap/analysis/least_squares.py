"""Layer powers by least squares over samples that are longer than the layers, pooled over all captures.

Every layer keeps its own column, and the gap has one; a weak prior (mean power +-100 %) keeps what the samples do
not say finite and honest. A sum of layers that the samples do determine is read off with ``c'Cc``: merging columns
instead would bias layers of unequal power. Power inside a layer need not be constant: its four quarters may differ,
by a prior whose width the data choose, so that uneven layers widen the intervals and even ones do not.

References:
    METHODS 1.5 in docs/methods.md. Ljung and Box, Biometrika 65 (1978). Liang and Zeger, Biometrika 73 (1986)
    (covariance that is robust to correlation inside clusters). MacKay, Neural Computation 4 (1992), section 4.3
    (width of a prior from the data).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.design import CONTRASTS, Rows
from joulemap.analysis.intervals.distributions import chi_square_sf

__all__ = ["PooledFit", "fit_pooled"]

_LAGS = 10
_WHITE = 1e-3
"""Residuals are called white while Ljung and Box's p-value is above this."""
_MIN_CLUSTERS = 40
_ROUNDS = 12
_TINY_GAP = 0.1
"""A gap shorter than this share of a sample is held at the mean power: it would only soak up what does not fit."""
_ALIKE = 0.5
"""Prior correlation of the same unevenness between layers: prologues and epilogues are made by one compiler."""
_SHAPE = (1e-3, 0.5)
"""Bounds of how far the quarters of a layer may differ from their mean, relative, 1 sd."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledFit:
    """Mean powers of the regions.

    Args:
        power_w: (regions,) W.
        factor: (captures,) power of each capture relative to the mean of all.
        unit: (regions, regions) covariance for a residual of 1 J per row, prior included.
        robust: (regions, regions) W², robust to correlation inside an inference; None while residuals are white.
        residual_std_j: of one row, J.
        dof: rows less fitted parameters.
        white: the residuals look independent.
        shape_std: relative unevenness inside a layer, 1 sd, as the data have it.
        held: (regions,) W by which each power moves when a gap that was held is off by its own mean power; else 0.
    """

    power_w: Matrix
    factor: Matrix
    unit: Matrix
    robust: Matrix | None
    residual_std_j: float
    dof: float
    white: bool
    shape_std: float
    held: Matrix

    def variance(self, weight_s: Matrix) -> float:
        """Returns the variance of ``weight_s @ power_w``, J²."""
        held = float(weight_s @ self.held) ** 2
        plain = float(weight_s @ self.unit @ weight_s) * self.residual_std_j**2
        robust = float(weight_s @ self.robust @ weight_s) if self.robust is not None else 0.0
        return max(plain, robust, 0.0) + held


@dataclass(slots=True, kw_only=True, eq=False)
class _Sums:
    """Sufficient statistics of the rows: everything that a fit needs but its residuals one by one."""

    gram: Matrix  # (captures, parameters, parameters) s²
    moment: Matrix  # (captures, parameters) J s
    square: Matrix  # (captures,) J²
    rows: int
    regions: int
    mean_w: float
    tiny_gap: bool  # a sample never shows it

    def squared_residual(self, parameters: Matrix, factor: Matrix) -> float:
        """Returns the sum of squared residuals, J², each capture divided by its factor."""
        cross = self.moment @ parameters / factor
        fitted = np.einsum("i,kij,j->k", parameters, self.gram, parameters)
        return max(float((self.square / factor**2 - 2.0 * cross + fitted).sum()), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prior:
    """What is believed of the parameters before a sample was seen, relative to the mean power.

    Args:
        regions: layers and the gap: each 1 +- 1, or exactly 1 for a gap that is held.
        size: regions and contrasts: these 0 +- shape_std, alike between layers to some degree.
        held: precision that holds the gap at the mean power; 0 to let it be fitted.
    """

    regions: int
    size: int
    held: float

    def precision(self, noise: float, shape_std: float) -> Matrix:
        """Returns the (size, size) prior precision in the unit of the gram, for a row noise relative to power, s."""
        precision = np.diag(np.full(self.size, noise**2))
        if self.held:
            precision[self.regions - 1, self.regions - 1] = self.held
        if self.size > self.regions:
            precision[self.regions :, self.regions :] = self._alike() * (noise / shape_std) ** 2
        return precision

    def shape_std(self, parameters: Matrix, shrink: Matrix, shape_std: float) -> float:
        """Returns the width of the contrasts' prior that fits them better (MacKay's fixed point).

        Args:
            parameters: (size,) relative to the mean power.
            shrink: (size, size) covariance times prior precision; its trace counts what the prior decides.
            shape_std: width so far.
        """
        contrasts = parameters[self.regions :]
        known = contrasts.size - float(np.diag(shrink)[self.regions :].sum())
        if known < 0.5:  # the samples say next to nothing of it: stay with what is plausible
            return shape_std
        width = math.sqrt(max(float(contrasts @ self._alike() @ contrasts), 0.0) / known)
        return min(max(width, _SHAPE[0]), _SHAPE[1])

    def _alike(self) -> Matrix:
        layers = self.regions - 1
        correlation = (1.0 - _ALIKE) * np.eye(layers) + _ALIKE
        return np.asarray(np.kron(np.eye(CONTRASTS), np.linalg.inv(correlation)), np.float64)


def fit_pooled(rows: Sequence[Rows], noise_std_j: float) -> PooledFit:
    """Returns the powers that fit all captures together, each capture having its own overall factor.

    Args:
        rows: one per capture, at least one sample in all.
        noise_std_j: declared noise of one row, J; the prior is weighed by the larger of it and the residual.

    Raises:
        ValueError: there is no sample at all.
    """
    sums = _sums(rows)
    regions, mean_w = sums.regions, sums.mean_w
    gram = sums.gram.sum(axis=0)
    prior = _Prior(regions=regions, size=gram.shape[0], held=1e9 * float(np.diag(gram).max()) if sums.tiny_gap else 0.0)
    center = np.where(np.arange(prior.size) < regions, mean_w, 0.0)
    floor_j = max(noise_std_j, 1e-9 * math.sqrt(float(sums.square.sum()) / sums.rows))
    factor: Matrix = np.ones(len(rows))
    residual_j, shape_std = floor_j, 0.1
    for _ in range(_ROUNDS):
        precision = prior.precision(residual_j / mean_w, shape_std)
        unit: Matrix = np.asarray(np.linalg.inv(gram + precision), np.float64)
        parameters: Matrix = center + unit @ ((sums.moment / factor[:, None]).sum(axis=0) - gram @ center)
        factor = _factors(sums, parameters)
        dof = max(sums.rows - float(np.trace(unit @ gram)) - (len(rows) - 1), 1.0)
        residual_j = max(math.sqrt(sums.squared_residual(parameters, factor) / dof), 0.1 * floor_j)
        shape_std = prior.shape_std(parameters / mean_w, unit @ precision, shape_std)
    residuals = [r.energy_j / f - r.design_s @ parameters for r, f in zip(rows, factor, strict=True)]
    white = _look_white(residuals)
    robust = None if white else _clustered(rows, residuals, unit)
    held = np.zeros(regions)
    if sums.tiny_gap:
        held = -(unit @ gram[:, regions - 1])[:regions] * mean_w
        held[-1] = mean_w
    return PooledFit(
        held=held,
        power_w=parameters[:regions],
        factor=factor,
        unit=unit[:regions, :regions],
        robust=None if robust is None else robust[:regions, :regions],
        residual_std_j=residual_j,
        dof=dof,
        white=white,
        shape_std=shape_std if prior.size > regions else 0.0,
    )


def _sums(rows: Sequence[Rows]) -> _Sums:
    size = sum(r.energy_j.size for r in rows)
    if not size:
        raise ValueError("least squares needs at least one sample")
    total_s = sum(float(r.time_s.sum()) for r in rows)
    gap_s = sum(float(r.time_s[:, -1].sum()) for r in rows)
    inferences = sum(int(np.ptp(r.cluster)) + 1 for r in rows if r.cluster.size)
    return _Sums(
        gram=np.stack([r.design_s.T @ r.design_s for r in rows]),
        moment=np.stack([r.design_s.T @ r.energy_j for r in rows]),
        square=np.array([float(r.energy_j @ r.energy_j) for r in rows]),
        rows=size,
        regions=rows[0].regions,
        mean_w=sum(float(r.energy_j.sum()) for r in rows) / total_s,
        tiny_gap=gap_s / inferences < _TINY_GAP * total_s / size,
    )


def _factors(sums: _Sums, parameters: Matrix) -> Matrix:
    """Returns the overall factor of each capture that fits its rows best, of mean 1; 1 where it has no rows."""
    weight = np.einsum("i,kij,j->k", parameters, sums.gram, parameters)
    scaled = sums.moment @ parameters
    factor = np.divide(scaled, weight, out=np.ones_like(weight), where=weight > 0)
    return np.asarray(factor / factor.mean(), np.float64)


def _look_white(residuals: Sequence[Matrix]) -> bool:
    """Returns whether Ljung and Box's statistic over the captures is one of independent residuals."""
    statistic, lags = 0.0, 0
    for residual in residuals:
        n = residual.size
        power = float(residual @ residual)
        if n <= 4 * _LAGS or power == 0:
            continue
        for lag in range(1, _LAGS + 1):
            correlation = float(residual[lag:] @ residual[:-lag]) / power
            statistic += n * (n + 2) * correlation**2 / (n - lag)
        lags += _LAGS
    return lags == 0 or chi_square_sf(statistic, lags) > _WHITE


def _clustered(rows: Sequence[Rows], residuals: Sequence[Matrix], unit: Matrix) -> Matrix | None:
    scores = []
    for row, residual in zip(rows, residuals, strict=True):
        if residual.size:
            first = np.flatnonzero(np.diff(row.cluster, prepend=row.cluster[0] - 1))
            scores.append(np.add.reduceat(row.design_s * residual[:, None], first, axis=0))
    score = np.concatenate(scores)
    if score.shape[0] < _MIN_CLUSTERS:
        return None
    return np.asarray(unit @ (score.T @ score) @ unit * (score.shape[0] / (score.shape[0] - 1.0)))
