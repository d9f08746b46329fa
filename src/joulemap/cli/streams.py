"""The program's standard streams, which may be closed, full, or given up by their reader; none of it ends a run.

Loads nothing, so that it can stand before everything else.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from joulemap.errors import SetupError

__all__ = ["open_missing_streams", "tell", "write_result"]


def open_missing_streams() -> None:
    """Gives every standard stream that the caller closed to the null device.

    Else the next file that is opened takes its number, and what is printed would go into that file.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  a number


def write_result(text: str | Iterable[str]) -> bool:
    """Writes the result to stdout, and returns whether anybody reads it; a reader that went away is no failure.

    Args:
        text: whole, or in parts.

    Raises:
        SetupError: stdout cannot be written, for example on a full disk (``output-unwritable``).
    """
    try:
        sys.stdout.writelines((text,) if isinstance(text, str) else text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        return False
    except OSError as error:
        _silence(sys.stdout)
        raise SetupError(
            f"the result cannot be written to standard output ({error.strerror or error})",
            hint="free some space or send it elsewhere; a bundle that was written holds it too",
            slug="output-unwritable",
        ) from error
    return True


def tell(text: str) -> None:
    """Writes to stderr what people should see; nobody there to see it is no failure."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Points a stream at nothing, so that the interpreter's own flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, stream.fileno())
        os.close(sink)
