"""A mark: a named stretch of time, nested as the program nests it, also across threads and tasks.

The hot path: one clock reading and a few words of mapped memory at either end. Which mark is around it is known per
context, so tasks that take turns on one thread do not become each other's parents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from time import monotonic_ns
from typing import Any, Final, Self, TypeVar, cast

from joulemap.errors import UsageError
from joulemap.meters.live.marking.calls import mark_calls
from joulemap.meters.live.marking.sink import LIVE, Segment, current_sink
from joulemap.records.live.mark_layout import END, NAME, PARENT, THREAD

__all__ = ["Mark", "instant"]

_around: Final[ContextVar[int]] = ContextVar("joulemap_mark", default=-1)
_LIVE: Final = LIVE  # a name of this module is found faster

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Mark:
    """``with mark("decode"):`` around what is to be seen; ``@mark("decode")`` over a function, async or not.

    One object stands for one stretch at a time. Outside a recording it does nothing.

    Args:
        name: of the stretch; equal names are one row of a map.
    """

    __slots__ = ("_at", "_outer", "_words", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._words: memoryview | None = None

    def __enter__(self) -> Self:
        segment = _LIVE.segment
        if segment is None:
            segment = _find_segment()
            if segment is None:
                return self
        words, claim, base, names = segment
        try:
            at = claim()
        except StopIteration:
            room = _find_room(segment)
            if room is None:
                return self
            words, base, names, at = room
        try:
            words[at + NAME] = names[self.name]
        except (KeyError, TypeError):  # new, or no text
            number = _intern(self.name)
            if number is None:
                return self
            words[at + NAME] = number
        outer = _around.get()
        words[at + PARENT] = outer
        if outer < 0:
            words[at + THREAD] = get_ident()
        self._outer = outer
        self._words = words
        self._at = at
        _around.set(base + at)
        words[at] = monotonic_ns()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        words = self._words
        if words is not None:
            self._words = None
            words[self._at + END] = monotonic_ns()
            _around.set(self._outer)

    def __call__(self, function: _Function = cast("Any", None), *_: object, **__: object) -> _Function:  # noqa: B008
        """Returns the function with this mark around each of its calls; of one that yields, around each step of it.

        Raises:
            UsageError: ``@joulemap.mark`` was written without a name (``mark-nameless``).
        """
        if callable(self.name) or not callable(function):
            raise UsageError(
                "a mark over a function has a name",
                hint='write @joulemap.mark("name") over the function',
                slug="mark-nameless",
            )
        return cast("_Function", mark_calls(function, functools.partial(Mark, self.name)))


def instant(name: str) -> None:
    """Marks one instant."""
    with Mark(name):
        pass


def _find_segment() -> Segment | None:
    """Returns where marks go when nothing is installed yet; None when nobody records them."""
    sink = current_sink()
    return None if sink is None else sink.segment


def _find_room(full: Segment) -> tuple[memoryview, int, dict[str, int], int] | None:
    """Returns words, base, names and a free place, after a segment was found full; None when there is no room."""
    sink = current_sink()
    return None if sink is None else sink.claim_room(full)


def _intern(name: object) -> int | None:
    """Returns the id of a name that is new, or of what is no text; None when there is no room for it."""
    sink = current_sink()
    return None if sink is None else sink.try_intern(name)
