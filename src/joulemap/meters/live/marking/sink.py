"""Where the marks of this process go: files mapped into memory, so that nothing is lost when the process is killed."""

from __future__ import annotations

import errno
import itertools
import json
import mmap
import os
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Final

from joulemap.records.live.mark_layout import END, FOLDER_VARIABLE, NAME, PARENT, SLOTS, START, THREAD, WORDS

__all__ = ["LIVE", "MarkSink", "Segment", "current_sink", "install_sink"]

_RETRY_NS: Final = 500_000_000
"""A full disk is asked again no sooner: the program under test must not spend its time on that."""
_SIZE_B: Final = (SLOTS + 1) * WORDS * 8
_serials: Final = itertools.count(1)

Segment = tuple[memoryview, Callable[[], int], int, dict[str, int]]
"""Words of a file, the next free place in it, the place of its first word among all files, and the ids of names."""


class MarkSink:
    """Mark files of one process in one folder.

    Args:
        folder: is there.
        kind: of names that are interned without one.

    ``lost`` counts marks for which the disk had no room; the first file tells it to who reads the marks.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, kind: str = "mark") -> None:
        self.folder = folder
        self.kind = kind
        self.pid = os.getpid()
        self.names: dict[str, int] = {}
        self.lost = 0
        self._retry_ns = 0
        self.token = f"{self.pid}-{uuid.uuid4().hex[:8]}"
        self._files = 0
        self._lock = threading.Lock()
        self._table = os.open(
            folder / f"{self.token}.names", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self.serial = next(_serials) << 48  # places of two sinks of one process never meet
        program = Path(sys.argv[0] if sys.argv else "").name
        self._say({"pid": self.pid, "program": program, "clock": "monotonic", "base": self.serial})
        self.segment: Segment = self._open()
        self._first = self.segment[0]

    def intern(self, name: str, kind: str = "") -> int:
        """Returns the id of a name, new or known."""
        with self._lock:
            known = self.names.get(name)
            if known is None:
                known = len(self.names)
                self._say([known, name, kind or self.kind])
                self.names[name] = known
            return known

    def open_stretch(self, name: str, kind: str, start_ns: int) -> Callable[[int], None]:
        """Writes a mark from outside the program under test, open; what comes back ends it at an instant, ns."""
        number = self.intern(name, kind)
        segment = self.segment
        words = segment[0]
        try:
            at = segment[1]()
        except StopIteration:
            room = self.claim_room(segment)
            if room is None:
                return _ignore
            words, _, _, at = room
        words[at + NAME], words[at + PARENT], words[at + THREAD] = number, -1, 0
        words[at + START] = start_ns

        def end(end_ns: int) -> None:
            words[at + END] = end_ns

        return end

    def claim_room(self, full: Segment) -> tuple[memoryview, int, dict[str, int], int] | None:
        """Returns words, base, names and a free place, after a segment was found full.

        None when the disk has no room for another: the mark is lost and counted, the program goes on.
        """
        while True:  # other threads may fill what has just been made
            if self.segment is full and monotonic_ns() < self._retry_ns:
                self._lose()
                return None
            try:
                full = self.grow(full)
            except OSError:
                self._retry_ns = monotonic_ns() + _RETRY_NS
                self._lose()
                return None
            words, claim, base, names = full
            try:
                return words, base, names, claim()
            except StopIteration:
                continue

    def try_intern(self, name: object) -> int | None:
        """Returns the id of a name, of anything as its text; None when there is no room to write it: the mark is lost.

        What was claimed for such a mark has no start, and is no mark to a reader.
        """
        try:
            return self.intern(name if isinstance(name, str) else str(name))
        except OSError:
            self._lose()
            return None

    def grow(self, full: Segment) -> Segment:
        """Returns a segment with room, after one was found full."""
        with self._lock:
            if self.segment is full:
                self.segment = self._open()
                if LIVE.sink is self:
                    LIVE.segment = self.segment
            return self.segment

    def close(self) -> None:
        """Takes no new name; marks that are still open may end."""
        with self._lock:
            if self._table >= 0:
                os.close(self._table)
                self._table = -1

    def _lose(self) -> None:
        """Counts a mark that is lost."""
        self.lost += 1
        self._first[SLOTS * WORDS + END] = self.lost

    def _say(self, value: object) -> None:
        if self._table >= 0:
            line, size_b = json.dumps(value).encode() + b"\n", os.fstat(self._table).st_size
            if os.write(self._table, line) < len(line):  # half a line would spoil the next one too
                os.ftruncate(self._table, size_b)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> Segment:
        path = self.folder / f"{self.token}-{self._files}.marks"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, _SIZE_B)  # a full disk is an error here, no fault in mapped memory
            else:
                os.ftruncate(descriptor, _SIZE_B)
            words = memoryview(mmap.mmap(descriptor, _SIZE_B)).cast("q")
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        base = self.serial + self._files * SLOTS * WORDS
        self._files += 1
        return words, iter(range(0, SLOTS * WORDS, WORDS)).__next__, base, self.names


def _ignore(_end_ns: int) -> None:
    """Ends a mark for which there was no room."""


class _Live:
    """The sink of this process: installed by a measurement, or named by the environment of a recorded program."""

    __slots__ = ("asked", "lock", "segment", "sink")

    def __init__(self) -> None:
        self.sink: MarkSink | None = None
        self.segment: Segment | None = None
        self.asked = False
        self.lock = threading.Lock()

    def put(self, sink: MarkSink | None) -> None:
        """Sends marks to a sink from now on."""
        self.sink = sink
        self.segment = None if sink is None else sink.segment
        self.asked = True

    def renew(self) -> None:
        """After a fork: a file of one's own, beside the parent's."""
        self.lock = threading.Lock()
        if self.sink is not None:
            os.environ.setdefault(FOLDER_VARIABLE, str(self.sink.folder))
        self.sink, self.segment, self.asked = None, None, False


LIVE: Final = _Live()
"""Read by the hot path of marks; changed only here."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LIVE.renew)


def install_sink(sink: MarkSink | None) -> None:
    """Sends the marks of this process to a sink from now on; None to nowhere."""
    with LIVE.lock:
        LIVE.put(sink)


def current_sink() -> MarkSink | None:
    """Returns where the marks of this process go; None when nobody records them."""
    if LIVE.asked:
        return LIVE.sink
    with LIVE.lock:
        if not LIVE.asked:
            folder = os.environ.get(FOLDER_VARIABLE)
            try:
                LIVE.put(MarkSink(Path(folder)) if folder else None)
            except OSError:
                LIVE.put(None)  # whoever recorded is gone: the program under test must not notice
    return LIVE.sink
