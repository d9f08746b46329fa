"""The process that alone touches the JLS library: a damaged file may crash it or hang it, never the program.

Run as a script with isolated imports; it imports nothing of joulemap. Protocol (version 2): argv is the processor time
that opening may take (s), the descriptor of a shared memory file, its size, and the path; or that time and ``copy
SRC DST``. A library that spends more is ended by SIGPROF. On stdout: ``R`` when the imports are done and the
process can no longer change any file (``U`` when it could not bring that about; it then waits to be ended), then a
frame (u32 length, JSON) that describes the file, then one reply of three i64 (slot offset, samples, unreadable
samples) per request. On stdin: requests of five i64 (signal, first sample, samples, byte offset in the shared memory,
samples per piece); end of file ends the process. A piece that the library cannot read becomes NaN, or 255 in a
digital line.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import signal
import struct
import sys

REQUEST = struct.Struct("<5q")
REPLY = struct.Struct("<3q")
ANNOTATION_LIMIT = 50_000
UTC_LIMIT = 100_000
MEMORY_LIMIT_B = 4 << 30
ANSWER_S, ANSWER_HZ = 0.05, 2e6
"""Processor time that samples may take, s, and s per sample: sound ones take a hundredth of it."""


# The library repairs a file that it finds damaged, in place. So the process gives up opening files for writing and
# truncating them before the library sees one. Numbers of system calls: open, openat, creat, truncate, ftruncate,
# openat2 (-1: the machine has none of that name).
CALLS = {"x86_64": (0xC000003E, 2, 257, 85, 76, 77, 437), "aarch64": (0xC00000B7, -1, 56, -1, 45, 46, 437)}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
ALLOW, DENY, ABSENT = 0x7FFF0000, 0x00050000 | errno.EROFS, 0x00050000 | errno.ENOSYS


def _give_up_writing() -> bool:
    """Installs a system call filter; False where the kernel or the machine has none.

    References:
        Linux Documentation/userspace-api/seccomp_filter.rst; linux/filter.h for the instructions.
    """
    if platform.machine() not in CALLS:
        return False
    machine, opens, openat, creat, truncate, ftruncate, openat2 = CALLS[platform.machine()]
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    program = [
        (load, 0, 0, 4), (equal, 0, 11, machine),  # another machine's calls: allowed, the library makes none
        (load, 0, 0, 0), (equal, 11, 0, truncate), (equal, 10, 0, ftruncate), (equal, 9, 0, creat),
        (equal, 7, 0, openat2), (equal, 1, 0, opens), (equal, 2, 4, openat),
        (load, 0, 0, 24), (any_bit, 4, 2, WRITING),  # open: flags are the second argument
        (load, 0, 0, 32), (any_bit, 2, 0, WRITING),  # openat: the third
        (give, 0, 0, ALLOW), (give, 0, 0, ABSENT), (give, 0, 0, DENY),
    ]  # fmt: skip
    code = b"".join(struct.pack("=HBBI", a, b, c, d & 0xFFFFFFFF) for a, b, c, d in program)
    body = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(body)))
    library = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    return bool(
        library.prctl(no_new_privileges, 1, 0, 0, 0) == 0
        and library.prctl(set_seccomp, filter_mode, ctypes.c_void_p(ctypes.addressof(header)), 0, 0) == 0
    )


def _describe(reader: object) -> dict[str, object]:
    sources = {
        key: {"name": s.name, "vendor": s.vendor, "model": s.model, "serial_number": s.serial_number}
        for key, s in reader.sources.items()  # type: ignore[attr-defined]
    }
    signals = []
    for key, s in reader.signals.items():  # type: ignore[attr-defined]
        if s.signal_type != 0 or key == 0:  # fixed sample rate only
            continue
        marks: list[list[object]] = []
        stamps: list[list[int]] = []

        def annotation(*fields: object, out: list[list[object]] = marks) -> bool:
            timestamp, _, kind, group, data = fields
            out.append([int(timestamp), int(kind), int(group), data[:256] if isinstance(data, str) else ""])  # type: ignore[call-overload]
            return len(out) >= ANNOTATION_LIMIT

        def utc(entries: object, out: list[list[int]] = stamps) -> bool:
            out.extend([int(a), int(b)] for a, b in entries.tolist())  # type: ignore[attr-defined]
            return len(out) >= UTC_LIMIT

        try:
            reader.annotations(key, 0, annotation)  # type: ignore[attr-defined]
        except (RuntimeError, ValueError, UnicodeDecodeError):
            marks.append([-1, 0, 0, "unreadable"])
        try:
            reader.utc(key, 0, utc)  # type: ignore[attr-defined]
        except (RuntimeError, ValueError):
            stamps.clear()
        signals.append({
            "id": key, "source": s.source_id, "name": s.name, "units": s.units, "data_type": s.data_type,
            "rate_hz": s.sample_rate, "length": s.length, "offset": s.sample_id_offset, "marks": marks, "utc": stamps,
        })  # fmt: skip
    return {"sources": sources, "signals": signals}


def _receive() -> bytes:
    body = b""
    while len(body) < REQUEST.size:
        block = os.read(0, REQUEST.size - len(body))
        if not block:
            return b""
        body += block
    return body


def _send(body: bytes) -> None:
    while body:
        body = body[os.write(1, body) :]


def _allow(limit_s: float) -> None:
    """Ends the process after so much processor time, s; 0 for any."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)


def _serve(memory: tuple[int, int], path: str, limit_s: float, *, own: bool) -> None:
    import numpy as np  # noqa: PLC0415  # after the limits are set
    import pyjls  # noqa: PLC0415

    shared = mmap.mmap(*memory)
    if own or _give_up_writing():
        _send(b"R")
    else:
        _send(b"U")
        _receive()
        return
    _allow(limit_s)
    reader = pyjls.Reader(path)
    described = json.dumps(_describe(reader)).encode()
    _allow(0.0)
    _send(struct.pack("<I", len(described)) + described)
    kinds = {key: s.data_type & 0xFFFF for key, s in reader.signals.items()}
    while body := _receive():
        signal, first, count, offset_b, piece = REQUEST.unpack(body)
        bits = kinds[signal] >> 8
        digital = bits == 1
        kind = np.uint8 if digital else np.float64 if bits == 64 else np.float32
        out = np.frombuffer(shared, kind, count, offset_b)
        bad = 0
        _allow(ANSWER_S + count / ANSWER_HZ)
        for at in range(0, count, piece):
            take = min(piece, count - at)
            try:
                got = reader.fsr(signal, first + at, take)
                out[at : at + take] = np.unpackbits(got, bitorder="little")[:take] if digital else got
            except (RuntimeError, ValueError):
                out[at : at + take] = 255 if digital else np.nan
                bad += take
        _allow(0.0)
        _send(REPLY.pack(offset_b, count, bad))


def main() -> int:
    """Returns 0 when the other side closed the pipe, 3 when the library refused the file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_B, MEMORY_LIMIT_B))
    try:
        limit_s, words = float(sys.argv[1]), sys.argv[2:]
        if words[0] == "copy":
            import pyjls  # noqa: PLC0415

            _allow(limit_s)
            pyjls.copy(words[1], words[2])
        else:
            _serve((int(words[0]), int(words[1])), words[2], limit_s, own=words[3:] == ["own"])
    except Exception as error:  # noqa: BLE001  # the root of a process: the other side reads the reason
        sys.stderr.write(f"{type(error).__name__}: {error}"[:500])
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
