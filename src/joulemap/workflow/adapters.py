"""Marks from and to other tracers: NVTX and ITT ranges, OpenTelemetry spans. Each library is loaded when it is named.

``collect_nvtx()`` turns the ranges that a program already sets into marks; ``emit_ranges("nvtx")`` lets marks show in
Nsight or VTune too; ``span_processor()`` turns OpenTelemetry spans into marks.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, Self

from joulemap.errors import SetupError, UsageError
from joulemap.meters.live.marking import Mark

__all__ = ["RangeMark", "collect_nvtx", "emit_ranges", "span_processor"]

_INSTALL: Final = {
    "nvtx": "pip install nvtx",
    "ittapi": "pip install ittapi",
    "opentelemetry.sdk.trace": "pip install 'joulemap[otel]'",
}


def _load(module: str) -> ModuleType:
    """Returns a tracer's module.

    Raises:
        SetupError: it is not installed (``extra-missing``).
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError(f"{module} is not installed", hint=_INSTALL[module], slug="extra-missing") from error


class RangeMark:
    """A mark that is a range of another tracer too: ``with emit("decode"):``."""

    __slots__ = ("_mark", "_pop", "_push", "name")

    def __init__(self, name: str, push: Callable[[str], object], pop: Callable[[], object]) -> None:
        self.name = name
        self._push = push
        self._pop = pop
        self._mark = Mark(name)

    def __enter__(self) -> Self:
        self._push(self.name)
        self._mark.__enter__()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._mark.__exit__(kind, error, trace)
        self._pop()


def emit_ranges(tracer: str) -> Callable[[str], RangeMark]:
    """Returns what makes marks that the tracer sees as ranges too, in place of ``joulemap.mark``.

    Args:
        tracer: ``nvtx`` or ``itt``.

    Raises:
        UsageError: no such tracer (``tracer-unknown``).
        SetupError: its library is not installed (``extra-missing``).
    """
    if tracer == "nvtx":
        nvtx = _load("nvtx")
        return lambda name: RangeMark(name, nvtx.push_range, nvtx.pop_range)
    if tracer == "itt":
        itt = _load("ittapi")
        domain = itt.domain("joulemap")
        return lambda name: RangeMark(
            name, lambda text: itt.task_begin(domain, itt.string_handle(text)), lambda: itt.task_end(domain)
        )
    raise UsageError(f"no tracer is called {tracer!r}", hint="nvtx or itt", slug="tracer-unknown")


@contextmanager
def collect_nvtx(*modules: ModuleType) -> Iterator[None]:
    """Turns NVTX ranges of a program into marks while it is entered.

    Ranges are those of ``push_range``/``pop_range`` and of ``nvtx.annotate``, as a context manager and over functions;
    a function that was annotated before is seen only by NVTX.

    Args:
        modules: with ``push_range``/``pop_range`` or ``range_push``/``range_pop`` (``nvtx``, ``torch.cuda.nvtx``);
            ``nvtx`` when none is given.

    Raises:
        SetupError: ``nvtx`` is not installed (``extra-missing``).
        UsageError: a module has no such functions (``tracer-unknown``).
    """
    patched: list[tuple[object, str, Any]] = []

    def patch(owner: object, name: str, function: Callable[..., Any]) -> None:
        patched.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    try:
        for module in modules or (_load("nvtx"),):
            pairs = (("push_range", "pop_range"), ("range_push", "range_pop"))
            names = next((pair for pair in pairs if hasattr(module, pair[0])), None)
            if names is None:
                raise UsageError(
                    f"{module.__name__} sets no NVTX ranges", hint="nvtx or torch.cuda.nvtx", slug="tracer-unknown"
                )
            push, pop = (getattr(module, name) for name in names)
            for name, function in zip(names, _both(push, pop, str), strict=True):
                patch(module, name, function)
            annotate = getattr(module, "annotate", None)
            if isinstance(annotate, type):
                enter, leave = _both(annotate.__enter__, annotate.__exit__, _message)  # type: ignore[attr-defined]
                patch(annotate, "__enter__", enter)
                patch(annotate, "__exit__", leave)
                patch(annotate, "__call__", _over_functions(annotate.__call__))  # of its objects
        yield
    finally:
        for owner, name, original in reversed(patched):
            setattr(owner, name, original)


def _message(annotation: Any) -> str:
    """Returns what an ``nvtx.annotate`` was given as its message."""
    return str(getattr(annotation, "init_args", ("",))[0] or "annotate")


def _over_functions(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decorator of ``nvtx.annotate`` with a mark beside each range."""

    def call_both(annotation: Any, function: Any) -> Any:
        given = getattr(annotation, "init_args", (None,))[0]
        return Mark(str(given or function.__name__))(call(annotation, function))

    return call_both


def _both(
    push: Callable[..., Any], pop: Callable[..., Any], name_of: Callable[[Any], str]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns push and pop that set a mark beside the range."""
    open_marks = threading.local()

    def push_both(message: Any = "", *args: Any, **named: Any) -> Any:
        mark = Mark(name_of(message))
        mark.__enter__()
        stack = getattr(open_marks, "stack", None)
        if stack is None:
            stack = open_marks.stack = []
        stack.append(mark)
        return push(message, *args, **named)

    def pop_both(*args: Any, **named: Any) -> Any:
        done = pop(*args, **named)
        stack = getattr(open_marks, "stack", None)
        if stack:
            stack.pop().__exit__(None, None, None)
        return done

    return push_both, pop_both


def span_processor() -> Any:
    """Returns a span processor: ``provider.add_span_processor(joulemap.adapters.span_processor())``.

    Every span becomes a mark of its name, nested as the spans are; stamps are taken here, on the meters' clock.

    Raises:
        SetupError: OpenTelemetry is not installed (``extra-missing``).
    """
    trace = _load("opentelemetry.sdk.trace")

    class MarkingSpanProcessor(trace.SpanProcessor):  # type: ignore[misc, name-defined]  # a class of the library
        """Marks spans."""

        def __init__(self) -> None:
            self._open: dict[int, Mark] = {}

        def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002  the library's form
            mark = Mark(span.name)
            mark.__enter__()
            self._open[span.get_span_context().span_id] = mark

        def on_end(self, span: Any) -> None:
            mark = self._open.pop(span.get_span_context().span_id, None)
            if mark is not None:
                mark.__exit__(None, None, None)

    return MarkingSpanProcessor()
