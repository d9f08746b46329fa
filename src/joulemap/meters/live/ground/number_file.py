"""Numbers in files of the kernel: read through a descriptor that stays open, missing when they are no number.

The kernel renders such a file anew at every read from its start, so one ``pread`` is one measurement. This module
knows no meter: what a number means is for the driver.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["NumberFile", "read_number", "read_text"]

_NAN = float("nan")
_pread = os.pread
_LONGEST_B = 64
_GONE = frozenset({errno.ENODEV, errno.ENXIO, errno.EBADF, errno.ESTALE})


def read_text(path: Path) -> str | None:
    """Returns the file's text without blanks around it; None when it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError:
        return None


def read_number(path: Path) -> float | None:
    """Returns the whole number that the file holds; None when it cannot be read or is none."""
    text = read_text(path)
    try:
        return None if text is None else float(int(text))
    except (ValueError, OverflowError):
        return None


class NumberFile:
    """One whole number of the kernel, read again and again.

    Args:
        path: of the file.
    """

    __slots__ = ("_descriptor", "_last", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._last: bytes | None = None

    @property
    def gone(self) -> bool:
        """True when there is no such file any more, or it was never opened."""
        return self._descriptor < 0

    def open(self) -> None:
        """Opens the file; no effect when it is open.

        Raises:
            OSError: it is not there or not permitted.
        """
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._last = None

    def read(self) -> float:
        """Returns the number; NaN when it cannot be had now. A file that was taken away is looked for again."""
        try:
            if self._descriptor < 0:
                self.open()
            text = _pread(self._descriptor, _LONGEST_B, 0)
            if text == self._last and os.fstat(self._descriptor).st_nlink == 0:
                self.close()  # a file that was deleted answers with its last number for ever
                return _NAN
            self._last = text
            return float(int(text))
        except ValueError:
            return _NAN
        except OSError as error:
            if error.errno in _GONE:
                self.close()
            return _NAN

    def close(self) -> None:
        """Closes the file; idempotent."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
