"""The ``virtual-m33`` board: what it is, whether it can run here, and how a session is opened."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from joulemap.errors import JoulemapError, SetupError
from joulemap.estimate import Boundary, Provenance
from joulemap.firmware.boards.virtual_m33.client import WINDOW_LIMIT_S, Pricing, VirtualM33Session
from joulemap.firmware.boards.virtual_m33.link import WorkerLink
from joulemap.firmware.boards.virtual_m33.power_model import read_power_model
from joulemap.firmware.toolchains.base import Toolchain
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.records.target import CpuSpec, MemoryRegion, OperatingPoint, Target

__all__ = ["VIRTUAL_M33", "VirtualM33Board"]

_INSTALL = "pip install 'joulemap[virtual]'"
_PACKAGES = ("ziglang", "unicorn", "elftools")

VIRTUAL_M33 = Target(
    name="virtual-m33",
    description="Emulated Cortex-M33 with DSP and FPU, 100 MHz, modelled cycles and simulated power",
    cpu=CpuSpec(core="cortex-m33", features=frozenset({"dsp", "fp_sp"})),
    regions=(
        MemoryRegion(name="flash", origin=0x00000000, size_b=2 * 1024 * 1024),
        MemoryRegion(name="ram", origin=0x20000000, size_b=512 * 1024),
    ),
    operating_point=OperatingPoint(core_hz=100e6, supply_v=3.0),
    boundary=Boundary.RAIL,
    provenance=Provenance.SIMULATED,
    counter_source="virtual_pmu",
    transports=("rtt",),
    requires=("virtual",),
    window_limit_s=WINDOW_LIMIT_S,
)


class VirtualM33Board:
    """A board that needs nothing but Python packages.

    Args:
        compiler: builds the board core for this machine; None for the default toolchain.
        wall_limit_s: of any call of a session; None for a limit from the board time that it may cover.
        pricing: see :class:`VirtualM33Session`.
        accounting: see :class:`VirtualM33Session`.
    """

    def __init__(
        self,
        compiler: Toolchain | None = None,
        *,
        wall_limit_s: float | None = None,
        pricing: Pricing = "scout",
        accounting: bool = True,
    ) -> None:
        self._compiler = compiler
        self._wall_limit_s = wall_limit_s
        self._pricing = pricing
        self._accounting = accounting

    @property
    def target(self) -> Target:
        """What the board is."""
        return VIRTUAL_M33

    def diagnose(self) -> list[tuple[str, str]]:
        """Returns what keeps the board from running: (problem, exact fix); empty when a session opens."""
        problems = _missing()
        if problems:
            return problems
        try:
            self.open().close()
        except JoulemapError as error:
            problems.append((error.message, error.hint))
        return problems

    def open(self) -> VirtualM33Session:
        """Returns a powered session in a process of its own."""
        for problem, fix in _missing():
            raise SetupError(problem, hint=fix, slug="missing-extra")
        compiler = self._compiler or toolchain("zig")
        library = compiler.build_host_library("joulemap_board", _core_sources())
        link = WorkerLink(Path(__file__).with_name("worker.py"), library)
        return VirtualM33Session(
            VIRTUAL_M33,
            read_power_model(),
            link,
            wall_limit_s=self._wall_limit_s,
            pricing=self._pricing,
            accounting=self._accounting,
        )


def _core_sources() -> dict[str, str]:
    folder = Path(__file__).parents[2] / "csrc" / "board"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.[ch]"))}


def _missing() -> list[tuple[str, str]]:
    problems = [
        (f"virtual-m33 needs the Python package {name}", _INSTALL)
        for name in _PACKAGES
        if importlib.util.find_spec(name) is None
    ]
    if sys.platform == "win32":
        problems.append(("virtual-m33 needs a POSIX system", "use Linux, macOS or WSL"))
    return problems
