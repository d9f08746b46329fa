"""Files of marks: of many processes, filled, damaged, or without room on the disk; none harms the program."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from joulemap.formats.ground.building import FindingLog
from joulemap.formats.live import mark_tracks
from joulemap.formats.live.marks import MarkTable, read_marks
from joulemap.meters.live.marking import Mark, MarkSink, current_sink, install_sink
from joulemap.records.live.mark_layout import END, FOLDER_VARIABLE, SLOTS, START, WORDS
from mark_slices import by_name, slices


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
