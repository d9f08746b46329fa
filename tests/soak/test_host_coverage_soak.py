"""The promise about operators of a host, counted over hundreds of simulated machines.

Every kind draws machines of its own: with the same seeds one unlucky set of gains and runs would be counted as often as
there are kinds.
"""

from __future__ import annotations

import pytest

from host_coverage import HostStudy, study_host
from joulemap.runtimes.simulated.meter import SimulatedMeterSpec, counter_spec, power_spec
from joulemap.runtimes.simulated.runtime import SimulatedSpec

pytestmark = pytest.mark.soak


@pytest.mark.parametrize(
    ("name", "first_seed", "meter", "machine"),
    [
        ("counter of 1 ms", 0, counter_spec(), SimulatedSpec()),
        ("counter of 20 ms", 10_000, counter_spec(update_period_s=0.02), SimulatedSpec()),
        ("power of 20 ms", 20_000, power_spec(), SimulatedSpec()),
        ("noisy machine", 30_000, counter_spec(gain_std=0.0005), SimulatedSpec(run_std=0.01, jitter_std=0.02)),
        ("contrast of 4", 40_000, counter_spec(), SimulatedSpec(spread=4.0)),
        ("sessions that differ", 50_000, counter_spec(gain_std=0.0005), SimulatedSpec(placement_std=0.02)),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_intervals_of_hundreds_of_machines(
    name: str, first_seed: int, meter: SimulatedMeterSpec, machine: SimulatedSpec
) -> None:
    result: HostStudy = study_host(400, first_seed=first_seed, meter=meter, machine=machine)
    print(f"\n{name}: {result}")  # noqa: T201  # figures for who runs the soak with -s
    assert result.covered >= 0.92
    assert result.above_idle_covered >= 0.92
    assert result.part_covered >= 0.93
    assert result.worst_part[1] >= 0.9
    assert result.closed >= 0.92
    assert result.width_ratio <= 1.25
    assert result.worst_width_ratio <= 1.25
