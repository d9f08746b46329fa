"""Layer powers by least squares over samples that are longer than the layers, pooled over all captures.

Every layer keeps its own power, and so does the gap; a weak prior (mean power +-100 %) keeps what the samples do not
say finite and honest. A sum of layers that the samples do determine is read off with ``c'Cc``: merging layers instead
would bias those of unequal power. Power inside a layer need not be constant: it may wander, slowly over the layer and
from sample to sample, by as much as the data say, so that uneven layers widen the intervals and even ones do not. What
a neighbour may do inside a sample that it shares with a short layer is thereby in the interval of the short one.

References:
    METHODS 1.5 in docs/methods.md. Liang and Zeger, Biometrika 73 (1986)
    (covariance that is robust to correlation inside clusters). Rasmussen and Williams, Gaussian Processes for Machine
    Learning (2006), sections 2.2 and 5.4. MacKay, Neural Computation 4 (1992), section 4.3 (width of a prior from
    the data).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulemap.analysis.design import Rows
from joulemap.analysis.intervals.whiteness import look_white
from joulemap.analysis.unevenness import Unevenness

__all__ = ["PooledFit", "fit_pooled"]

_MIN_CLUSTERS = 40
_ROUNDS = 30
_SETTLED = 0.02
"""Relative change of noise and of the prior's widths below which they have been found."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledFit:
    """Mean powers of the regions.

    Args:
        power_w: (regions,) W.
        factor: (captures,) power of each capture relative to the mean of all.
        covariance: (regions, regions) W², prior included.
        robust: (regions, regions) W², robust to correlation inside an inference; None while residuals are white.
        residual_std_w: of one sample, W.
        dof: rows less fitted parameters.
        white: the residuals look independent.
        widths: relative unevenness inside a layer as the data have it, 1 sd: over the layer, and from sample to sample.
        shift_w_s: (captures, regions) W/s by which the powers move when the schedule of one capture is off.
    """

    power_w: Matrix
    factor: Matrix
    covariance: Matrix
    robust: Matrix | None
    residual_std_w: float
    dof: float
    white: bool
    widths: tuple[float, ...]
    shift_w_s: Matrix

    def variance(self, weight_s: Matrix) -> float:
        """Returns the variance of ``weight_s @ power_w``, J²."""
        plain = float(weight_s @ self.covariance @ weight_s)
        robust = float(weight_s @ self.robust @ weight_s) if self.robust is not None else 0.0
        return max(plain, robust, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Sufficient statistics of the rows, relative to the mean power: all that the powers need."""

    gram: Matrix  # (cells, cells)
    moment: Matrix  # (captures, cells)
    mean_w: float

    @classmethod
    def build(cls, rows: Rows) -> _Sums:
        if not rows.power_w.size:
            raise ValueError("least squares needs at least one sample")
        mean_w = float(rows.power_w.mean())
        gram = np.zeros((rows.cells.region.size, rows.cells.region.size))
        for _, cells, share in rows.blocks():
            np.add.at(gram, (cells[:, None], cells), share.T @ share)
        return cls(gram=gram, moment=_moments(rows, rows.power_w / mean_w), mean_w=mean_w)


def fit_pooled(rows: Rows, noise_std_w: float, *, widths: tuple[float, ...] | None = None) -> PooledFit:
    """Returns the powers that fit all captures together, each capture having its own overall factor.

    Args:
        rows: of the captures, at least one sample in all.
        noise_std_w: declared noise of one sample, W; the residual is not taken for less than a tenth of it.
        widths: unevenness inside the layers where it is known already; else the data decide.

    Raises:
        ValueError: there is no sample at all.
    """
    sums = _Sums.build(rows)
    mean_w, regions = sums.mean_w, rows.cells.regions
    shares = rows.cells.shares()
    uneven = Unevenness.build(rows.cells, float(rows.length.mean()) * rows.cells.inference_s)
    same = rows.cells.region[:, None] == rows.cells.region
    floor = max(noise_std_w / mean_w, 1e-9)
    noise, power = floor, np.ones(regions)
    factor: Matrix = np.ones(rows.captures)
    found = uneven.first if widths is None else widths
    for _ in range(_ROUNDS):
        prior = same + uneven.covariance(found, power)
        weighed = sums.gram / noise**2
        unit = np.linalg.solve(np.eye(prior.shape[0]) + prior @ weighed, prior)
        excess = ((sums.moment / factor[:, None]).sum(axis=0) - sums.gram.sum(axis=1)) / noise**2
        cell = 1.0 + unit @ excess
        power = shares @ cell
        explained = rows.explained(cell) * mean_w
        factor = _factors(rows, explained)
        residual = rows.power_w / factor[rows.capture] - explained
        dof = max(residual.size - float(np.sum(unit * weighed)) - (rows.captures - 1), 1.0)
        before = (noise, *found)
        noise = max(math.sqrt(float(residual @ residual) / dof) / mean_w, 0.1 * floor)
        if widths is None:
            found = uneven.better(found, power, weighed=weighed, unit=unit, excess=excess)
        if all(abs(new / old - 1.0) < _SETTLED for new, old in zip((noise, *found), before, strict=True)):
            break
    white = look_white(np.split(residual, np.flatnonzero(np.diff(rows.capture)) + 1))
    response = shares @ unit / before[0] ** 2
    robust = None if white else _clustered(rows, residual, response)
    return PooledFit(
        power_w=power * mean_w,
        factor=factor,
        covariance=shares @ unit @ shares.T * mean_w**2,
        robust=robust,
        residual_std_w=noise * mean_w,
        dof=dof,
        white=white,
        widths=found,
        shift_w_s=_moments(rows, rows.slope(cell)) @ response.T * (mean_w / rows.cells.inference_s),
    )


def _moments(rows: Rows, values: Matrix) -> Matrix:
    """Returns (captures, cells) sums over a capture's rows of a value (k,) times the shares of the cells."""
    own = np.zeros((values.size, rows.captures))
    own[np.arange(values.size), rows.capture] = values
    moment = np.zeros((rows.cells.region.size, rows.captures))
    for members, cells, share in rows.blocks():
        np.add.at(moment, cells, share.T @ own[members])
    return moment.T


def _factors(rows: Rows, explained: Matrix) -> Matrix:
    """Returns the overall factor of each capture that fits its rows best, of mean 1; 1 where it has no rows."""
    weight = np.bincount(rows.capture, explained**2, rows.captures)
    scaled = np.bincount(rows.capture, explained * rows.power_w, rows.captures)
    factor = np.divide(scaled, weight, out=np.ones_like(weight), where=weight > 0)
    return np.asarray(factor / factor.mean(), np.float64)


def _clustered(rows: Rows, residuals: Matrix, response: Matrix) -> Matrix | None:
    """Returns (regions, regions) W² from the residuals' sums over inferences; None for too few inferences.

    Args:
        rows: of the captures.
        residuals: (k,) W.
        response: (regions, cells) W of power for each W in the moment of a cell.
    """
    numbers, cluster = np.unique(rows.inference(), return_inverse=True)
    if numbers.size < _MIN_CLUSTERS:
        return None
    score = np.zeros((numbers.size, response.shape[1]))
    for members, cells, share in rows.blocks():
        np.add.at(score, (cluster[members, None], cells), share * residuals[members, None])
    moved = score @ response.T
    return np.asarray(moved.T @ moved * (numbers.size / (numbers.size - 1.0)), np.float64)
