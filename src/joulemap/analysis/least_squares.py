"""Layer powers by least squares over samples that are longer than the layers, pooled over all captures.

Every layer keeps its own column, and the gap has one; a weak prior (mean power +-100 %) keeps what the samples do
not say finite and honest. A sum of layers that the samples do determine is read off with ``c'Cc``: merging columns
instead would bias layers of unequal power.

References:
    METHODS 1.5 in docs/methods.md. Ljung and Box, Biometrika 65 (1978). Liang and Zeger, Biometrika 73 (1986)
    (covariance that is robust to correlation inside clusters).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.capture import GatedCapture
from joulemap.analysis.distributions import chi_square_sf
from joulemap.analysis.schedule import LayerSchedule

__all__ = ["PooledFit", "Rows", "build_rows", "fit_pooled"]

_LAGS = 10
_WHITE = 1e-3
"""Residuals are called white while Ljung and Box's p-value is above this."""
_MIN_CLUSTERS = 40

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Samples of one capture that lie wholly inside GATE.

    Args:
        time_s: (k, regions) time of each sample inside each region, s.
        energy_j: (k,) energy of each sample, J.
        cluster: (k,) inference that holds the sample's middle.
    """

    time_s: Matrix
    energy_j: Matrix
    cluster: NDArray[np.int64]


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
    """

    power_w: Matrix
    factor: Matrix
    unit: Matrix
    robust: Matrix | None
    residual_std_j: float
    dof: float
    white: bool

    def variance(self, weight_s: Matrix) -> float:
        """Returns the variance of ``weight_s @ power_w``, J²."""
        plain = float(weight_s @ self.unit @ weight_s) * self.residual_std_j**2
        robust = float(weight_s @ self.robust @ weight_s) if self.robust is not None else 0.0
        return max(plain, robust, 0.0)


def build_rows(capture: GatedCapture, schedule: LayerSchedule, count: int) -> Rows:
    """Returns the rows of a capture: ``count`` inferences of the schedule from GATE's rise on."""
    end_s = min(capture.fall_s, capture.rise_s + count * schedule.period_s)
    samples = capture.inside(capture.rise_s, end_s)
    start_s = np.asarray(samples * capture.period_s - capture.rise_s, np.float64)
    if samples.size and samples[-1] - samples[0] == samples.size - 1:
        edges_s = np.append(start_s, start_s[-1] + capture.period_s)
        time_s = np.diff(schedule.region_time(edges_s), axis=0)
    else:
        end_of_s = np.asarray(start_s + capture.period_s, np.float64)
        time_s = schedule.region_time(end_of_s) - schedule.region_time(start_s)
    return Rows(
        time_s=np.maximum(time_s, 0.0),
        energy_j=capture.power_w(samples) * capture.period_s,
        cluster=np.floor((start_s + 0.5 * capture.period_s) / schedule.period_s).astype(np.int64),
    )


def fit_pooled(rows: Sequence[Rows], noise_std_j: float) -> PooledFit:
    """Returns the powers that fit all captures together, each capture having its own overall factor.

    Args:
        rows: one per capture, at least one sample in all.
        noise_std_j: declared noise of one row, J; the prior is weighed by the larger of it and the residual.

    Raises:
        ValueError: there is no sample at all.
    """
    if not sum(r.energy_j.size for r in rows):
        raise ValueError("least squares needs at least one sample")
    total_s = sum(float(r.time_s.sum()) for r in rows)
    mean_w = sum(float(r.energy_j.sum()) for r in rows) / total_s
    gram = [r.time_s.T @ r.time_s for r in rows]
    moment = [r.time_s.T @ r.energy_j for r in rows]
    total: Matrix = np.sum(gram, axis=0)
    scale_j = abs(mean_w) * total_s / sum(r.energy_j.size for r in rows)
    floor_j = max(noise_std_j, 1e-9 * scale_j)
    factor: Matrix = np.ones(len(rows))
    residual_j = floor_j
    for _ in range(2):
        prior = (residual_j / mean_w) ** 2
        unit: Matrix = np.asarray(np.linalg.inv(total + prior * np.eye(total.shape[0])), np.float64)
        pooled: Matrix = np.sum([m / f for m, f in zip(moment, factor, strict=True)], axis=0)
        power_w: Matrix = mean_w + unit @ (pooled - total @ np.full(total.shape[0], mean_w))
        factor = np.array([_factor(m, g, power_w) for m, g in zip(moment, gram, strict=True)])
        factor /= factor.mean()
        residuals = [r.energy_j / f - r.time_s @ power_w for r, f in zip(rows, factor, strict=True)]
        size = sum(r.size for r in residuals)
        dof = max(size - float(np.trace(unit @ total)) - (len(rows) - 1), 1.0)
        residual_j = max(math.sqrt(sum(float(r @ r) for r in residuals) / dof), 0.1 * floor_j)
    white = _look_white(residuals)
    return PooledFit(
        power_w=power_w,
        factor=factor,
        unit=unit,
        robust=None if white else _clustered(rows, residuals, unit),
        residual_std_j=residual_j,
        dof=dof,
        white=white,
    )


def _factor(moment: Matrix, gram: Matrix, power_w: Matrix) -> float:
    """Returns the overall factor of one capture that fits its rows best; 1 for a capture without rows."""
    weight = float(power_w @ gram @ power_w)
    return float(power_w @ moment) / weight if weight > 0 else 1.0


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
            scores.append(np.add.reduceat(row.time_s * residual[:, None], first, axis=0))
    score = np.concatenate(scores)
    if score.shape[0] < _MIN_CLUSTERS:
        return None
    return np.asarray(unit @ (score.T @ score) @ unit * (score.shape[0] / (score.shape[0] - 1.0)))
