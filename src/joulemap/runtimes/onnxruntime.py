"""ONNX Runtime. What runs is its own optimised graph as it saves it, so that operators can be repeated in place.

Without that graph (an execution provider that does not save a loadable one, a model beyond 2 GB) the session runs the
file itself, tells operator times, and repeats nothing.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError, SetupError, UsageError
from joulemap.formats.base import ReadOptions
from joulemap.formats.timelines.onnxruntime_profile import OnnxRuntimeProfileReader
from joulemap.records.host.campaign import InPlaceError, OperatorTimes, TimeSource
from joulemap.records.host.model import HostModel, HostOperator, HostTensor
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Arrays, RuntimeTraits, Stamp
from joulemap.runtimes.graphs.feeding import check_arrays, refuse_precision, timed_runs
from joulemap.runtimes.graphs.onnx_events import describe_operator, node_positions, node_runs, written_b
from joulemap.runtimes.graphs.onnx_graph import (
    build_bare_graph,
    import_onnx,
    name_nodes,
    read_graph,
    serialise,
)
from joulemap.runtimes.graphs.onnx_repetition import order_nodes, repeat_nodes
from joulemap.runtimes.graphs.onnx_weights import Weights
from joulemap.runtimes.graphs.operator_runs import operator_runs
from joulemap.runtimes.graphs.outputs import is_alike

__all__ = ["OnnxRuntime"]

_Builder = Callable[[], Any]
_IN_PLACE_ERROR = InPlaceError(relative=0.10)
"""A limit from models of ``benchmarks/bench_in_place.py``: one just fits what a core gets of the last cache."""
_PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_NUMPY = {"float": "float32", "double": "float64"}
_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}


class OnnxRuntime:
    """Loads ``.onnx`` files; implements ``runtimes.base.Runtime``."""

    traits = RuntimeTraits(
        name="onnxruntime",
        suffixes=(".onnx",),
        extra="host",
        profiles=True,
        repeats=True,
        precisions=_PRECISIONS,
        in_place_error=_IN_PLACE_ERROR,
        providers=tuple(_PROVIDERS),
    )

    def version(self) -> str:
        """Returns the installed version.

        Raises:
            SetupError: it is not installed (``missing-extra``).
        """
        return str(_import().__version__)

    def open(self, request: SessionRequest, stamp: Stamp) -> OnnxRuntimeSession:
        """Returns a session; see ``runtimes.base.Runtime.open``."""
        refuse_precision("onnxruntime", request.precision, _PRECISIONS)
        wanted = _PROVIDERS.get(request.provider.lower(), request.provider)
        available = _import().get_available_providers()
        if wanted and wanted not in available:
            raise UsageError(
                f"--provider {request.provider}: this ONNX Runtime has none of that name",
                hint=f"it has: {', '.join(available)}",
                slug="runtime-option",
            )
        read_graph(request.model)  # a file that is no model is told apart from one that the runtime refuses
        setup = _Setup(threads=request.threads, providers=(wanted,) if wanted else ("CPUExecutionProvider",))
        return OnnxRuntimeSession(request.model, setup, stamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setup:
    threads: int | None
    providers: tuple[str, ...]
    reuse: bool = True  # values may take over the memory of others, where the runtime plans it so

    def open(self, model: bytes | Path, *, save: Path | None = None, profile: str = "", ordered: bool = True) -> Any:
        """Opens a file, which the runtime optimises, or the bytes of a graph, which runs as it is.

        Args:
            model: the file, or the bytes.
            save: where the runtime writes what it has made of the file.
            profile: start of the name of a profile; empty for none.
            ordered: a graph runs in the order of its nodes, else in the order that the runtime would take.
        """
        ort = _import()
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.enable_mem_reuse = self.reuse
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        if isinstance(model, bytes):
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            if ordered:
                options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
        if save is not None:
            options.optimized_model_filepath = str(save)
        if profile:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        given = str(model) if isinstance(model, Path) else model
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its errors there, where our result goes
            opened = _guarded(lambda: ort.InferenceSession(given, options, providers=list(self.providers)))
        if isinstance(model, bytes):
            opened._model_bytes = None  # noqa: SLF001  it would hold them, for a fallback, as long as it lives
        return opened


class OnnxRuntimeSession:
    """One loaded model; implements ``runtimes.base.RuntimeSession``. Inputs are fed before anything else."""

    def __init__(
        self, path: Path, setup: _Setup, stamp: Stamp, *, build: _Builder | None = None, derived: bool = False
    ) -> None:
        self._path, self._setup, self._stamp = path, setup, stamp
        self._build = build  # gives the optimised ModelProto with nodes named by position; None to run the file itself
        self._call: Callable[[], object] | None = None
        self._feed: dict[str, NDArray[np.generic]] = {}
        self._operators: tuple[HostOperator, ...] = ()
        self._nodes: tuple[int, ...] = ()  # index in the graph of each operator
        self._outputs_b: Mapping[int, int] = {}
        self._derived = derived
        self._expected: Sequence[Any] | None = None  # of the model as it is; None where each run has another one
        self._session = setup.open(self._source())

    @property
    def _graph(self) -> Any:
        """The graph; made anew where it differs from the model's, since it would take as much memory as the session."""
        return None if self._build is None else self._build()

    @property
    def model(self) -> HostModel:
        """What is executed; operators are known once inputs were fed."""
        digest, size_b = _digest(self._path)
        return HostModel(
            name=self._path.stem,
            sha256=digest,
            size_b=size_b,
            inputs=tuple(map(_tensor, self._session.get_inputs())),
            outputs=tuple(map(_tensor, self._session.get_outputs())),
            operators=self._operators,
            constants_b=size_b if self._build is None else _constants_b(self._build()),
            runtime=f"onnxruntime {_import().__version__}",
        )

    @property
    def repeatable(self) -> frozenset[int]:
        """Every operator, when the optimised graph could be loaded again."""
        return frozenset(range(len(self._operators))) if self._nodes else frozenset()

    def feed(self, arrays: Arrays) -> None:
        """Takes the inputs; the first time it also finds out which operators are executed."""
        check_arrays(tuple(map(_tensor, self._session.get_inputs())), arrays)
        self._feed = dict(arrays)
        self._bind()
        if not self._derived and not self._operators:
            self._settle()

    def _bind(self) -> None:
        self._call = functools.partial(self._session.run, None, self._feed)

    def answer(self) -> Sequence[Any]:
        """Returns the outputs of one execution."""
        answer: Sequence[Any] = _guarded(lambda: self._session.run(None, self._feed))
        return answer

    def _source(self) -> bytes | Path:
        if self._build is None:
            return self._path
        data = serialise(self._build())
        if data is None:
            raise InputError(
                f"{self._path.name}: is too large to be held in one piece", hint="", slug="model-unsupported"
            )
        return data

    def _settle(self) -> None:
        """Moves to the optimised graph where it loads and answers alike, and lists what is executed."""
        answer = self.answer()
        with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
            graph, names = self._optimised(Path(folder), answer)
        if graph is not None:
            self._build = lambda: graph
            self._session = self._setup.open(self._source())
            self._bind()
            first, second = self.answer(), self.answer()
            self._expected = first if _are_alike(first, second) else None
        events = self._events(1)[0]
        held = Weights.of(self._graph)
        self._operators = tuple(describe_operator(k, event, names, held) for k, event in enumerate(events))
        positions = node_positions(events)
        if graph is not None and positions is not None:
            self._nodes = tuple(positions)
            self._outputs_b = {
                position: written_b(event, graph.graph.node[position])
                for position, event in zip(positions, events, strict=True)
            }

    def _optimised(self, folder: Path, answer: Sequence[Any]) -> tuple[Any, list[str]]:
        """Returns the optimised graph, its nodes in the order in which they run, and what they were called."""
        saved = folder / "optimised.onnx"
        try:
            self._setup.open(self._path, save=saved)
            graph = read_graph(saved, self._path.parent)
            names = name_nodes(graph, list(self._feed))
            data = serialise(graph)
            if data is None:
                return None, []
            session = self._setup.open(data, profile=str(folder / "order"), ordered=False)
            again = session.run(None, self._feed)
        except (InputError, OSError):
            return None, []
        except Exception as error:
            if _is_refusal(error):
                return None, []
            raise
        if not _are_alike(answer, again):
            return None, []
        runs = node_runs(json.loads(Path(session.end_profiling()).read_text("utf-8")))
        before = order_nodes(graph, (node_positions(runs[0]) if runs else None) or ())
        name_nodes(graph, list(self._feed))
        return graph, [names[k] for k in before]

    def run(self, count: int) -> NDArray[np.float64]:
        """Executes the model and returns the latencies, (count,) s."""
        call = self._call
        latency_s: NDArray[np.float64] = _guarded(lambda: timed_runs(call, count, self._stamp))
        return latency_s

    def profile(self, count: int) -> OperatorTimes:
        """Returns operator times by ONNX Runtime's own profiler."""
        with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
            path = self._profiled(folder, count)
            recording = OnnxRuntimeProfileReader().read(path, ReadOptions())
            durations_s, latency_s = operator_runs(recording, whole="model_run", kind="operator")
        size = len(self._operators)
        if durations_s.shape[1] != size:
            durations_s = np.full((1, size), np.nan)
        return OperatorTimes(
            source=TimeSource.PROFILER,
            duration_s=durations_s[1:] if len(durations_s) > 1 else durations_s,  # the first one is cold
            latency_s=latency_s[1:] if latency_s.size > 1 else latency_s,
            providers=tuple(operator.provider for operator in self._operators),
            findings=recording.findings,
        )

    def _profiled(self, folder: str, count: int) -> Path:
        session = self._setup.open(self._source(), profile=str(Path(folder, "profile")))
        for _ in range(count + 1):
            _guarded(lambda: session.run(None, self._feed))
        return Path(session.end_profiling())

    def _events(self, count: int) -> list[list[dict[str, Any]]]:
        with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
            events = json.loads(self._profiled(folder, count).read_text("utf-8"))
        return node_runs(events)

    def again(self) -> OnnxRuntimeSession:
        """Returns another session of the same graph, or of the file where there is none."""
        return self._derive(self._build)

    def repeated(self, operators: Sequence[int], copies: int) -> OnnxRuntimeSession:
        """Returns a session with the operators executed ``copies`` times; refuses where that changes the answer."""
        nodes = [self._nodes[k] for k in operators]
        build = functools.partial(repeat_nodes, self._graph, nodes, copies)
        try:  # a plan for many copies takes memory that is farther away
            other = self._derive(functools.partial(build, outputs_b=self._outputs_b), reuse=False)
        except InputError:  # an output is no tensor, and none may read how large it is
            other = self._derive(functools.partial(build, outputs_b={}), reuse=False)
        try:
            alike = self._answers_alike(other)
        except BaseException:
            other.close()
            raise
        if not alike:
            other.close()
            raise InputError(f"{self._path.name}: then answers otherwise", hint="", slug="model-unsupported")
        return other

    def _answers_alike(self, other: OnnxRuntimeSession) -> bool:
        """Returns whether a session answers as the model does.

        Kernels that write to what they read show only in the second answer where the copies ran after the model.
        """
        if self._expected is None:
            other.answer()
            return True
        return all(_are_alike(self._expected, other.answer()) for _ in range(2))

    def bare(self) -> OnnxRuntimeSession | None:
        """Returns a session that only hands inputs over and constant outputs back; None without a graph."""
        graph = self._graph
        if graph is None:
            return None
        kinds = {value.name: value.type.tensor_type.elem_type for value in graph.graph.output}
        if not all(kinds.values()):
            return None  # a sequence or a map: no constant can stand for it
        answer = self.answer()
        described = [
            (value.name, kinds[value.name], np.asarray(array).shape)
            for value, array in zip(self._session.get_outputs(), answer, strict=True)
        ]
        return self._derive(functools.partial(build_bare_graph, graph, described))

    def _derive(self, build: _Builder | None, *, reuse: bool = True) -> OnnxRuntimeSession:
        setup = replace(self._setup, reuse=reuse)
        other = OnnxRuntimeSession(self._path, setup, self._stamp, build=build, derived=True)
        other.feed(self._feed)
        return other

    def close(self) -> None:
        """Releases the model."""
        self._session = self._call = self._build = self._expected = None
        self._feed = {}


def _import() -> Any:
    try:
        import onnxruntime  # noqa: PLC0415  heavy, and an extra
    except ImportError as error:
        raise SetupError(
            "onnxruntime is not installed", hint="pip install 'joulemap[host]'", slug="missing-extra"
        ) from error
    import_onnx()
    return onnxruntime


@functools.lru_cache(maxsize=4)
def _digest(path: Path) -> tuple[str, int]:
    """Returns SHA-256 and size of a file, read once a run."""
    data = path.read_bytes()
    return sha256(data).hexdigest(), len(data)


def _is_refusal(error: Exception) -> bool:
    """Returns whether it is one of ONNX Runtime's exceptions: its own share no class, its binding throws plain ones."""
    return type(error).__module__.startswith("onnxruntime") or isinstance(error, RuntimeError | UnicodeDecodeError)


def _guarded(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        if not _is_refusal(error):
            raise
        said = str(error).strip().splitlines()
        raise InputError(
            f"ONNX Runtime refuses the model: {said[0] if said else type(error).__name__}",
            hint="try another --provider, or check the model with onnx.checker",
            slug="model-unsupported",
        ) from error


def _tensor(value: Any) -> HostTensor:
    kind = str(value.type).removeprefix("tensor(").removesuffix(")")
    shape = tuple(d if isinstance(d, int | str) else -1 for d in value.shape)
    return HostTensor(name=value.name, dtype=_NUMPY.get(kind, kind), shape=shape)


def _are_alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(is_alike(a, b) for a, b in zip(one, other, strict=True))


def _constants_b(graph: Any) -> int:
    return sum(len(tensor.raw_data) or tensor.ByteSize() for tensor in graph.graph.initializer)
