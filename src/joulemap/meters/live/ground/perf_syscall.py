"""The system call ``perf_event_open`` for one counter of one processor. Knows no PMU.

References:
    perf_event_open(2); Linux include/uapi/linux/perf_event.h (PERF_ATTR_SIZE_VER0 is 64 bytes).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

__all__ = ["open_perf_event"]

_NUMBERS = {"x86_64": 298, "i686": 336, "i386": 336, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTRIBUTE_B = 64
_CLOSE_ON_EXEC = 8
_ALL_PROCESSES, _NO_GROUP = -1, -1


def open_perf_event(kind: int, config: int, cpu: int) -> int:
    """Returns the descriptor of a counter over everything that runs on a processor; a read gives 8 bytes.

    Args:
        kind: type of the PMU.
        config: of the event.
        cpu: number of the processor.

    Raises:
        OSError: the kernel refuses: no such event, or not permitted.
    """
    if not (0 <= kind < 1 << 32 and 0 <= config < 1 << 64 and 0 <= cpu < 1 << 16):
        raise OSError(errno.EINVAL, f"no event has type {kind}, config {config} on processor {cpu}")
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open is not known on {platform.machine()}")
    attribute = struct.pack("=IIQ", kind, _ATTRIBUTE_B, config).ljust(_ATTRIBUTE_B, b"\0")
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    descriptor = library.syscall(
        ctypes.c_long(number),
        ctypes.c_char_p(attribute),
        ctypes.c_int(_ALL_PROCESSES),
        ctypes.c_int(cpu),
        ctypes.c_int(_NO_GROUP),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(descriptor)
