"""Marks: nested, in threads, tasks and processes; on one clock; nothing when nobody records."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import joulemap
from joulemap.errors import UsageError
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live import mark_tracks
from joulemap.formats.live.capture import MONOTONIC
from joulemap.formats.live.mark_tracks import place_marks
from joulemap.formats.live.marks import MarkTable, read_marks
from joulemap.meters.live.marking import Mark, MarkSink, current_sink, install_sink, instant
from joulemap.records.live.mark_layout import END, FOLDER_VARIABLE, SLOTS, START, WORDS
from joulemap.trace import Slice


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[MarkSink]:
    made = MarkSink(tmp_path)
    before = current_sink()
    install_sink(made)
    yield made
    install_sink(before)
    made.close()


def slices(folder: Path, log: FindingLog | None = None) -> list[Slice]:
    used = log or FindingLog()
    placed = place_marks(read_marks(folder, used), time.monotonic_ns(), used)
    return list(placed.timeline(MONOTONIC, np.ones(placed.start_ns.size, np.bool_)))


def by_name(folder: Path) -> dict[str, list[Slice]]:
    found: dict[str, list[Slice]] = {}
    for piece in slices(folder):
        found.setdefault(piece.name, []).append(piece)
    return found


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


@pytest.mark.usefixtures("recorded")
def test_more_marks_than_a_file_holds_go_to_the_next(tmp_path: Path) -> None:
    with Mark("outer"):
        for _ in range(SLOTS + 10):
            with Mark("inner"):
                pass
    (table,) = read_marks(tmp_path, FindingLog())
    assert len(table.words) == SLOTS + 11
    assert len(list(tmp_path.glob("*.marks"))) == 2
    found = by_name(tmp_path)
    assert len({piece.track for pieces in found.values() for piece in pieces}) == 1


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


@pytest.mark.usefixtures("recorded")
def test_forked_and_started_processes_mark_into_files_of_their_own(tmp_path: Path) -> None:
    with Mark("parent"):
        pid = os.fork()
        if pid == 0:
            with Mark("forked"):
                pass
            os._exit(0)
        os.waitpid(pid, 0)
        program = "import joulemap\nwith joulemap.mark('started'): pass"
        environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    tables = read_marks(tmp_path, FindingLog())
    assert len(tables) == 3
    assert len({table.pid for table in tables}) == 3
    found = by_name(tmp_path)
    assert {"parent", "forked", "started"} <= set(found)
    assert found["parent"][0].track != found["forked"][0].track


def test_a_killed_process_keeps_its_marks(tmp_path: Path) -> None:
    program = (
        "import joulemap, os, signal\n"
        "for _ in range(1000):\n    with joulemap.mark('step'): pass\n"
        "with joulemap.mark('last'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == -9
    log = FindingLog()
    found = slices(tmp_path, log)
    assert len(found) == 1001
    assert [finding.slug for finding in log.findings()] == ["mark_unclosed"]


def test_a_folder_that_is_gone_never_harms_the_program(tmp_path: Path) -> None:
    program = "import joulemap\nwith joulemap.mark('x'): print('fine')"
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path / "nothing")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"


@pytest.mark.usefixtures("recorded")
def test_damaged_mark_files_are_left_out_with_a_finding(tmp_path: Path) -> None:
    with Mark("good"):
        pass
    (tmp_path / "1-x.names").write_text("rubbish")
    (tmp_path / "2-y.names").write_text(
        json.dumps({"pid": 2, "program": "p", "clock": "monotonic", "base": 0}) + "\n[1"
    )
    words = np.zeros((3, WORDS), np.int64)
    words[1, START] = 5
    (tmp_path / "2-y-0.marks").write_bytes(words.tobytes()[:-8])
    log = FindingLog()
    found = slices(tmp_path, log)
    assert "marks_damaged" in [finding.slug for finding in log.findings()]
    assert sorted(piece.name for piece in found) == ["good", "unnamed"]


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


@pytest.mark.usefixtures("recorded")
def test_many_threads_that_find_a_file_full_at_once_lose_nothing(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(SLOTS // 4):
            with Mark("a"):
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    (table,) = read_marks(tmp_path, FindingLog())
    assert len(table.words) == 8 * SLOTS


def test_a_file_that_others_filled_meanwhile_is_followed_by_another(tmp_path: Path) -> None:
    sink = MarkSink(tmp_path)
    full = sink.segment
    following = sink.grow(full)
    for _ in range(SLOTS):
        following[1]()  # claimed by other threads before this one went on
    room = sink.claim_room(full)
    assert room is not None
    assert room[0] is sink.segment[0]
    assert len(list(tmp_path.glob("*.marks"))) == 3
    sink.close()


def test_a_full_disk_loses_marks_and_never_the_program(tmp_path: Path) -> None:
    sink = MarkSink(tmp_path)
    before = current_sink()
    install_sink(sink)
    with Mark("known"):
        pass
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / f"{sink.token}.names").stat().st_size, limits[1]))
    try:
        with Mark("new"), Mark("known"):
            pass
        for _ in range(SLOTS):
            with Mark("known"):
                pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
        install_sink(before)
        sink.close()
    found = by_name(tmp_path)
    assert set(found) == {"known"}
    assert sink.lost == 4  # one whose name, and three whose place had no room
    assert len(found["known"]) == SLOTS - 1
    log = FindingLog()
    slices(tmp_path, log)
    (said,) = log.findings()
    assert said.slug == "marks_lost"
    assert f" {os.getpid()}: the disk had no room for 4 of its marks" in said.message


@pytest.mark.parametrize("room", ["none", "name", "file"])
def test_a_process_that_had_no_room_for_any_mark_is_told(room: str, tmp_path: Path) -> None:
    head = json.dumps({"pid": 77, "program": "p.py", "clock": "monotonic", "base": 0}) + "\n"
    (tmp_path / "77-abc.names").write_text("" if room == "none" else head)
    if room == "file":
        (tmp_path / "77-abc-0.marks").write_bytes(b"")
    log = FindingLog()
    assert slices(tmp_path, log) == []
    told = [(finding.slug, finding.message) for finding in log.findings()]
    program = "process" if room == "none" else "p.py"
    assert told == (
        [] if room == "file" else [("marks_lost", f"{program} 77: the disk had no room for any of its marks")]
    )


def test_a_limit_on_files_is_no_harm_and_is_told(tmp_path: Path) -> None:
    program = "import joulemap\nfor _ in range(3):\n    with joulemap.mark('x'): pass\nprint('fine')"
    shell = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-c", program]
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
    log = FindingLog()
    assert slices(tmp_path, log) == []
    assert [finding.slug for finding in log.findings()] == ["marks_lost"]


def test_marks_that_nest_are_placed_alike_one_by_one_and_as_columns() -> None:
    """Random programs of threads and nested marks, some of them torn so that they do not nest."""
    ways = set()
    for seed in range(300):
        draw = np.random.default_rng(seed)
        rows: list[list[int]] = []
        at = 1
        stacks: list[list[int]] = [[] for _ in range(int(draw.integers(1, 4)))]
        for _ in range(int(draw.integers(1, 30))):
            at += int(draw.integers(0, 3))
            thread = int(draw.integers(len(stacks)))
            stack = stacks[thread]
            if stack and draw.random() < 0.5:
                rows[stack.pop()][END] = at
            else:
                row = [at, 0, 0, stack[-1] * WORDS if stack else -1, 0 if stack else thread + 5]
                stack.append(len(rows))
                rows.append(row)
        if draw.random() < 0.3:
            rows[int(draw.integers(len(rows)))][END] = at + 9
        words = np.array(rows, np.int64)
        table = MarkTable(program="p", pid=1, names={}, words=words, place=np.arange(len(rows)) * WORDS)
        sorted_rows = mark_tracks._Rows.of(table, at + 3)
        nested = mark_tracks._nested_tracks(sorted_rows, "p 1")
        track, names = mark_tracks._searched_tracks(sorted_rows, "p 1")
        ways.add(nested is None)
        if nested is not None:
            assert nested[1] == names
            assert nested[0].tolist() == track.tolist()
    assert ways == {True, False}
