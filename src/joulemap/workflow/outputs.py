"""Files that a command is told to write: nothing is replaced that the user did not mean to lose."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from joulemap.errors import JoulemapError, UsageError
from joulemap.workflow.recordings.recording_bundle import open_recordings

__all__ = ["check_outputs"]


def check_outputs(outputs: Iterable[Path], bundle: Path, *, force: bool) -> None:
    """Refuses outputs that would destroy something, before any work is done.

    A file is written beside its target and renamed over it. So a pipe or a device would be replaced by a file, and a
    part of the bundle would be lost although the bundle is what is read.

    Args:
        outputs: files to write.
        bundle: folder that is read.
        force: replace files that are there.

    Raises:
        UsageError: a file is there and ``force`` was not given, what is there is no plain file, or it is inside the
            bundle (``output-exists``); one file is named twice (``flags-contradict``).
    """
    inside = Path(os.path.realpath(bundle))
    is_bundle = (inside / "manifest.json").exists()  # a folder that is none is told as such by its reader
    seen: set[Path] = set()
    for output in outputs:
        whole = Path(os.path.realpath(output.parent)) / output.name
        if whole in seen:
            raise UsageError(
                f"{output}: is named twice", hint="name a file of its own for each", slug="flags-contradict"
            )
        seen.add(whole)
        if (inside == whole or inside in whole.parents) and is_bundle:
            raise UsageError(
                f"{output}: is inside the bundle that is read", hint="name a file elsewhere", slug="output-exists"
            )
        if not os.path.lexists(output):
            continue
        if not force:
            raise UsageError(f"{output}: is there already", hint="give --force to replace it", slug="output-exists")
        if output.exists() and not output.is_file() and not output.is_dir():
            raise UsageError(
                f"{output}: is a pipe or a device, which a file would replace",
                hint="name a plain file",
                slug="output-exists",
            )
        real = Path(os.path.realpath(output))
        if any(source == real or source in real.parents for source in _referred(bundle)):
            raise UsageError(
                f"{output}: is a recording that the bundle refers to", hint="name another file", slug="output-exists"
            )


def _referred(bundle: Path) -> list[Path]:
    """Returns the recordings that a bundle refers to; none of one that cannot be read, which its reader tells."""
    try:
        recordings = open_recordings(bundle)
    except JoulemapError:
        return []
    beside = Path(os.path.realpath(bundle)).parent
    return [Path(os.path.realpath(beside / entry.root)) for entry in recordings.entries if not entry.embedded]
