"""Which backend integrates: the compiled one where it is there and the work pays for it."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from instrument_traces import build_trace
from joulemap.errors import SetupError
from joulemap.trace import integrate_energy


def test_a_backend_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)  # as on a machine without the extra
    trace, bounds = build_trace(np.ones(10)), (np.array([0]), np.array([1000]))
    with pytest.raises(SetupError, match="numba") as caught:
        integrate_energy(trace, *bounds, backend="numba")
    assert "joulemap[fast]" in caught.value.hint
    assert integrate_energy(trace, *bounds).energy_j[0] == pytest.approx(1e-6)


def test_small_work_is_done_without_numba() -> None:
    import subprocess
    import sys

    program = (
        "import sys, numpy as np\n"
        "from joulemap.estimate import Boundary, Provenance\n"
        "from joulemap.trace import *\n"
        "kernel = SensorKernel(kind=KernelKind.INTERVAL_MEAN, window_s=0.0)\n"
        "channel = Channel(name='r', boundary=Boundary.RAIL, provenance=Provenance.SIMULATED, kernel=kernel)\n"
        "clock = Clock(name='c', kind=ClockKind.LOCAL)\n"
        "trace = EnergyTrace(clock=clock, channel=channel, power_w=np.ones(1000), start_ns=0, period_s=1e-6)\n"
        "energy = integrate_energy(trace, np.array([0]), np.array([1000])).energy_j[0]\n"
        "print(round(energy * 1e9), 'numba' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1000", "False"]
