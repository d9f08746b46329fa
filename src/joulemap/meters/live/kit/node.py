"""One file of a fake tree: what number stands in it at an instant, and how it is written over."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from joulemap.meters.live.ground.waves import PowerWave
from joulemap.meters.live.kit.faults import KitFault, KitFaultKind

__all__ = ["CounterRule", "Node", "Rule", "power_rule"]

Rule = Callable[[int], int]
"""From an instant, ns, to the number in the file."""
_WIDTH = 18
_COUNTS = 2**32


@dataclass(slots=True, kw_only=True)
class CounterRule:
    """A counter of 32 bits of one energy unit that the kernel shows in microjoules.

    Args:
        wave: power of the domain.
        range_uj: highest value that the file can show, microjoules; None for a counter that never starts anew.
        begin_ns: instant at which the counter holds ``begin_uj``.
        begin_uj: microjoules.
    """

    wave: PowerWave
    range_uj: int | None
    begin_ns: int
    begin_uj: float

    def __call__(self, now_ns: int) -> int:
        """Returns the value at an instant, microjoules."""
        energy_uj = self.begin_uj + self.wave.energy_j(self.begin_ns, now_ns) * 1e6
        if self.range_uj is None:
            return int(energy_uj)
        unit_uj = self.range_uj / (_COUNTS - 1)
        return int(int(energy_uj / unit_uj) % _COUNTS * unit_uj)


def power_rule(wave: PowerWave, per_watt: float) -> Rule:
    """Returns the rule of a file that shows power, or a current at constant voltage.

    Args:
        wave: power of the domain.
        per_watt: number in the file for each watt.
    """

    def value(now_ns: int) -> int:
        return round(wave.power_w(now_ns) * per_watt)

    return value


@dataclass(slots=True)
class Node:
    """A file whose number changes.

    Args:
        path: of the file.
        domain: that it belongs to; faults name it.
        rule: its number.
    """

    path: Path
    domain: str
    rule: Rule
    _descriptor: int = -1
    _shift: int = 0
    _done: set[int] = field(default_factory=set)

    def write(self, now_ns: int, elapsed_s: float, faults: tuple[KitFault, ...]) -> None:
        """Writes the number of an instant, as the faults that are on let it."""
        for at, fault in enumerate(faults):
            if fault.domain not in {"", self.domain} or elapsed_s < fault.at_s:
                continue
            if self._spoil(at, fault, now_ns, elapsed_s):
                return
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o444)
        os.pwrite(self._descriptor, b"%0*d\n" % (_WIDTH, self._value(now_ns)), 0)

    def close(self) -> None:
        """Closes the file; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _value(self, now_ns: int) -> int:
        value = self.rule(now_ns) + self._shift
        largest = self.rule.range_uj if isinstance(self.rule, CounterRule) else None
        return value if largest is None else value % (largest + 1)

    def _spoil(self, at: int, fault: KitFault, now_ns: int, elapsed_s: float) -> bool:
        """Applies a fault that has begun; True when the number is not to be written."""
        if fault.kind in {KitFaultKind.BACKWARDS, KitFaultKind.JUMP}:
            if at not in self._done:
                self._done.add(at)
                self._shift += self._leap(fault.kind, now_ns)
            return False
        if fault.kind is KitFaultKind.WRAP_TWICE:
            return elapsed_s < fault.at_s + self._two_wraps_s()
        if not fault.holds(elapsed_s):
            return False
        if at not in self._done:
            self._done.add(at)
            self._begin(fault.kind)
        return True

    def _begin(self, kind: KitFaultKind) -> None:
        if kind is KitFaultKind.FREEZE:
            return
        if kind is KitFaultKind.TEXT:
            os.pwrite(self._descriptor, b"unavailable".ljust(_WIDTH) + b"\n", 0)
            return
        self.close()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        if kind is KitFaultKind.DENY:
            self.path.touch(mode=0o400)

    def _leap(self, kind: KitFaultKind, now_ns: int) -> int:
        largest = self.rule.range_uj if isinstance(self.rule, CounterRule) else None
        if kind is KitFaultKind.JUMP:
            return (largest or 10**12) // 4
        return -min((largest or 10**12) // 10, self._value(now_ns))

    def _two_wraps_s(self) -> float:
        if not isinstance(self.rule, CounterRule) or self.rule.range_uj is None:
            return 0.0
        return 2.2 * self.rule.range_uj * 1e-6 / self.rule.wave.mean_w
