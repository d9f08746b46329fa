"""Efficiency figures from energy, time and count.

References:
    METHODS 3 in docs/methods.md: what each figure means and what it must not be used for.
"""

from __future__ import annotations

from joulemap.estimate import Estimate, Quantity, Unavailable

__all__ = ["energy_delay_product", "frames_per_joule", "ops_per_joule"]


def frames_per_joule(energy_per_inference_j: Quantity) -> Quantity:
    """Returns inferences per joule (FPJ; the same as inferences per second per watt), 1/J."""
    if isinstance(energy_per_inference_j, Unavailable):
        return energy_per_inference_j
    return energy_per_inference_j.reciprocal() if energy_per_inference_j.value > 0 else Unavailable(reason="no_energy")


def ops_per_joule(energy_per_inference_j: Quantity, ops_per_inference: int) -> Quantity:
    """Returns operations per joule (the same as OP/s/W), a multiply-accumulate counted as two, 1/J."""
    if ops_per_inference == 0:
        return Unavailable(reason="no_ops")
    per_joule = frames_per_joule(energy_per_inference_j)
    return per_joule if isinstance(per_joule, Unavailable) else per_joule.scaled(float(ops_per_inference))


def energy_delay_product(energy_j: Estimate, latency_s: float, *, power: int = 1) -> Estimate:
    """Returns E D^n, J s^n: n = 1 is EDP, n = 2 is ED2P; the latency is taken as exact beside the energy.

    Args:
        energy_j: energy of one unit of work, J.
        latency_s: time of the same unit of work, s.
        power: n.
    """
    return energy_j.scaled(latency_s**power)
