"""Marks: nested, in threads, tasks and functions; on one clock; nothing when nobody records."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import joulemap
from joulemap.errors import UsageError
from joulemap.formats.ground.building import FindingLog
from joulemap.meters.live.marking import Mark, MarkSink, current_sink, install_sink, instant
from joulemap.trace import Slice
from mark_slices import by_name, slices


@pytest.mark.usefixtures("recorded")
def test_marks_nest_on_one_track(tmp_path: Path) -> None:
    before = time.monotonic_ns()
    with Mark("outer"):
        for _ in range(3):
            with Mark("inner"):
                pass
        instant("tick")
    found = by_name(tmp_path)
    (outer,) = found["outer"]
    assert [len(found[name]) for name in ("outer", "inner", "tick")] == [1, 3, 1]
    assert {piece.track for pieces in found.values() for piece in pieces} == {outer.track}
    assert all(outer.start_ns <= piece.start_ns <= piece.end_ns <= outer.end_ns for piece in found["inner"])
    assert before <= outer.start_ns <= outer.end_ns <= time.monotonic_ns()
    assert outer.kind == "mark"


@pytest.mark.usefixtures("recorded")
def test_an_exception_ends_its_marks(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Mark("outer"), Mark("inner"):
        raise RuntimeError
    log = FindingLog()
    assert len(slices(tmp_path, log)) == 2
    assert log.findings() == ()


@pytest.mark.usefixtures("recorded")
def test_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    barrier = threading.Barrier(2)

    def work(name: str) -> None:
        with Mark(name):
            barrier.wait()
            with Mark(f"{name} inside"):
                barrier.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = by_name(tmp_path)
    assert found["a"][0].track == found["a inside"][0].track
    assert found["b"][0].track == found["b inside"][0].track
    assert found["a"][0].track != found["b"][0].track


@pytest.mark.usefixtures("recorded")
def test_tasks_that_take_turns_are_not_nested(tmp_path: Path) -> None:
    async def work(name: str) -> None:
        with Mark(name):
            await asyncio.sleep(0)
            with Mark(f"{name} inside"):
                await asyncio.sleep(0)

    async def main() -> None:
        with Mark("all"):
            await asyncio.gather(work("a"), work("b"), work("c"))

    asyncio.run(main())
    found = by_name(tmp_path)
    tracks = {found[name][0].track for name in ("a", "b", "c")}
    assert len(tracks) == 3
    assert all(found[f"{name} inside"][0].track == found[name][0].track for name in ("a", "b", "c"))
    assert found["all"][0].track in tracks


@pytest.mark.usefixtures("recorded")
def test_slices_of_a_track_always_nest(tmp_path: Path) -> None:
    async def work(depth: int) -> None:
        with Mark(f"d{depth}"):
            await asyncio.sleep(0.0005 * depth)
            if depth:
                await asyncio.gather(work(depth - 1), work(depth - 1))

    asyncio.run(work(5))
    tracks: dict[str, list[Slice]] = {}
    for piece in slices(tmp_path):
        tracks.setdefault(piece.track, []).append(piece)
    for pieces in tracks.values():
        open_until: list[int] = []
        for piece in sorted(pieces, key=lambda p: (p.start_ns, -p.end_ns)):
            while open_until and open_until[-1] <= piece.start_ns:
                open_until.pop()
            assert not open_until or piece.end_ns <= open_until[-1]
            open_until.append(piece.end_ns)


@pytest.mark.usefixtures("recorded")
def test_functions_are_marked_by_a_decorator(tmp_path: Path) -> None:
    @joulemap.mark("twice")
    def twice(x: int) -> int:
        return 2 * x

    @joulemap.mark("later")
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        return 3 * x

    assert twice(4) == 8
    assert twice(5) == 10
    assert asyncio.run(later(2)) == 6
    found = by_name(tmp_path)
    assert len(found["twice"]) == 2
    assert len(found["later"]) == 1


def test_nothing_happens_when_nobody_records(tmp_path: Path) -> None:
    before = current_sink()
    install_sink(None)
    with Mark("x"):
        pass
    install_sink(before)
    assert list(tmp_path.iterdir()) == []


def test_a_mark_may_end_after_its_recording(tmp_path: Path) -> None:
    before = current_sink()
    first = MarkSink(tmp_path)
    install_sink(first)
    outer = Mark("outer")
    outer.__enter__()
    first.close()
    (tmp_path / "second").mkdir()
    second = MarkSink(tmp_path / "second")
    install_sink(second)
    with Mark("inner"):
        pass
    outer.__exit__(None, None, None)
    install_sink(before)
    second.close()
    (piece,) = slices(tmp_path / "second")
    assert piece.name == "inner"
    assert [p.name for p in slices(tmp_path)] == ["outer"]


def test_the_package_offers_names_late_and_no_others() -> None:
    assert joulemap.mark is Mark
    with pytest.raises(AttributeError, match="nothing_such"):
        joulemap.nothing_such  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.usefixtures("recorded")
def test_names_that_are_no_text_are_marks_too(tmp_path: Path) -> None:
    names: list[Any] = [3, 3.5, None, b"x", ("a", 1), ["list"], "\ud800", ""]
    for name in names:
        with Mark(name):
            pass
    assert sorted(by_name(tmp_path)) == sorted("\ud800" if n == "\ud800" else str(n) for n in names)


@pytest.mark.usefixtures("recorded")
def test_what_yields_is_marked_step_by_step_and_its_caller_is_outside(tmp_path: Path) -> None:
    @joulemap.mark("items")
    def items(first: int) -> Generator[int, int, str]:
        got = yield first
        try:
            yield got
        except KeyError:
            yield -1
        return "end"

    stepping = items(1)
    assert next(stepping) == 1
    with Mark("caller"):
        assert stepping.send(5) == 5
    assert stepping.throw(KeyError()) == -1
    with pytest.raises(StopIteration) as done:
        next(stepping)
    assert done.value.value == "end"
    found = by_name(tmp_path)
    assert len(found["items"]) == 4
    (caller,) = found["caller"]
    inside = [p for p in found["items"] if caller.start_ns <= p.start_ns <= p.end_ns <= caller.end_ns]
    assert len(inside) == 1
    assert {p.track for p in found["items"]} == {caller.track}


@pytest.mark.usefixtures("recorded")
def test_what_yields_is_closed_by_its_caller(tmp_path: Path) -> None:
    closed = []

    @joulemap.mark("items")
    def items() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append("plain")

    @joulemap.mark("async items")
    async def items_async() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.sleep(0)
            yield 2
        finally:
            closed.append("async")

    async def main() -> list[int]:
        left = items_async()
        await left.__anext__()
        await left.aclose()
        return [item async for item in items_async()]

    for _ in items():
        break
    assert asyncio.run(main()) == [1, 2]
    assert closed == ["plain", "async", "async"]
    found = by_name(tmp_path)
    assert {name: len(pieces) for name, pieces in found.items()} == {"items": 2, "async items": 5}


def test_a_mark_over_a_function_needs_a_name() -> None:
    def double(x: int) -> int:
        return 2 * x

    marked: Any = joulemap.mark(cast("Any", double))  # @joulemap.mark without a name

    for arguments in ((), (4,), (4, 5)):
        with pytest.raises(UsageError) as caught:
            marked(*arguments)
        assert caught.value.slug == "mark-nameless"


def test_an_exit_without_an_entry_does_nothing() -> None:
    Mark("x").__exit__(None, None, None)
