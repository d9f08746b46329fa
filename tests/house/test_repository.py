"""What a fresh machine needs of the repository: pins that pip reads, no half-merged file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"[A-Za-z0-9][\w.-]*==\d[\w.+!-]*")
_LEFT = re.compile(r"^(<{7} |>{7} |={7}$)", re.MULTILINE)
_TEXT = {".py", ".md", ".toml", ".txt", ".js", ".css", ".c", ".h", ".json", ".cfg", ".yml"}


def test_every_line_of_the_constraints_is_a_pin_and_no_name_comes_twice() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line.strip()]
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not _PIN.fullmatch(line.split(";")[0].strip())] == []
    names = [re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins]
    assert sorted(names) == sorted(set(names))


def test_no_file_is_half_merged() -> None:
    rooms = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", "examples")]
    files = [path for room in rooms for path in room.rglob("*") if path.suffix in _TEXT]
    files += [path for path in ROOT.iterdir() if path.is_file() and path.suffix in _TEXT]
    assert len(files) > 500
    assert [str(path) for path in files if _LEFT.search(path.read_text("utf-8", "replace"))] == []
