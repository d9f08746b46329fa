"""A fake tree of sysfs in a process of its own, and the truth about it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from joulemap.errors import SetupError
from joulemap.meters.live.kit.layout import TreePlan

__all__ = ["FakeTree", "TreePlan"]

_PATIENCE_S = 20.0


class FakeTree:
    """Files like those of ``/sys/class/{powercap,hwmon,power_supply}`` that a process of its own writes over.

    ``with FakeTree(TreePlan(wave=PowerWave(mean_w=65.0))) as tree:`` opens meters with ``root=str(tree.root)``.

    Args:
        plan: what to build.
        root: folder that stands for ``/sys``; None for a temporary one.
    """

    def __init__(self, plan: TreePlan, root: Path | None = None) -> None:
        self.plan = plan
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._root = root
        self._process: subprocess.Popen[str] | None = None
        self.start_ns = 0

    @property
    def root(self) -> Path:
        """Folder that stands for ``/sys``; there from entry to exit."""
        assert self._root is not None  # set by __enter__
        return self._root

    def energy_j(self, domain: str, start_ns: int, end_ns: int) -> float:
        """Returns the true energy of a domain between two instants of the monotonic clock, J.

        Raises:
            KeyError: the tree has no such domain.
        """
        return self.plan.energy_j(domain, start_ns, end_ns)

    def __enter__(self) -> Self:
        if self._root is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="joulemap-tree-")
            self._root = Path(self._temporary.name)
        command = [sys.executable, "-m", "joulemap.meters.live.kit", str(self._root), *_arguments(self.plan)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None  # a pipe was asked for
        line = self._process.stdout.readline()
        if not line:
            self.__exit__(None, None, None)
            raise SetupError(
                f"the fake tree in {self._root} did not start", hint="is the folder writable?", slug="kit-failed"
            )
        self.start_ns = int(json.loads(line)["start_ns"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
            self._process = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = self._root = None


def _arguments(plan: TreePlan) -> list[str]:
    wave = plan.wave
    options: dict[str, object] = {
        "mean-w": repr(wave.mean_w),
        "swing-w": repr(wave.swing_w),
        "period-s": repr(wave.period_s),
        "shape": str(wave.shape),
        "rate-hz": repr(plan.rate_hz),
        "sockets": plan.sockets,
        "range-uj": plan.range_uj,
        "begin-uj": plan.begin_uj,
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    flags += ["--psys"] if plan.psys else []
    return flags + [f"--fault={fault.format()}" for fault in plan.faults]
