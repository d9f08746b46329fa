"""A mark around the calls of a function, whatever it is: plain, async, or one that yields.

What yields is marked step by step, so that the time of its caller between two items is not its own, and marks that the
caller sets meanwhile are not inside it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["mark_calls"]

_Begin = Callable[[], AbstractContextManager[Any]]


def mark_calls(function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
    """Returns the function with a mark around each call, or each step.

    Args:
        function: any callable.
        begin: returns a new mark.
    """
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        def yield_async(*args: Any, **named: Any) -> Any:
            return _AsyncSteps(function(*args, **named), begin)

        return yield_async
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def yield_items(*args: Any, **named: Any) -> Any:
            return (yield from _Steps(function(*args, **named), begin))

        return yield_items
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **named: Any) -> Any:
            with begin():
                return await function(*args, **named)

        return run_async

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        with begin():
            return function(*args, **named)

    return run


class _Steps(Generator[Any, Any, Any]):
    """A generator each of whose steps is marked; ``next`` and ``for`` come with the base class."""

    def __init__(self, inner: Generator[Any, Any, Any], begin: _Begin) -> None:
        self._inner, self._begin = inner, begin

    def send(self, value: Any) -> Any:
        with self._begin():
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._begin():
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._begin():
            self._inner.close()


class _AsyncSteps(AsyncGenerator[Any, Any]):
    """The same of an asynchronous generator."""

    def __init__(self, inner: AsyncGenerator[Any, Any], begin: _Begin) -> None:
        self._inner, self._begin = inner, begin

    async def asend(self, value: Any) -> Any:
        with self._begin():
            return await self._inner.asend(value)

    async def athrow(self, *error: Any) -> Any:
        with self._begin():
            return await self._inner.athrow(*error)

    async def aclose(self) -> None:
        with self._begin():
            await self._inner.aclose()
