"""The simulated runtime: the operators of a real file, with declared times and powers on a virtual clock.

Two operators of one kind have different powers, drawn from the seed, so that a split by time alone is wrong by a known
amount. Times scale with multiply-accumulates and bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError
from joulemap.records.host.campaign import OperatorTimes, TimeSource
from joulemap.records.host.model import HostModel, HostOperator, HostTensor
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Arrays, RuntimeTraits, Stamp
from joulemap.runtimes.graphs.feeding import check_arrays
from joulemap.runtimes.simulated.virtual_host import VirtualHost

__all__ = ["HostTruth", "SimulatedRuntime", "SimulatedSpec"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSpec:
    """What the simulated machine is like.

    Args:
        macs_per_s: multiply-accumulates per second.
        bytes_per_s: bytes moved per second.
        launch_s: least time of an operator, s.
        call_s: time of a call outside its operators, s.
        busy_w: geometric mean power of an operator, W.
        spread: powers are drawn log-uniform from busy / spread to busy * spread.
        run_std: relative variation of power from run to run, 1 sd.
        jitter_std: relative variation of the time of one inference, 1 sd.
        cold: extra time of the first inference, relative; it fades within some tens of them.
        profiler_s: what the profiler adds to each operator, s.
        placement_std: relative variation of the time from session to session (where its memory lies), 1 sd.
        in_place: what a copy of an operator takes more than the operator itself, relative.
    """

    macs_per_s: float = 2e10
    bytes_per_s: float = 1e10
    launch_s: float = 2e-6
    call_s: float = 8e-6
    busy_w: float = 25.0
    spread: float = 2.0
    run_std: float = 0.002
    jitter_std: float = 0.005
    cold: float = 0.5
    profiler_s: float = 2e-7
    placement_std: float = 0.0
    in_place: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostTruth:
    """True figures of one inference at run factor 1. Never read by an analysis.

    Args:
        duration_s: (operators,) s.
        energy_j: (operators,) J.
        gap_s: outside operators, s.
        gap_j: the same, J.
        idle_w: of the machine, W.
    """

    duration_s: Floats
    energy_j: Floats
    gap_s: float
    gap_j: float
    idle_w: float

    @property
    def total_j(self) -> float:
        """Energy of one inference, J."""
        return float(self.energy_j.sum()) + self.gap_j


class SimulatedRuntime:
    """Implements ``runtimes.base.Runtime`` on a virtual host.

    Args:
        host: whose clock moves on; a new one when None.
        spec: what the machine is like.
        seed: of powers, variation and jitter.
    """

    traits = RuntimeTraits(
        name="simulated",
        suffixes=(".onnx", ".tflite"),
        extra="host",
        profiles=True,
        repeats=True,
        simulated=True,
    )

    def __init__(self, host: VirtualHost | None = None, *, spec: SimulatedSpec | None = None, seed: int = 0) -> None:
        self.host = host or VirtualHost()
        self.spec = spec or SimulatedSpec()
        self._seed = seed

    def version(self) -> str:
        """Returns the version of the simulation."""
        return "1"

    def open(self, request: SessionRequest, stamp: Stamp) -> SimulatedRuntimeSession:
        """Returns a session; the clock is the virtual host's own, whatever ``stamp`` is."""
        del stamp
        model = _read_model(request)
        return self.open_model(model)

    def open_model(self, model: HostModel) -> SimulatedRuntimeSession:
        """Returns a session of operators that are given directly."""
        return SimulatedRuntimeSession(model, self.host, self.spec, self._seed)


class SimulatedRuntimeSession:
    """Implements ``runtimes.base.RuntimeSession``; the truth is in :attr:`truth`."""

    def __init__(
        self,
        model: HostModel,
        host: VirtualHost,
        spec: SimulatedSpec,
        seed: int,
        *,
        copies: Sequence[int] | None = None,
    ) -> None:
        self.model = model
        self._host, self._spec, self._seed = host, spec, seed
        powers, self._variation = (np.random.default_rng([seed, k]) for k in (0, 1))
        macs = np.array([o.macs for o in model.operators], np.float64)
        held_b = np.array([o.bytes for o in model.operators], np.float64)
        self._duration_s = macs / spec.macs_per_s + held_b / spec.bytes_per_s + spec.launch_s
        draws = powers.uniform(-1.0, 1.0, macs.size)
        self._power_w = spec.busy_w * spec.spread**draws
        self._copies = np.ones(macs.size, np.int64) if copies is None else np.array(copies, np.int64)
        self._done, self._placement = 0, 1.0

    @property
    def truth(self) -> HostTruth:
        """Figures of one inference of the model as it is."""
        return HostTruth(
            duration_s=self._duration_s,
            energy_j=self._duration_s * self._power_w,
            gap_s=self._spec.call_s,
            gap_j=self._spec.call_s * self._gap_w,
            idle_w=self._host.idle_w,
        )

    @property
    def _gap_w(self) -> float:
        return 0.5 * (self._spec.busy_w + self._host.idle_w)

    @property
    def repeatable(self) -> frozenset[int]:
        """Every operator."""
        return frozenset(range(len(self.model.operators)))

    def feed(self, arrays: Arrays) -> None:
        """Checks the inputs; nothing reads them."""
        check_arrays(self.model.inputs, arrays)

    def run(self, count: int) -> Floats:
        """Lets ``count`` inferences pass on the virtual clock and returns their latencies, (count,) s."""
        return self._pass(count, added_s=0.0)[0]

    def profile(self, count: int) -> OperatorTimes:
        """Returns the operator times of ``count`` inferences, each a little longer for being watched."""
        latency_s, durations_s = self._pass(count, added_s=self._spec.profiler_s)
        return OperatorTimes(source=TimeSource.PROFILER, duration_s=durations_s, latency_s=latency_s)

    def again(self) -> SimulatedRuntimeSession:
        """Returns another session of the same model."""
        return self._derive(self._copies)

    def repeated(self, operators: Sequence[int], copies: int) -> SimulatedRuntimeSession:
        """Returns a session with the operators executed ``copies`` times."""
        changed = self._copies.copy()
        changed[list(operators)] = copies
        return self._derive(changed)

    def bare(self) -> SimulatedRuntimeSession:
        """Returns a session without operators."""
        return self._derive(np.zeros_like(self._copies))

    def _derive(self, copies: NDArray[np.int64]) -> SimulatedRuntimeSession:
        other = SimulatedRuntimeSession(self.model, self._host, self._spec, self._seed, copies=copies.tolist())
        other._variation = self._variation
        if self._spec.placement_std:
            other._placement = 1.0 + self._spec.placement_std * float(self._variation.standard_normal())
        return other

    def close(self) -> None:
        """Nothing is held."""

    def _pass(self, count: int, *, added_s: float) -> tuple[Floats, Floats]:
        executed = self._copies + np.maximum(self._copies - 1, 0) * self._spec.in_place
        pieces_s = np.concatenate([[self._spec.call_s], executed * (self._duration_s + added_s)]) * self._placement
        factor = 1.0 + self._spec.run_std * float(self._variation.standard_normal())
        pieces_w = np.concatenate([[self._gap_w], self._power_w]) * factor
        numbers = self._done + np.arange(count)
        self._done += count
        slower = self._jitter(count) + self._spec.cold * np.exp(-numbers / 8.0)
        durations_s = slower[:, None] * pieces_s
        self._host.work(durations_s.ravel(), np.tile(pieces_w, count))
        return durations_s.sum(axis=1), durations_s[:, 1:]

    def _jitter(self, count: int) -> Floats:
        """Returns factors of mean 1 with a long upper tail."""
        if not self._spec.jitter_std:
            return np.ones(count)
        shape = 1.0 / self._spec.jitter_std**2
        return self._variation.gamma(shape, 1.0 / shape, count)


def _read_model(request: SessionRequest) -> HostModel:
    if request.model.suffix == ".onnx":
        return _read_onnx(request)
    if request.model.suffix == ".tflite":
        return _read_lite(request)
    raise InputError(
        f"{request.model.name}: the simulated runtime reads .onnx and .tflite files",
        hint="give one of these",
        slug="model-unsupported",
    )


def _digest(request: SessionRequest) -> tuple[str, int]:
    data = request.model.read_bytes()
    return sha256(data).hexdigest(), len(data)


def _read_onnx(request: SessionRequest) -> HostModel:
    from joulemap.runtimes.graphs.onnx_shapes import describe_graph  # noqa: PLC0415  only for such a file

    inputs, outputs, operators, constants_b = describe_graph(request.model, request.batch)
    return _model(request, (inputs, outputs, operators), constants_b)


def _read_lite(request: SessionRequest) -> HostModel:
    from joulemap.runtimes.graphs.tflite_graph import (  # noqa: PLC0415  only for such a file
        list_operators,
        list_tensors,
        read_lite_graph,
    )

    graph, _ = read_lite_graph(request.model)
    tensors = list_tensors(graph)
    main = graph.subgraphs[0]
    shapes: dict[int, tuple[int, ...]] = {
        k: tuple(request.batch or 1 if isinstance(d, str) or d < 0 else d for d in t.shape)
        for k, t in enumerate(tensors)
    }
    operators = tuple(replace(o, provider="simulated") for o in list_operators(graph, shapes))
    ends = tuple(tuple(tensors[int(k)] for k in places) for places in (main.inputs, main.outputs))
    constants_b = sum(0 if b.data is None else len(b.data) for b in graph.buffers)
    return _model(request, (ends[0], ends[1], operators), constants_b)


def _model(
    request: SessionRequest,
    parts: tuple[tuple[HostTensor, ...], tuple[HostTensor, ...], tuple[HostOperator, ...]],
    constants_b: int,
) -> HostModel:
    digest, size_b = _digest(request)
    return HostModel(
        name=request.model.stem,
        sha256=digest,
        size_b=size_b,
        inputs=parts[0],
        outputs=parts[1],
        operators=parts[2],
        constants_b=constants_b,
        runtime="simulated 1",
    )
