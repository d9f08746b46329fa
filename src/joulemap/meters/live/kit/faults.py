"""What can go wrong with a fake tree, and when."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

__all__ = ["KitFault", "KitFaultKind"]


class KitFaultKind(StrEnum):
    """What happens to the files of a domain."""

    VANISH = "vanish"  # the files are taken away, and come back when the fault ends
    FREEZE = "freeze"  # the value stays as it is while energy flows on
    WRAP_TWICE = "wrap_twice"  # the value stays until the counter has passed its end twice
    BACKWARDS = "backwards"  # the counter falls by a tenth of its range
    JUMP = "jump"  # the counter leaps by a quarter of its range
    TEXT = "text"  # the file holds a word
    DENY = "deny"  # the file is replaced by one that only root may read


@dataclass(frozen=True, slots=True, kw_only=True)
class KitFault:
    """One fault.

    Args:
        kind: what happens.
        at_s: when it begins, s after the start of the tree.
        lasts_s: how long, s; infinite by default. ``wrap_twice``, ``backwards`` and ``jump`` end by themselves.
        domain: name of the domain; empty for all of the tree.
    """

    kind: KitFaultKind
    at_s: float
    lasts_s: float = math.inf
    domain: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the fault of ``KIND@SECONDS[+SECONDS][:DOMAIN]``: ``vanish@2+1.5:package-0``.

        Raises:
            ValueError: it is none.
        """
        when, _, domain = text.partition(":")
        kind, at, times = when.partition("@")
        start, plus, lasts = times.partition("+")
        if not at:
            raise ValueError(f"{text!r} is no fault: write KIND@SECONDS[+SECONDS][:DOMAIN]")
        return cls(
            kind=KitFaultKind(kind), at_s=float(start), lasts_s=float(lasts) if plus else math.inf, domain=domain
        )

    def format(self) -> str:
        """Returns the text that :meth:`parse` takes."""
        lasts = "" if math.isinf(self.lasts_s) else f"+{self.lasts_s!r}"
        return f"{self.kind}@{self.at_s!r}{lasts}" + (f":{self.domain}" if self.domain else "")

    def holds(self, elapsed_s: float) -> bool:
        """True while the fault is on."""
        return self.at_s <= elapsed_s < self.at_s + self.lasts_s
