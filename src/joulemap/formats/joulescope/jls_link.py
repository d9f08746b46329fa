"""The parent's end of the JLS process: starts it, asks for samples, and survives whatever the file does to it.

Samples come through anonymous shared memory that vanishes with the processes; two requests are in flight, so that the
library decodes while the caller computes. It must not know what a signal means.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from signal import SIGPROF
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import FormatError, SetupError
from joulemap.formats.joulescope.jls_file import last_whole_chunk, stated_length

__all__ = ["JlsSession", "JlsSignal", "open_jls"]

_CHILD: Final = Path(__file__).with_name("jls_child.py")
_LOOK_S: Final = 0.5
_IDLE_S: Final = 5.0
"""Without an answer and without any processor time spent: what no load of the machine explains."""
_SLOTS: Final = 3
_PIECE: Final = 16384
"""Samples per call of the library: an unreadable piece loses no more than this."""
_SMALL_PIECE: Final = 512
_CHUNK: Final = 1 << 18
_BITS_READ: Final = frozenset({(1, 3), (32, 4), (64, 4)})  # (bits, base type): u1, f32, f64


@dataclass(frozen=True, slots=True, kw_only=True)
class JlsSignal:
    """One signal of fixed rate.

    Args:
        id: of the file.
        source: id of its source.
        name: as written.
        units: as written.
        bits: per sample: 1, 32 or 64; 0 for a type that is not read.
        rate_hz: samples per second.
        length: samples.
        offset: sample id of the first sample.
        marks: (sample id, kind 1 text 2 vertical 3 horizontal, group, text).
        utc: (sample id, JLS time).
    """

    id: int
    source: int
    name: str
    units: str
    bits: int
    rate_hz: int
    length: int
    offset: int
    marks: tuple[tuple[int, int, int, str], ...]
    utc: tuple[tuple[int, int], ...]


class JlsSession:
    """An open file: its description, and its samples as a stream.

    Args:
        path: the file that the process opened (the original, or the saved copy).
        salvaged_b: bytes of the original that could be kept; None when it was whole.
        name: of the original, for messages.
        own: True when the path is our own copy, which the library may change.
    """

    def __init__(self, path: Path, salvaged_b: int | None, name: str, *, own: bool) -> None:
        self.salvaged_b = salvaged_b
        self.name = name
        self.sources: dict[str, dict[str, str]] = {}
        self.signals: tuple[JlsSignal, ...] = ()
        limit_s = _limit_s(path.stat().st_size)
        self._idle_s = _IDLE_S + limit_s
        self._size_b = _SLOTS * 4 * _CHUNK * 8
        self._memory = os.memfd_create("joulemap-jls")
        os.ftruncate(self._memory, self._size_b)
        self._map = mmap.mmap(self._memory, self._size_b)
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_CHILD), str(limit_s), str(self._memory), str(self._size_b), str(path)]
            + (["own"] if own else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(self._memory,),
            bufsize=0,
        )

    def describe(self) -> bool:
        """Waits for the description of the file; False when the process could not give up writing to it.

        Raises:
            FormatError: the library refused it, crashed on it or hangs.
        """
        if self._receive(1) != b"R":
            return False
        (length,) = struct.unpack("<I", self._receive(4))
        document: dict[str, Any] = json.loads(self._receive(length))
        self.sources = document["sources"]
        self.signals = tuple(_signal(entry) for entry in document["signals"])
        return True

    def stream(
        self, signals: Sequence[JlsSignal], firsts: Sequence[int], count: int
    ) -> Iterator[tuple[int, list[NDArray[Any]], int]]:
        """Yields (index, one array per signal, samples that could not be read) chunk by chunk.

        Up to four signals of one rate are read side by side, each from its own first sample. The arrays are views that
        the next step overwrites.

        Raises:
            FormatError: the process died or hangs.
        """
        piece = _PIECE if count > 16 * _PIECE else _SMALL_PIECE
        starts = range(0, count, _CHUNK)
        asked = 0
        for number, start in enumerate(starts):
            while asked < min(number + _SLOTS - 1, len(starts)):
                take = min(_CHUNK, count - starts[asked])
                for lane, (signal, first) in enumerate(zip(signals, firsts, strict=True)):
                    self._ask(signal.id, (first + starts[asked], take), self._place(asked, lane), piece)
                asked += 1
            take = min(_CHUNK, count - start)
            arrays, bad = [], 0
            for lane, signal in enumerate(signals):
                _, _, lost = struct.unpack("<3q", self._receive(24))
                bad = max(bad, lost)
                kind = np.uint8 if signal.bits == 1 else np.float64 if signal.bits == 64 else np.float32
                arrays.append(np.frombuffer(self._map, kind, take, self._place(number, lane)))
            yield start, arrays, bad

    @staticmethod
    def _place(number: int, lane: int) -> int:
        return ((number % _SLOTS) * 4 + lane) * _CHUNK * 8

    def _ask(self, signal: int, part: tuple[int, int], place: int, piece: int) -> None:
        assert self._process.stdin is not None  # opened as a pipe
        try:
            self._process.stdin.write(struct.pack("<5q", signal, *part, place, piece))
        except OSError:
            raise self._died("stopped") from None

    def _receive(self, length: int) -> bytes:
        assert self._process.stdout is not None  # opened as a pipe
        descriptor = self._process.stdout.fileno()
        body = bytearray()
        since, spent = time.monotonic(), -1
        while len(body) < length:
            if not select.select([descriptor], [], [], _LOOK_S)[0]:
                now = _spent_ticks(self._process.pid)
                since, spent = (time.monotonic(), now) if now != spent else (since, spent)
                if time.monotonic() - since > self._idle_s:
                    self._process.kill()
                    raise self._died(f"hangs ({self._idle_s:.0f} s idle without an answer)")
                continue
            block = os.read(descriptor, length - len(body))
            if not block:
                raise self._died("refused the file")
            body += block
        return bytes(body)

    def _died(self, what: str) -> FormatError:
        if self._process.poll() is None:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        code = self._process.returncode
        assert self._process.stderr is not None  # opened as a pipe
        said = self._process.stderr.read(2000).decode("utf-8", "replace").strip().splitlines()
        why = _why(code, said[-1] if said else "")
        return FormatError(
            f"{self.name}: the JLS library {what}: {why}",
            hint="The file is damaged beyond what can be saved; record again or export CSV from the original tool.",
            slug="jls-unreadable",
        )

    def close(self) -> None:
        """Ends the process and frees the shared memory; a second call does nothing."""
        if self._memory < 0:
            return
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._memory)
        self._memory = -1


def _spent_ticks(pid: int) -> int:
    """Returns the processor time that a process has spent, in ticks of the kernel's clock; 0 when nobody tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0


def _limit_s(size_b: int) -> float:
    """Returns the processor time that one answer about a file may take, s: a hundred times what sound files take."""
    return 0.2 + size_b / 20e6


def _why(code: int | None, said: str) -> str:
    """Returns why the process ended."""
    if code == -SIGPROF:
        return "it spent all the processor time that a sound file could take"
    return f"signal {-code}" if code is not None and code < 0 else said or f"exit {code}"


def _signal(entry: dict[str, Any]) -> JlsSignal:
    kind = int(entry["data_type"])
    bits, base = (kind >> 8) & 0xFF, kind & 0x0F
    return JlsSignal(
        id=entry["id"],
        source=entry["source"],
        name=str(entry["name"] or ""),
        units=str(entry["units"] or ""),
        bits=bits if (bits, base) in _BITS_READ else 0,
        rate_hz=entry["rate_hz"],
        length=entry["length"],
        offset=entry["offset"],
        marks=tuple((m[0], m[1], m[2], m[3]) for m in entry["marks"]),
        utc=tuple((u[0], u[1]) for u in entry["utc"]),
    )


def _salvage(path: Path, folder: Path) -> tuple[Path, int]:
    """Returns a copy of what is whole in a file that was not closed, and how many bytes of it were kept."""
    keep_b = last_whole_chunk(path)
    cut, saved = folder / "cut.jls", folder / "saved.jls"
    with path.open("rb") as source, cut.open("wb") as target:
        left = keep_b
        while left and (block := source.read(min(left, 1 << 22))):
            target.write(block)
            left -= len(block)
    limit_s = 30.0 + keep_b / 5e6
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_CHILD), str(_limit_s(4 * keep_b)), "copy", str(cut), str(saved)],
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
        why = _why(done.returncode, done.stderr.decode("utf-8", "replace").strip()[-200:])
        good = done.returncode == 0 and saved.exists()
    except subprocess.TimeoutExpired:
        good, why = False, f"no end after {limit_s:.0f} s"
    if not good:
        raise FormatError(
            f"{path.name} was not closed or was cut, and nothing of it could be saved ({why})",
            hint="Only its first complete blocks can be recovered, and there are none.",
            slug="jls-unrecoverable",
        )
    cut.unlink()
    return saved, keep_b


@contextmanager
def open_jls(path: Path) -> Iterator[JlsSession]:
    """Opens a JLS v2 file in a process of its own.

    A file whose header does not state its own size (never closed, cut, grown) is copied up to its last whole chunk
    and the copy is read; the original is never opened by the library. A whole one is opened by a process that can no
    longer write, since the library repairs what it finds damaged; where the kernel has no such means, a copy is.

    Raises:
        SetupError: pyjls is not installed.
        FormatError: nothing can be read.
    """
    if find_spec("pyjls") is None:
        raise SetupError("reading JLS needs pyjls", hint="pip install 'joulemap[joulescope]'", slug="extra-missing")
    with path.open("rb") as handle:
        head = handle.read(64)
    folder: Path | None = None
    session: JlsSession | None = None
    try:
        target, salvaged_b = path, None
        if stated_length(head) != path.stat().st_size:
            folder = Path(tempfile.mkdtemp(prefix="joulemap-jls-"))
            target, salvaged_b = _salvage(path, folder)
        session = JlsSession(target, salvaged_b, path.name, own=target != path)
        if not session.describe():
            session.close()
            folder = folder or Path(tempfile.mkdtemp(prefix="joulemap-jls-"))
            target = folder / "copy.jls"
            shutil.copyfile(path, target)
            session = JlsSession(target, None, path.name, own=True)
            session.describe()
        yield session
    finally:
        if session is not None:
            session.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
