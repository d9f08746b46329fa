"""Which domains a recording's headline is made of, when several were measured. It must not know a meter.

A domain inside another one is never added to it. Of the rest, those of the widest boundary are the headline unless
somebody chose otherwise: what they feed has one name. A sum over several boundaries is made on request only; its
boundary is the names of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from joulemap.estimate import Boundary

__all__ = ["SUM", "WIDEST_FIRST", "Headline", "choose_headline"]

SUM: Final = "sum"
"""What stands for all domains that no other contains."""

WIDEST_FIRST: Final = (
    Boundary.WALL,
    Boundary.NODE,
    Boundary.BOARD,
    Boundary.SOC,
    Boundary.PACKAGE,
    Boundary.RAIL,
    Boundary.FACILITY,
)
"""What a run on a machine is told by, when several boundaries were measured: the most that is still its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The domains that are added.

    Args:
        domains: names; empty when none of those that were asked for was measured.
        boundary: what they feed together: ``package``, or ``package + rail`` for a sum that was asked for.
        rule: ``only`` (nothing else was measured that could be added), ``widest``, ``sum`` or ``named``.
        left_out: domains that no other contains and that are not in it.
    """

    domains: tuple[str, ...]
    boundary: str
    rule: str
    left_out: tuple[str, ...] = ()

    @property
    def mixed(self) -> bool:
        """True when it was asked for: then it may add domains of several boundaries."""
        return self.rule in {SUM, "named"}


def choose_headline(
    measured: Mapping[str, Boundary], overlaps: Iterable[tuple[str, str]], asked: Sequence[str] = ()
) -> Headline:
    """Returns what the headline is made of.

    Args:
        measured: boundary of each domain that has an energy, in the order of the meters.
        overlaps: pairs of which the second contains the first.
        asked: names of domains, disjoint; :data:`SUM` alone; empty for the widest boundary.
    """
    inner = {pair[0] for pair in overlaps}
    outer = [name for name in measured if name not in inner]
    if asked and SUM not in asked:
        chosen = [name for name in asked if name in measured]
        complete = len(chosen) == len(asked)
        return _headline("named", chosen if complete else [], outer, measured)
    found = [boundary for boundary in WIDEST_FIRST if boundary in {measured[name] for name in outer}]
    if len(found) <= 1:
        return _headline("only", outer, outer, measured)
    if asked:
        return _headline(SUM, outer, outer, measured)
    return _headline("widest", [name for name in outer if measured[name] is found[0]], outer, measured)


def _headline(rule: str, chosen: list[str], outer: list[str], measured: Mapping[str, Boundary]) -> Headline:
    fed = {measured[name] for name in chosen}
    return Headline(
        domains=tuple(chosen),
        boundary=" + ".join(boundary for boundary in WIDEST_FIRST if boundary in fed),
        rule=rule,
        left_out=tuple(name for name in outer if name not in chosen),
    )
