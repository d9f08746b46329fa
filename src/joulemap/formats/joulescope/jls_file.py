"""JLS v2 on disk: its header, its chunks, and what can be saved of a file that was never closed or was cut.

References:
    Format: pyjls 0.17.0, ``include/jls/format.h`` (FORMATS_MORE, "JLS v2"). CRC32C: RFC 3720, appendix B.4.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

__all__ = ["JLS_MAGIC", "last_whole_chunk", "stated_length"]

JLS_MAGIC: Final = bytes.fromhex("6a6c73666d740d0a200a201a2020b21c")
_HEADER_B: Final = 32
_POLYNOMIAL: Final = 0x82F63B78


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE: Final = _crc_table()


def crc32c(body: bytes) -> int:
    """Returns the CRC32C of a few bytes."""
    value = 0xFFFFFFFF
    for byte in body:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def stated_length(head: bytes) -> int:
    """Returns the length that the file header states, bytes; 0 when the file was not closed.

    The library rewrites a file whose stated length is not its size when it opens it, or hangs on it: such a file is
    never opened itself.
    """
    return int(struct.unpack_from("<Q", head, 16)[0]) if len(head) >= _HEADER_B else 0


def last_whole_chunk(path: Path) -> int:
    """Returns the offset after the last chunk that is whole and whose header passes its checksum."""
    size_b = path.stat().st_size
    at = _HEADER_B
    with path.open("rb") as handle:
        while at + _HEADER_B <= size_b:
            handle.seek(at)
            head = handle.read(_HEADER_B)
            if crc32c(head[:28]) != struct.unpack_from("<I", head, 28)[0]:
                break
            (payload_b,) = struct.unpack_from("<I", head, 20)
            after = at + _HEADER_B + (0 if payload_b == 0 else (payload_b + 4 + 7) // 8 * 8)
            if after > size_b:
                break
            at = after
    return at
