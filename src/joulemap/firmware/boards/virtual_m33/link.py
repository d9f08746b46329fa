"""The pipe to a board worker: one request, one answer, and a watchdog on the wall clock.

Whatever goes wrong (a dead worker, a silent one, Ctrl-C in the middle of a call) ends the worker. Must not know what
the messages mean.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import PowerError, SetupError

__all__ = ["BoardRefusal", "WorkerLink"]

_PROTOCOL = 1
_GREETING_WALL_S = 30.0
_CHUNK_B = 1 << 16
_STDERR = 2


class BoardRefusal(Exception):  # noqa: N818  no failure of the link: the worker answered no
    """The worker answered with an error; its text is the message."""


class WorkerLink:
    """A running worker, the pipe to it and the memory shared with it.

    Args:
        worker: program to start.
        library: the board core for this machine.

    Raises:
        PowerError: it does not start or speaks another protocol (``board-lost``).
        SetupError: the machine has no process, memory or descriptor left for it (``machine-exhausted``).
    """

    def __init__(self, worker: Path, library: Path) -> None:
        try:
            self._start(worker, library)
        except OSError as error:
            raise _exhausted(f"the board worker cannot be started: {error.strerror or error}") from error
        self._pending = b""
        self._end = weakref.finalize(self, _end_process, self._process, (self._rows, self._stderr))
        greeting = self._receive(_GREETING_WALL_S, "start")
        if greeting.get("hello") != "joulemap-board" or greeting.get("protocol") != _PROTOCOL:
            self.close()
            raise _lost(f"the board worker speaks another protocol: {greeting}")
        self.emulator = str(greeting.get("emulator", ""))

    def _start(self, worker: Path, library: Path) -> None:
        with ExitStack() as undo:
            self._rows = undo.enter_context(_open_shared_memory())
            self._stderr = undo.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(worker), str(library), str(self._rows.fileno()), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pass_fds=(self._rows.fileno(),),
                start_new_session=True,  # Ctrl-C is the parent's affair
                bufsize=0,
            )
            undo.pop_all()  # from here on they live as long as the worker

    @property
    def pid(self) -> int:
        """Process of the worker."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True until the worker was ended."""
        return self._end.alive

    def call(self, operation: str, *, wall_s: float, **fields: Any) -> dict[str, Any]:
        """Returns the worker's answer.

        Raises:
            BoardRefusal: the worker answered with an error.
            SetupError: the machine lacks memory, space or descriptors for it (``machine-exhausted``).
            PowerError: the worker is gone (``board-lost``) or did not answer within ``wall_s`` (``board-watchdog``).
        """
        if not self.alive:
            raise _lost("the board worker has ended")
        try:
            self._send(json.dumps({"op": operation, **fields}).encode() + b"\n")
            reply = self._receive(wall_s, operation)
        except BaseException:  # a request without its answer would shift every later answer
            self.close()
            raise
        if "exhausted" in reply:
            raise _exhausted(f"the board has no room for '{operation}': {reply['exhausted']}")
        if "error" in reply:
            raise BoardRefusal(reply["error"])
        answer: dict[str, Any] = reply["ok"]
        return answer

    def read_rows(self, count: int) -> NDArray[np.uint32]:
        """Returns a copy of the first rows of the shared memory: (count,) fJ."""
        if not count:
            return np.zeros(0, np.uint32)
        with mmap.mmap(self._rows.fileno(), 4 * count, prot=mmap.PROT_READ) as shared:
            return np.frombuffer(bytearray(shared), np.uint32)

    def close(self) -> None:
        """Ends the worker; idempotent."""
        self._end()

    def _send(self, message: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        view = memoryview(message)
        try:
            while view:
                view = view[pipe.write(view) :]
        except (BrokenPipeError, ValueError) as error:
            raise _lost(self._epitaph()) from error

    def _receive(self, wall_s: float, operation: str) -> dict[str, Any]:
        pipe = self._process.stdout
        assert pipe is not None
        while b"\n" not in self._pending:
            ready, _, _ = select.select([pipe], [], [], wall_s)
            if not ready:
                self.close()
                raise PowerError(
                    f"the board worker did not answer '{operation}' within {wall_s:g} s and was ended",
                    hint="run again; if it repeats, run with -vv and report the firmware",
                    slug="board-watchdog",
                    phase="power",
                    details={"operation": operation, "wall_s": wall_s},
                )
            chunk = os.read(pipe.fileno(), _CHUNK_B)
            if not chunk:
                message = self._epitaph()
                self.close()
                raise _lost(message)
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        try:
            reply: dict[str, Any] = json.loads(line)
        except ValueError as error:
            self.close()
            raise _lost(f"the board worker's answer to '{operation}' is no message: {line[:80]!r}") from error
        return reply

    def _epitaph(self) -> str:
        """Returns what is known of a worker that ended by itself."""
        try:
            status: object = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            status = "none"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f"the board worker ended (status {status})" + (f": {lines[-1]}" if lines else "")


def _lost(message: str) -> PowerError:
    return PowerError(message, hint="joulemap doctor --target virtual-m33", slug="board-lost", phase="power")


def _exhausted(message: str) -> SetupError:
    return SetupError(
        message,
        hint="free memory, processes or file descriptors (ulimit -a), or choose a smaller --window-s",
        slug="machine-exhausted",
    )


def _open_shared_memory() -> IO[bytes]:
    """Returns memory without a name: nothing of it is left when both processes are gone, however they end."""
    file = os.fdopen(os.memfd_create("joulemap-rows"), "r+b") if hasattr(os, "memfd_create") else _open_unnamed()
    if file.fileno() > _STDERR:
        return file
    with file:  # a process without standard streams: their numbers are the worker's own streams in the child
        return os.fdopen(fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _STDERR + 1), "r+b")


def _open_unnamed() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _end_process(process: subprocess.Popen[bytes], files: tuple[IO[bytes], ...]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()
    for file in files:
        file.close()
