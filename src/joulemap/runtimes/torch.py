"""PyTorch programs exported with ``torch.export`` (``.pt2``): operator times by its profiler, nothing repeated.

An exported program is the only form that says what its inputs are; a pickled module is code and is not loaded.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError, SetupError, UsageError
from joulemap.records.host.campaign import OperatorTimes, TimeSource
from joulemap.records.host.model import HostModel, HostOperator, HostTensor
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Arrays, RuntimeSession, RuntimeTraits, Stamp
from joulemap.runtimes.graphs.feeding import check_arrays, refuse_precision, timed_runs

__all__ = ["TorchRuntime"]

_PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}


class TorchRuntime:
    """Loads ``.pt2`` files; implements ``runtimes.base.Runtime``."""

    traits = RuntimeTraits(
        name="torch",
        suffixes=(".pt2",),
        extra="torch",
        profiles=True,
        repeats=False,
        precisions=_PRECISIONS,
        providers=("cpu", "cuda"),
    )

    def version(self) -> str:
        """Returns the installed version.

        Raises:
            SetupError: it is not installed (``missing-extra``).
        """
        return str(_import().__version__)

    def open(self, request: SessionRequest, stamp: Stamp) -> TorchSession:
        """Returns a session; see ``runtimes.base.Runtime.open``."""
        torch = _import()
        refuse_precision("torch", request.precision, _PRECISIONS)
        device = request.provider.lower() or "cpu"
        if device not in self.traits.providers or (device == "cuda" and not torch.cuda.is_available()):
            raise UsageError(
                f"--provider {request.provider}: torch has no such device here",
                hint="one of: cpu, cuda where there is one",
                slug="runtime-option",
            )
        if request.threads is not None:
            torch.set_num_threads(request.threads)
        return TorchSession(request.model, device, stamp)


class TorchSession:
    """One loaded program; implements ``runtimes.base.RuntimeSession``."""

    def __init__(self, path: Path, device: str, stamp: Stamp) -> None:
        torch = _import()
        self._torch, self._path, self._device, self._stamp = torch, path, device, stamp
        if not zipfile.is_zipfile(path):  # torch itself would say so in many lines
            raise _unreadable(path, "it is no archive" if path.is_file() else "there is no such file")
        try:
            program = torch.export.load(str(path))
        except (OSError, RuntimeError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise _unreadable(path, str(error).splitlines()[0]) from error
        self._module = program.module().to(device)
        self._inputs = _inputs(program)
        self._call: Callable[[], object] | None = None
        self._operators: tuple[HostOperator, ...] = ()
        self._feed: Arrays = {}

    @property
    def model(self) -> HostModel:
        """What is executed; operators are known once inputs were fed."""
        data = self._path.read_bytes()
        return HostModel(
            name=self._path.stem,
            sha256=sha256(data).hexdigest(),
            size_b=len(data),
            inputs=self._inputs,
            outputs=(),
            operators=self._operators,
            constants_b=sum(p.numel() * p.element_size() for p in self._module.parameters()),
            runtime=f"torch {self._torch.__version__}",
        )

    @property
    def repeatable(self) -> frozenset[int]:
        """None: an exported program is not changed."""
        return frozenset()

    def feed(self, arrays: Arrays) -> None:
        """Takes the inputs and lists what is executed."""
        check_arrays(self._inputs, arrays)
        self._feed = dict(arrays)
        tensors = [self._torch.from_numpy(np.array(arrays[t.name])).to(self._device) for t in self._inputs]
        torch, module = self._torch, self._module

        def call() -> object:
            with torch.inference_mode():
                answer = module(*tensors)
            if self._device == "cuda":
                torch.cuda.synchronize()
            return answer

        self._call = call
        _, names, _ = self._watch(1)
        self._operators = tuple(
            HostOperator(index=k, op=name.removeprefix("aten::"), name=name, provider=self._device, dtype=self._dtype())
            for k, name in enumerate(names)
        )

    def _dtype(self) -> str:
        first = next(iter(self._module.parameters()), None)
        return "" if first is None else _DTYPES.get(str(first.dtype).removeprefix("torch."), "")

    def run(self, count: int) -> NDArray[np.float64]:
        """Executes the program and returns the latencies, (count,) s."""
        latency_s: NDArray[np.float64] = _guarded(lambda: timed_runs(self._call, count, self._stamp))
        return latency_s

    def profile(self, count: int) -> OperatorTimes:
        """Returns operator times by the profiler of torch; the first inference is cold and left out."""
        times_s, _, latency_s = self._watch(count + 1)
        size = len(self._operators)
        whole = size and len(times_s) == size * (count + 1)
        durations_s = np.array(times_s).reshape(count + 1, size)[1:] if whole else np.full((1, size), np.nan)
        return OperatorTimes(source=TimeSource.PROFILER, duration_s=durations_s, latency_s=latency_s[1:])

    def _watch(self, count: int) -> tuple[list[float], list[str], NDArray[np.float64]]:
        """Returns seconds and names of all top-level operators in order, and the latency of each inference, s."""
        profiler = self._torch.profiler
        assert self._call is not None  # inputs were fed
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as watched:
            latency_s: NDArray[np.float64] = _guarded(lambda: timed_runs(self._call, count, time.perf_counter_ns))
        top = [e for e in watched.events() if e.cpu_parent is None and str(e.name).startswith("aten::")]
        top.sort(key=lambda e: e.time_range.start)
        times_s = [(e.time_range.end - e.time_range.start) * 1e-6 for e in top]
        return times_s, [str(e.name) for e in top], latency_s

    def again(self) -> TorchSession:
        """Returns another session of the same program."""
        other = TorchSession(self._path, self._device, self._stamp)
        other.feed(self._feed)
        return other

    def repeated(self, operators: Sequence[int], copies: int) -> RuntimeSession:
        """Refuses: nothing of an exported program is repeatable.

        Raises:
            InputError: always (``model-unsupported``).
        """
        raise InputError(
            f"torch does not repeat operators ({len(operators)} of them, {copies} times)",
            hint="export the model to ONNX to have operators measured in place",
            slug="model-unsupported",
        )

    def bare(self) -> None:
        """Returns None: there is no program without operators."""

    def close(self) -> None:
        """Releases the program."""
        self._module = self._call = None


def _import() -> Any:
    try:
        import torch  # noqa: PLC0415  heavy, and an extra
    except ImportError as error:
        raise SetupError(
            "torch is not installed", hint="pip install 'joulemap[torch]'", slug="missing-extra"
        ) from error
    return torch


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name}: is no exported program ({why})",
        hint="write it with torch.export.save",
        slug="model-unreadable",
    )


def _inputs(program: Any) -> tuple[HostTensor, ...]:
    wanted = set(program.graph_signature.user_inputs)
    tensors = []
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in wanted:
            value = node.meta["val"]
            shape = tuple(d if isinstance(d, int) else str(d) for d in value.shape)
            dtype = str(value.dtype).removeprefix("torch.")
            tensors.append(HostTensor(name=node.name, dtype=dtype, shape=shape))
    return tuple(tensors)


def _guarded(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RuntimeError as error:
        raise InputError(
            f"torch refuses the program: {str(error).splitlines()[0]}",
            hint="export it again for this device",
            slug="model-unsupported",
        ) from error
