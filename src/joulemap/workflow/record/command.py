"""The recorded command: started with our own streams, told every signal that we are told, its end stamped at once."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from joulemap.errors import UsageError

__all__ = ["CommandEnd", "list_survivors", "run_command", "status_of_failure"]

_PASSED_ON: Final = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_OF_THE_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGQUIT})
_MISSING, _FORBIDDEN = 127, 126


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command went.

    Args:
        start_ns: instant just before it was started, monotonic ns.
        end_ns: instant at which its end was seen.
        status: as a shell says it: 128 + signal when a signal ended it.
        user_s: processor time in user mode, its waited-for children included, s.
        system_s: in the kernel, s.
        peak_rss_b: largest resident set of any of them, bytes; None where it was not more than this program's own: the
            system counts that in.
    """

    start_ns: int
    end_ns: int
    status: int
    user_s: float
    system_s: float
    peak_rss_b: int | None

    @property
    def duration_s(self) -> float:
        """Between the two instants, s."""
        return (self.end_ns - self.start_ns) * 1e-9


def run_command(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    tick: Callable[[float], None],
    tick_s: float = 0.5,
    started: Callable[[int], None] | None = None,
) -> CommandEnd:
    """Runs a command to its end and returns how it went. Its standard streams are ours, untouched.

    Args:
        argv: program and arguments.
        environment: added to ours.
        tick: called about every ``tick_s`` with the seconds since the start, from this thread.
        tick_s: s.
        started: told its process id.

    Raises:
        UsageError: there is no such program (``command-not-found``), or it may not be run (``command-not-runnable``).
    """
    with _signals_passed_on() as target:
        start_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(list(argv), env={**os.environ, **environment})
        except FileNotFoundError as error:
            raise UsageError(
                f"{argv[0]}: there is no such program", hint="check the command after --", slug="command-not-found"
            ) from error
        except OSError as error:
            raise UsageError(
                f"{argv[0]}: cannot be run ({error.strerror or error})",
                hint="check its permissions and that it is a program",
                slug="command-not-runnable",
            ) from error
        target.append(process.pid)
        if started is not None:
            started(process.pid)
        ended = threading.Event()
        told: list[tuple[int, int, resource.struct_rusage]] = []

        def wait() -> None:
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                end_ns = time.monotonic_ns()
                target.clear()  # before its number may be another's
                _, status, usage = os.wait4(process.pid, 0)
            else:
                _, status, usage = os.wait4(process.pid, 0)
                end_ns = time.monotonic_ns()
                target.clear()
            told.append((end_ns, status, usage))
            ended.set()

        threading.Thread(target=wait, name="joulemap-wait", daemon=True).start()
        while not ended.wait(tick_s):
            tick((time.monotonic_ns() - start_ns) * 1e-9)
    end_ns, status, usage = told[0]
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code  # it was waited for here
    scale = 1 if sys.platform == "darwin" else 1024
    return CommandEnd(
        start_ns=start_ns,
        end_ns=end_ns,
        status=code if code >= 0 else 128 - code,
        user_s=usage.ru_utime,
        system_s=usage.ru_stime,
        peak_rss_b=usage.ru_maxrss * scale if usage.ru_maxrss > _own_peak_kib() else None,
    )


def _own_peak_kib(status: Path = Path("/proc/self/status")) -> int:
    """Returns the most that this program has had resident, KiB: Linux counts it for what it starts; 0 elsewhere.

    References:
        Linux fs/exec.c, ``exec_mmap``: the peak of the address space that is left behind goes to the new program.
    """
    try:
        lines = status.read_text("ascii", "replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def status_of_failure(slug: str) -> int | None:
    """Returns the status by which a shell tells that a command could not be run; None for another failure."""
    return {"command-not-found": _MISSING, "command-not-runnable": _FORBIDDEN}.get(slug)


@contextmanager
def _signals_passed_on() -> Iterator[list[int]]:
    """Passes signals on to the process whose id is put into the list; what the terminal sends reaches it anyway."""
    target: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number in _OF_THE_TERMINAL and _in_foreground():
            return  # the terminal has told the whole group
        for pid in target:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, pass_on)
    try:
        yield target
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """True when we read from a terminal whose foreground group we belong to."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def list_survivors(variable: str, value: str) -> tuple[int, ...]:
    """Returns ids of processes that carry an environment variable of the run: what the command left running.

    Empty where the system does not say.
    """
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        pid = int(entry.parent.name)
        if pid == os.getpid():
            continue
        try:
            carries = wanted in entry.read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or another user's
        if carries:
            found.append(pid)
    return tuple(sorted(found))
