"""LiteRT (TensorFlow Lite's runtime) through its interpreter.

Its Python interface gives no operator profile: operator times come from repetition in place. It does give the
partition into delegates, and that is what tells where an operator ran.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import InputError, UsageError
from joulemap.records.host.campaign import InPlaceError
from joulemap.records.host.model import HostModel, HostOperator, HostTensor
from joulemap.records.host.request import SessionRequest
from joulemap.runtimes.base import Arrays, RuntimeTraits, Stamp
from joulemap.runtimes.graphs.feeding import check_arrays, refuse_precision, timed_runs
from joulemap.runtimes.graphs.tflite_graph import (
    LiteGraph,
    can_repeat,
    import_litert,
    list_operators,
    read_lite_graph,
)
from joulemap.runtimes.graphs.tflite_repetition import pack_bare, pack_repeated

__all__ = ["LiteRuntime"]

_IN_PLACE_ERROR = InPlaceError(relative=0.03, absolute_s=15e-9)
"""Limits from the models of ``benchmarks/bench_in_place.py``; every copy writes an output of the model more."""
_PRECISIONS = ("fp32", "fp16", "int8")
_PROVIDERS = ("xnnpack", "builtin")


class LiteRuntime:
    """Loads ``.tflite`` files; implements ``runtimes.base.Runtime``."""

    traits = RuntimeTraits(
        name="litert",
        suffixes=(".tflite",),
        extra="host",
        profiles=False,
        repeats=True,
        precisions=_PRECISIONS,
        in_place_error=_IN_PLACE_ERROR,
        providers=_PROVIDERS,
    )

    def version(self) -> str:
        """Returns the installed version.

        Raises:
            SetupError: it is not installed (``missing-extra``).
        """
        import_litert()
        from importlib.metadata import version  # noqa: PLC0415  only asked for once

        return version("ai-edge-litert")

    def open(self, request: SessionRequest, stamp: Stamp) -> LiteSession:
        """Returns a session; see ``runtimes.base.Runtime.open``."""
        refuse_precision("litert", request.precision, _PRECISIONS)
        if request.provider and request.provider.lower() not in _PROVIDERS:
            raise UsageError(
                f"--provider {request.provider}: litert has none of that name",
                hint=f"one of: {', '.join(_PROVIDERS)}",
                slug="runtime-option",
            )
        graph, data = read_lite_graph(request.model)
        return LiteSession(request, (graph, data, data), stamp, version=self.version())


class LiteSession:
    """One loaded model; implements ``runtimes.base.RuntimeSession``.

    Args:
        request: what was asked.
        content: graph and bytes of the file, and the bytes that run.
        stamp: the clock of latencies.
        version: of LiteRT.
        derived: the bytes are not those of the file.
    """

    def __init__(
        self,
        request: SessionRequest,
        content: tuple[LiteGraph, bytes, bytes],
        stamp: Stamp,
        *,
        version: str,
        derived: bool = False,
    ) -> None:
        self._request, self._stamp, self._version, self._derived = request, stamp, version, derived
        self._graph, self._file, self._content = content
        self._feed: dict[str, NDArray[np.generic]] = {}
        self._interpreter = _guarded(self._interpret)
        self._operators: tuple[HostOperator, ...] = ()
        self._shapes: dict[int, tuple[int, ...]] = {}

    def _interpret(self) -> Any:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: PLC0415  heavy, and an extra

        plain = self._request.provider.lower() == "builtin"
        kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else OpResolverType.AUTO
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Interpreter(
                model_content=self._content,
                num_threads=self._request.threads,
                experimental_op_resolver_type=kind,
            )

    @property
    def model(self) -> HostModel:
        """What is executed; shapes are known once inputs were fed."""
        return cast("HostModel", _guarded(self._describe))

    def _describe(self) -> HostModel:
        constants_b = sum(0 if b.data is None else len(b.data) for b in self._graph.buffers)
        return HostModel(
            name=Path(self._request.model).stem,
            sha256=sha256(self._file).hexdigest(),
            size_b=len(self._file),
            inputs=tuple(map(_tensor, self._interpreter.get_input_details())),
            outputs=tuple(map(_tensor, self._interpreter.get_output_details())),
            operators=self._operators,
            constants_b=constants_b,
            runtime=f"litert {self._version}",
        )

    @property
    def repeatable(self) -> frozenset[int]:
        """Operators without state."""
        return frozenset(o.index for o in self._operators if can_repeat(o))

    def feed(self, arrays: Arrays) -> None:
        """Takes the inputs, resizes those with open dimensions, and lists the operators."""
        check_arrays(_guarded(lambda: tuple(map(_tensor, self._interpreter.get_input_details()))), arrays)
        self._feed = dict(arrays)
        _guarded(self._allocate)
        if not self._derived:
            self._operators = _guarded(self._list)

    def _allocate(self) -> None:
        details = self._interpreter.get_input_details()
        for detail in details:
            if tuple(detail["shape"]) != self._feed[detail["name"]].shape:
                self._interpreter.resize_tensor_input(detail["index"], self._feed[detail["name"]].shape)
        self._interpreter.allocate_tensors()
        for detail in details:
            self._interpreter.set_tensor(detail["index"], self._feed[detail["name"]])

    def _list(self) -> tuple[HostOperator, ...]:
        self._shapes = {d["index"]: tuple(map(int, d["shape"])) for d in self._interpreter.get_tensor_details()}
        operators = list_operators(self._graph, self._shapes)
        delegated = _delegated(self._interpreter._get_ops_details(), len(operators))  # noqa: SLF001  no public way
        return tuple(
            replace(operator, provider="xnnpack" if operator.index in delegated else "builtin")
            for operator in operators
        )

    def run(self, count: int) -> NDArray[np.float64]:
        """Executes the model and returns the latencies, (count,) s."""
        latency_s: NDArray[np.float64] = _guarded(lambda: timed_runs(self._interpreter.invoke, count, self._stamp))
        return latency_s

    def profile(self, count: int) -> None:
        """Returns None: the Python interface has no operator profile."""
        del count

    def again(self) -> LiteSession:
        """Returns another session of the same model."""
        return self._derive(self._content)

    def repeated(self, operators: Sequence[int], copies: int) -> LiteSession:
        """Returns a session with the operators executed ``copies`` times."""
        places = {o.provider for o in self._operators}
        sliced = frozenset(o.index for o in self._operators if o.provider == "xnnpack" or len(places) == 1)
        session = self._derive(pack_repeated(self._graph, operators, copies, shapes=self._shapes, sliced=sliced))
        session.run(1)  # a delegate refuses what it cannot do no earlier
        return session

    def bare(self) -> LiteSession | None:
        """Returns a session without operators."""
        delegated = any(o.provider == "xnnpack" for o in self._operators)
        return self._derive(pack_bare(self._graph, shapes=self._shapes, delegated=delegated))

    def _derive(self, content: bytes) -> LiteSession:
        session = LiteSession(
            self._request, (self._graph, self._file, content), self._stamp, version=self._version, derived=True
        )
        session.feed(self._feed)
        return session

    def close(self) -> None:
        """Releases the model."""
        self._interpreter = None
        self._feed = {}


def _guarded(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:  # of a file that lies too
        said = str(error).strip().splitlines()
        raise InputError(
            f"LiteRT refuses the model: {said[0] if said else type(error).__name__}",
            hint="check it with the benchmark tool of LiteRT, or try --provider builtin",
            slug="model-unsupported",
        ) from error


def _tensor(detail: dict[str, Any]) -> HostTensor:
    signature = detail.get("shape_signature")
    shape = detail["shape"] if signature is None or not len(signature) else signature
    scales = detail["quantization_parameters"]["scales"]
    zeros = detail["quantization_parameters"]["zero_points"]
    return HostTensor(
        name=detail["name"],
        dtype=np.dtype(detail["dtype"]).name,
        shape=tuple(int(d) for d in shape),
        scale=float(scales[0]) if len(scales) else 0.0,
        zero_point=int(zeros[0]) if len(zeros) else 0,
        default=tuple(int(d) for d in detail["shape"]),
    )


def _delegated(nodes: Sequence[dict[str, Any]], count: int) -> frozenset[int]:
    """Returns the operators that a delegate took: what lies between its outputs and its inputs.

    Args:
        nodes: as the interpreter lists them: the model's own first, then the delegates.
        count: operators of the model.
    """
    own, delegates = nodes[:count], nodes[count:]
    producer = {int(t): k for k, node in enumerate(own) for t in node["outputs"]}
    taken: set[int] = set()
    for node in delegates:
        border = {int(t) for t in node["inputs"]}
        waiting = [int(t) for t in node["outputs"]]
        while waiting:
            index = producer.get(waiting.pop())
            if index is None or index in taken:
                continue
            taken.add(index)
            waiting += [int(t) for t in own[index]["inputs"] if int(t) not in border]
    return frozenset(taken)
