"""What this machine lacks for a target, and the exact fix. Looks; changes nothing but a file it removes again."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from joulemap import __version__
from joulemap.errors import JoulemapError
from joulemap.firmware.boards.base import Board
from joulemap.firmware.boards.registry import board, board_names
from joulemap.firmware.toolchains.cache import default_cache_dir
from joulemap.firmware.toolchains.registry import toolchain
from joulemap.records.host.machine import MachineFact
from joulemap.workflow.machine.check import Check
from joulemap.workflow.machine.doctor_host import HOST, check_host
from joulemap.workflow.machine.survey import survey_machine

__all__ = ["HOST", "BoardStatus", "Check", "Verdict", "check_environment", "diagnose", "survey_boards"]

_MIN_PYTHON = (3, 11)
_MIN_FREE_B = 200 * 1024 * 1024  # zig's own cache is 51 MB, a bundle of five 2 s captures at 1 MS/s about 45 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardStatus:
    """A target and what keeps it from running here: (problem, fix); empty when it can run."""

    board: Board
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a target can run here, and why not.

    Args:
        target: its name.
        checks: what was looked at.
    """

    target: str
    checks: tuple[Check, ...]

    @property
    def runnable(self) -> bool:
        """True when nothing that it needs is missing, or could not be read."""
        return all(check.ok is True for check in self.checks if check.required)


def diagnose(target: str | None = None) -> tuple[tuple[Verdict, ...], tuple[MachineFact, ...]]:
    """Returns the verdict of a target, or of this machine and every board, and the state of the machine.

    Raises:
        UsageError: there is no such target (``unknown-target``).
    """
    names = (HOST, *board_names()) if target is None else (target,)
    return tuple(Verdict(target=name, checks=check_environment(name)) for name in names), survey_machine()


def survey_boards() -> tuple[BoardStatus, ...]:
    """Returns every target that a run can name, with what keeps it from running here."""
    boards = [board(name) for name in board_names()]
    return tuple(BoardStatus(board=kind, problems=tuple(kind.diagnose())) for kind in boards)


def check_environment(target: str, *, toolchain_name: str = "zig") -> tuple[Check, ...]:
    """Returns what a run on the target needs, each looked at once.

    Raises:
        UsageError: there is no such target.
    """
    if target == HOST:
        return check_host()
    kind = board(target)
    cache = default_cache_dir()
    checks = [_check_python(), *_check_board(kind), _check_toolchain(toolchain_name), _check_oracle(), _check_kernels()]
    return (*checks, _check_writable(cache), _check_space(cache))


def _check_python() -> Check:
    ok = sys.version_info >= _MIN_PYTHON
    wanted = ".".join(map(str, _MIN_PYTHON))
    return Check(
        name="python",
        ok=ok,
        required=True,
        detail=f"{platform.python_implementation()} {platform.python_version()}, joulemap {__version__}",
        fix="" if ok else f"install Python {wanted} or newer",
    )


def _check_board(kind: Board) -> list[Check]:
    problems = kind.diagnose()
    if not problems:
        return [Check(name="board", ok=True, required=True, detail=f"{kind.target.name}: {kind.target.description}")]
    return [Check(name="board", ok=False, required=True, detail=problem, fix=fix) for problem, fix in problems]


def _check_toolchain(name: str) -> Check:
    try:
        return Check(name="toolchain", ok=True, required=True, detail=toolchain(name).describe())
    except JoulemapError as error:
        return Check(name="toolchain", ok=False, required=True, detail=error.message, fix=error.hint)


def _check_oracle() -> Check:
    ok = importlib.util.find_spec("tflite_micro") is not None
    return Check(
        name="oracle",
        ok=ok,
        required=True,
        detail="tflite-micro reads models and checks outputs" if ok else "tflite-micro is not installed",
        fix="" if ok else "pip install 'joulemap[virtual]'",
    )


def _check_kernels() -> Check:
    ok = importlib.util.find_spec("numba") is not None
    return Check(
        name="fast kernels",
        ok=ok,
        required=False,
        detail="numba" if ok else "numba is not installed; the numpy kernels give the same figures, more slowly",
        fix="" if ok else "pip install 'joulemap[fast]'",
    )


def _check_writable(cache: Path) -> Check:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError as error:
        what = f"{cache} is not writable: {error.strerror}"
        return Check(
            name="build cache", ok=False, required=True, detail=what, fix="set JOULEMAP_CACHE_DIR to a writable folder"
        )
    return Check(name="build cache", ok=True, required=True, detail=f"{cache} is writable")


def _check_space(cache: Path) -> Check:
    folder = next((parent for parent in (cache, *cache.parents) if parent.exists()), Path("/"))
    free_b = shutil.disk_usage(folder).free
    ok = free_b >= _MIN_FREE_B
    detail = f"{free_b // 2**20} MiB free, {_MIN_FREE_B // 2**20} MiB wanted"
    return Check(
        name="disk space", ok=ok, required=True, detail=detail, fix="" if ok else f"free some space under {folder}"
    )
