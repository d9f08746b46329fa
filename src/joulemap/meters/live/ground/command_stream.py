"""A command that goes on printing samples: started once, read by a thread of its own, ended with the meter.

Knows no command: what a piece of its output means is for the driver.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Sequence

__all__ = ["CommandStream", "run_command"]

_CHUNK_B = 1 << 16
_LIMIT_B = 1 << 24
_END_S = 2.0


class CommandStream:
    """Runs a command and hands over each piece of its output.

    Args:
        command: program and arguments.
        separator: between pieces.
        take: gets each piece, in the thread of the stream; True when it was a sample.
    """

    def __init__(self, command: Sequence[str], separator: bytes, take: Callable[[bytes], bool]) -> None:
        self._command = list(command)
        self._separator = separator
        self._take = take
        self._told = threading.Event()
        self._answered = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @property
    def ended(self) -> bool:
        """True when the command runs no more."""
        return self._process is None or self._process.poll() is not None

    def start(self, patience_s: float) -> bool:
        """Starts the command; True when its first sample came within the time.

        Raises:
            OSError: the command cannot be started.
        """
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._thread = threading.Thread(target=self._read, name="joulemap-meter", daemon=True)
        self._thread.start()
        self._told.wait(patience_s)
        return self._answered

    def stop(self) -> None:
        """Ends the command; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._thread is not None:
            self._thread.join(_END_S)
        if process.stdout is not None:
            with contextlib.suppress(OSError):
                process.stdout.close()

    def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        pending = b""
        descriptor = process.stdout.fileno()
        while block := _read_some(descriptor):
            *whole, pending = (pending + block).split(self._separator)
            for piece in whole:
                self._hand_over(piece)
            pending = pending[-_LIMIT_B:]
        self._hand_over(pending)
        self._told.set()  # the command ended: nobody need wait for a sample

    def _hand_over(self, piece: bytes) -> None:
        if piece.strip() and self._take(piece):
            self._answered = True
            self._told.set()


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_B)
    except OSError:
        return b""


def run_command(command: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
    """Returns status, output and error text of a short command; status 127 when there is none, 124 when it hangs."""
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {timeout_s:g} s"
    except OSError as error:
        return 127, "", error.strerror or str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()
