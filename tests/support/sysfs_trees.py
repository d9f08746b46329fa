"""Small trees of sysfs and proc, written file by file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\nflags\t\t: fpu vme\n\n"
AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\nflags\t\t: fpu vme\n\n"
GUEST = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nflags\t\t: fpu hypervisor\n\n"
RANGE_UJ = 262_143_328_850


def write_tree(root: Path, files: Mapping[str, object]) -> Path:
    """Writes files below a root; the text ends in a newline as the kernel's does."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", "utf-8")
    return root


def zone(path: str, name: str, energy_uj: object, **more: object) -> dict[str, object]:
    """Files of one powercap zone, by its folder below ``class/powercap``."""
    facts = {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": RANGE_UJ, "enabled": 1, **more}
    return {f"class/powercap/{path}/{key}": value for key, value in facts.items() if value is not None}


def chip(number: int, name: str, **files: object) -> dict[str, object]:
    """Files of one hwmon chip."""
    return {f"class/hwmon/hwmon{number}/{key}": value for key, value in {"name": name, **files}.items()}


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter, as they may enter ``/sys``; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="joulemap-public-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def write_proc(folder: Path, cpuinfo: str = INTEL, **files: object) -> Path:
    """A proc folder with a processor and a load."""
    stat = "cpu  100 0 50 800 20 0 0 0 0 0\ncpu0 100 0 50 800 20 0 0 0 0 0"
    return write_tree(folder, {"cpuinfo": cpuinfo.rstrip("\n"), "stat": stat, **files})
