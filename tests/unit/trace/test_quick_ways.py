"""Ways that only save time give what the plain ways give."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from joulemap.analysis.separation.row_design import _elapsed, _share
from joulemap.analysis.separation.stretches import Stretches
from joulemap.formats.parquet import plain_values
from joulemap.trace.instants import order_slices


@pytest.mark.parametrize("origin_ns", [0, 17 * 10**17, -(1 << 62)])
def test_slices_are_ordered_as_by_two_keys(origin_ns: int) -> None:
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 50, 400):
        start_ns = rng.integers(0, 40, count) + origin_ns
        if count and origin_ns < 0:
            start_ns[0] = 1 << 62  # too far apart for one word
        end_ns = start_ns + rng.integers(0, 5, count)
        assert np.array_equal(order_slices(start_ns, end_ns), np.lexsort((-end_ns, start_ns)))


@pytest.mark.parametrize("step_ns", [8.0, 7.3])
def test_time_in_rows_is_that_of_each_row_by_itself(step_ns: float) -> None:
    rng = np.random.default_rng(2)
    for count in (0, 1, 5, 40):
        bounds = np.sort(rng.uniform(-50.0, 400.0, 2 * count)).round()
        row = rng.integers(0, 3, count)
        laid = Stretches(start_ns=bounds[::2], end_ns=bounds[1::2], row=row, inside_s=np.zeros((3, 3)))
        edges_ns = 10.0 + step_ns * np.arange(31, dtype=np.float64)
        time_ns = np.empty((30, 4))
        _share(laid, edges_ns, time_ns)
        alone = [np.diff(_elapsed(*laid.of(k), edges_ns)) for k in range(3)]
        assert np.allclose(time_ns[:, :3], np.stack(alone, axis=1), rtol=0.0, atol=1e-10)
        assert not time_ns[:, 3].any()


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint16", "float32", "float64"])
def test_numbers_of_an_array_are_those_that_it_shows(kind: str) -> None:
    array = pa.array(np.arange(9).astype(kind))
    assert plain_values(array[2:7]).tolist() == array[2:7].to_pylist()
    assert plain_values(array[2:7]).dtype == np.dtype(kind)
    assert plain_values(array[:0]).size == 0


def test_text_has_no_numbers() -> None:
    with pytest.raises(TypeError):
        plain_values(pa.array(["a"]))


def test_steps_are_loaded_where_a_pass_will_use_them_and_only_there() -> None:
    script = (
        "import sys\n"
        "from joulemap.trace.loading import load_steps\n"
        "load_steps(10)\n"
        "assert 'numba' not in sys.modules, 'loaded for nothing'\n"
        "load_steps(10**9)\n"
        "from joulemap.trace import kernels\n"
        "for step in (kernels.multiply_samples, kernels.fill_between):\n"
        "    assert step.signatures, 'not compiled'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
