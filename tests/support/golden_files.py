"""Golden files: what an output must be to the byte, written anew only by ``make golden``."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["check_golden"]

UPDATE = "JOULEMAP_UPDATE_GOLDEN"


def check_golden(path: Path, text: str) -> None:
    """Compares the text with the golden file, or writes it when ``JOULEMAP_UPDATE_GOLDEN`` is set."""
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} does not exist yet: write it with `make golden`, then read it"
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} moved; if that is meant, `make golden` and read the diff"
    )
