"""What least squares over the rows of a map rests on: enough to judge it by."""

from __future__ import annotations

from dataclasses import dataclass

from joulemap.estimate import Quantity

__all__ = ["RowFitFacts", "RowGroup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFitFacts:
    """Checks of the fit.

    Args:
        samples: used.
        columns: rows (and the time between them) that the samples meet.
        rank: of them that the samples tell apart.
        condition: of the design, columns scaled alike.
        dof: samples less fitted parameters.
        white: the residuals look independent, whitened if need be (Ljung and Box).
        noise_memory: order of the noise's autoregression; 0 for independent noise.
        residual_std_w: of one sample, W.
        closure: energy of the samples less that of all rows and the time between, over the former.
        closure_std: what noise makes of it, 1 sd.
        schedule_weight: 0 when stamps are taken as they are, 1 when the mean schedule replaced them.
        shift_s: by which the samples moved the schedule, s.
        shift_std_s: what stays uncertain of it, s; None when the samples did not place it.
        drift_ppm: of the schedule against the samples.
    """

    samples: int
    columns: int
    rank: int
    condition: float
    dof: float
    white: bool
    noise_memory: int
    residual_std_w: float
    closure: float
    closure_std: float
    schedule_weight: float
    shift_s: float
    shift_std_s: float | None
    drift_ppm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """Rows whose own energies can only be told as a sum.

    Args:
        keys: of the rows.
        contains_idle: the time between the rows is part of the sum.
        energy_j: sum of their self energies, J.
        self_s: sum of their own times, s.
    """

    keys: tuple[str, ...]
    contains_idle: bool
    energy_j: Quantity
    self_s: float
