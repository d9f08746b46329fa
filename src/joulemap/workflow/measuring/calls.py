"""A function measured in each of its calls, whatever it is: plain, async, or one that yields."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["measure_calls", "run_to_its_end"]

_Result = TypeVar("_Result")


def measure_calls(function: Callable[..., Any], begin: Callable[[], Any]) -> Callable[..., Any]:
    """Returns the function with a measurement around each call.

    A generator is measured from its first item to its end, with what its caller does between the items.

    Args:
        function: any callable.
        begin: returns a new measurement.
    """
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def yield_async(*args: Any, **named: Any) -> Any:
            async with begin():
                async for item in function(*args, **named):
                    yield item

        return yield_async
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **named: Any) -> Any:
            async with begin():
                return await function(*args, **named)

        return run_async
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def yield_items(*args: Any, **named: Any) -> Any:
            with begin():
                return (yield from function(*args, **named))

        return yield_items

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        with begin():
            return function(*args, **named)

    return run


async def run_to_its_end(function: Callable[..., _Result], *args: object) -> tuple[_Result, bool]:
    """Returns what a function gives in a thread of its own, and whether the caller was cancelled meanwhile.

    What has begun is never left half done: a cancelled caller waits for the end of it.
    """
    task = asyncio.ensure_future(asyncio.to_thread(function, *args))
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled
