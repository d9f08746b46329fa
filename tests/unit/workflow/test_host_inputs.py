"""What a model is fed: refused where it does not fit, doubted where it is no number."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import InputError
from joulemap.records.host.model import HostTensor
from joulemap.records.host.request import HostRequest, SessionRequest
from joulemap.workflow.host.inputs import build_inputs, doubt_inputs
from joulemap.workflow.host.services import open_services

X = HostTensor(name="x", dtype="float32", shape=(1, 4))


def test_a_batch_that_the_model_fixes_otherwise_is_refused_and_never_ignored() -> None:
    with pytest.raises(InputError) as caught:
        build_inputs([X], batch=3, file=None, seed=0)
    assert caught.value.slug == "batch-fixed"
    assert caught.value.exit_code == 6
    assert build_inputs([X], batch=1, file=None, seed=0)["x"].shape == (1, 4)
    sequence = HostTensor(name="x", dtype="float32", shape=(20, 2, 4))  # recurrent models have time first
    assert build_inputs([sequence], batch=2, file=None, seed=0)["x"].shape == (20, 2, 4)


def test_a_batch_that_the_file_of_inputs_contradicts_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((2, 4), np.float32))
    open_x = HostTensor(name="x", dtype="float32", shape=("N", 4))
    assert build_inputs([open_x], batch=2, file=tmp_path / "in.npz", seed=0)["x"].shape == (2, 4)
    with pytest.raises(InputError, match="--batch 8"):
        build_inputs([open_x], batch=8, file=tmp_path / "in.npz", seed=0)


def test_truth_values_and_arrays_beyond_those_of_boards_are_taken(tmp_path: Path) -> None:
    mask, large = np.array([True, False]), np.zeros((17 << 20,), np.float32)
    np.savez_compressed(tmp_path / "in.npz", mask=mask, large=large)
    tensors = [
        HostTensor(name="mask", dtype="bool", shape=(2,)),
        HostTensor(name="large", dtype="float32", shape=(-1,)),
    ]
    arrays = build_inputs(tensors, batch=None, file=tmp_path / "in.npz", seed=0)
    assert arrays["mask"].tolist() == [True, False]
    assert arrays["large"].nbytes == 68 << 20


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_inputs_that_are_no_numbers_are_doubted(odd: float) -> None:
    (doubt,) = doubt_inputs({"a": np.ones(2, np.float32), "b": np.array([1.0, odd], np.float16)})
    assert doubt.slug == "input_not_finite"
    assert "b" in doubt.message
    assert doubt_inputs({"a": np.ones(2, np.float32), "n": np.ones(2, np.int8)}) == ()


def test_a_model_that_is_no_regular_file_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")  # reading it would never end
    (tmp_path / "folder.onnx").mkdir()
    for name, what in (("pipe", "no regular file"), ("folder", "no regular file"), ("none", "no such file")):
        request = HostRequest(session=SessionRequest(model=tmp_path / f"{name}.onnx"), meters=("simulated",))
        with pytest.raises(InputError, match=what) as caught:
            open_services(request)
        assert caught.value.slug == "model-unreadable"
