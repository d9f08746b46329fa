"""The owner's side of the sampling process: start it, ask it to read, end it; by its process id and never by name."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from joulemap.errors import JoulemapError, PowerError, SetupError, UsageError
from joulemap.meters.live.sampling.plan import Command, SamplingPlan
from joulemap.meters.live.sampling.ring import RingReader, open_ring_memory
from joulemap.records.live.capture_header import CaptureHeader

__all__ = ["SamplerEnd", "SamplerProcess"]

_ENTRY: Final = "joulemap.meters.live.sampling.entry"
_ROOT: Final = str(Path(__file__).resolve().parents[4])


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerEnd:
    """How a sampling process ended.

    Args:
        status: exit status; negative for a signal; None when it would not end.
        told: its own account; empty when it did not end by itself.
    """

    status: int | None
    told: dict[str, Any]


class SamplerProcess:
    """One sampling process. Ends with its owner, however that ends: its standard input is a pipe of the owner's.

    Args:
        plan: what to sample; ring and parent are filled in here.
        live: keep the latest samples in shared memory for live readers.
        lost: called once, from a thread, when the process ends without having been asked to.
    """

    def __init__(self, plan: SamplingPlan, *, live: bool = True, lost: Callable[[], None] | None = None) -> None:
        self._plan = plan
        self._live = live
        self._lost = lost
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._answer = threading.Condition()
        self._read_ns: list[int] = []
        self._failure: dict[str, Any] = {}
        self._end: dict[str, Any] = {}
        self._stopping = False
        self._ring_fd = -1
        self._owner = os.getpid()
        self.notes: list[tuple[str, str]] = []
        self.header: CaptureHeader | None = None
        self.ring: RingReader | None = None

    @property
    def pid(self) -> int:
        """Process id; 0 before it was started."""
        return 0 if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return self._process is not None and not self._ended.is_set()

    def start(self, timeout_s: float = 30.0) -> None:
        """Starts it; returns when its first readings are in.

        Raises:
            SetupError: a meter cannot be opened (its own slug), or the process cannot run (``sampler-failed``).
            UsageError: a meter has no such driver or option.
        """
        if not sys.executable:
            raise SetupError(
                "this Python does not say where its program lies",
                hint="run joulemap from an ordinary Python",
                slug="sampler-failed",
            )
        self._ring_fd = open_ring_memory() if self._live else -1
        plan = replace(self._plan, ring_fd=self._ring_fd, parent=os.getpid())
        paths = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _ENTRY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            pass_fds=(self._ring_fd,) if self._live else (),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, _ROOT])},
            start_new_session=True,  # what the terminal sends to the command is not for the sampler
        )
        threading.Thread(target=self._hear, name="joulemap-sampler", daemon=True).start()
        self._send(plan.to_line().encode())
        if not self._ready.wait(timeout_s):
            self.kill()
            raise SetupError(
                f"the sampling process was not ready within {timeout_s:g} s",
                hint="name fewer meters with --meter, to find the one that hangs",
                slug="sampler-failed",
            )
        if self.header is None:
            raise self._failed()

    def read_now(self, timeout_s: float = 2.0) -> int | None:
        """Has every meter read now and written out; returns the instant, ns, or None when nothing answered in time."""
        return self._ask(Command.READ, timeout_s)

    def pause(self, timeout_s: float = 2.0) -> int | None:
        """Reads once more and then samples no longer, but for the wraps of counters; returns the instant, ns."""
        return self._ask(Command.PAUSE, timeout_s)

    def resume(self, timeout_s: float = 2.0) -> int | None:
        """Reads and samples again; returns the instant, ns."""
        return self._ask(Command.RESUME, timeout_s)

    def stop(self, timeout_s: float = 5.0) -> SamplerEnd:
        """Ends it: asked first, killed when it does not answer; idempotent. A forked child does nothing."""
        process = self._process
        if process is None or os.getpid() != self._owner:
            return SamplerEnd(status=None, told={})
        self._stopping = True
        self._send(Command.STOP.encode())
        with contextlib.suppress(OSError):
            assert process.stdin is not None  # a pipe, by start()
            process.stdin.close()
        if not self._ended.wait(timeout_s):
            self.kill()
        self._release()
        return SamplerEnd(status=process.returncode, told=self._end)

    def kill(self) -> None:
        """Kills it."""
        self._stopping = True
        if self._process is not None:
            self._process.kill()
            self._ended.wait(5.0)

    def _release(self) -> None:
        if self._ring_fd >= 0:
            os.close(self._ring_fd)
            self._ring_fd = -1
        self._said.close()

    def _ask(self, command: Command, timeout_s: float) -> int | None:
        if not self.alive:
            return None
        with self._answer:
            before = len(self._read_ns)
            self._send(command.encode())
            if self._answer.wait_for(lambda: len(self._read_ns) > before or not self.alive, timeout_s):
                return self._read_ns[-1] if len(self._read_ns) > before else None
        return None

    def _send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None  # a pipe, by start()  # noqa: PT018
        with contextlib.suppress(OSError, ValueError):  # it has gone: the listening thread says so
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def _hear(self) -> None:
        """Listens until the process has gone."""
        process = self._process
        assert process is not None and process.stdout is not None  # a pipe, by start()  # noqa: PT018
        with process.stdout as said:
            for line in said:
                with contextlib.suppress(ValueError, KeyError):
                    self._take(json.loads(line))
        process.wait()
        self._ended.set()
        self._ready.set()
        with self._answer:
            self._answer.notify_all()
        if self._lost is not None and self.header is not None and not self._stopping:
            self._lost()

    def _take(self, told: dict[str, Any]) -> None:
        if "read" in told:
            with self._answer:
                self._read_ns.append(int(told["read"]))
                self._answer.notify_all()
        elif "ready" in told:
            header = CaptureHeader.from_json(told["ready"])
            if self._live:
                widths = [len(stream.domains) for stream in header.streams]
                self.ring = RingReader(self._ring_fd, widths, int(told["capacity"]))
            self.header = header
            self._ready.set()
        elif "note" in told:
            self.notes.append((told["note"], told["message"]))
        elif "failed" in told:
            self._failure = told["failed"]
        elif "end" in told:
            self._end = told["end"]

    def _failed(self) -> JoulemapError:
        """Returns why it did not get ready."""
        told = self._failure
        if told and told["usage"]:
            return UsageError(told["message"], hint=told["hint"], slug=told["slug"])
        if told:
            return SetupError(told["message"], hint=told["hint"] or "joulemap doctor", slug=told["slug"])
        self._said.seek(0)
        tail = self._said.read()[-2000:].decode(errors="replace").strip().splitlines()
        status = None if self._process is None else self._process.returncode
        return SetupError(
            f"the sampling process ended with status {status}{': ' + tail[-1] if tail else ''}",
            hint="repeat with -vv and file the trace with it",
            slug="sampler-failed",
        )

    def require(self) -> CaptureHeader:
        """Returns the header of a process that is ready.

        Raises:
            PowerError: it was not started.
        """
        if self.header is None:
            raise PowerError("nothing is sampled yet", hint="start it first", slug="sampler-lost", phase="power")
        return self.header
