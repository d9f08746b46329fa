"""Everything that a report says, in the order in which it is read: answer, map, hotspots, doubt, provenance.

These records are the seam between the rooms: a builder per kind of bundle fills them (``profile_page``), and every
output renders them (``html``, ``markdown``). Texts are ready to print and not yet escaped for any output.
"""

from __future__ import annotations

from dataclasses import dataclass

from joulemap.report.view.scene import Scene

__all__ = [
    "Badge",
    "BudgetShare",
    "FindingRow",
    "FlameNode",
    "HotspotRow",
    "HotspotTable",
    "PageView",
    "Panel",
    "TraceRow",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One word on what the figures are worth; ``pattern`` picks its border: ``solid``, ``dashed`` or ``double``."""

    word: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HotspotRow:
    """One line of the hotspot table.

    Args:
        name: of the layer, operator, group or path.
        op: kind of operation; a dash for what is none.
        path: its name in the model or source; empty for none.
        color: index into the palette of the page.
        count: executions measured, as text.
        energy: with U, or why there is none.
        energy_j: J per inference; None when unavailable.
        expanded_j: U of it, J; None when unavailable.
        share: of the total.
        cumulative: shares of this and all rows above.
        time: per inference.
        duration_s: the same, s: ranks rows without energies.
        power: mean, while it ran.
        per_mac: energy per multiply-accumulate.
        resolution: how the energy was resolved.
        names: slice names of the scene that are highlighted with it.
        own: the same less what is inside, with U, or time; empty when nothing is inside anything.
        own_j: J of it, which the bar shows; None when ``energy_j`` is shown.
        own_expanded_j: U of it, J.
    """

    name: str
    op: str
    path: str
    color: int
    count: str
    energy: str
    energy_j: float | None
    expanded_j: float | None
    share: str
    cumulative: str
    time: str
    duration_s: float
    power: str
    per_mac: str
    resolution: str
    names: tuple[int, ...]
    own: str = ""
    own_j: float | None = None
    own_expanded_j: float | None = None

    @property
    def shown_j(self) -> tuple[float | None, float]:
        """What the bar shows and U of it, J: what the share is made of."""
        if self.own_j is not None:
            return self.own_j, self.own_expanded_j or 0.0
        return self.energy_j, self.expanded_j or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One trace or rail of a recording.

    Args:
        name: of the trace.
        inside: what contains it; empty when nothing does.
        boundary: what it feeds.
        energy: with U.
        power: mean, with U.
        sampling: how many samples, how far apart.
        role: ``mapped``, ``inside``, or why it is not on the map.
    """

    name: str
    inside: str
    boundary: str
    energy: str
    power: str
    sampling: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A few facts under one heading: how clocks relate, what a published rule gives, what the source states.

    Args:
        title: heading.
        note: how to read it; empty for none.
        rows: label and text.
    """

    title: str
    note: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HotspotTable:
    """The hotspots grouped in one way.

    Args:
        key: ``layer``, ``op``, ``path``, ``name`` or ``kernel``.
        label: for the switch.
        rows: most joules first.
        note: how to read it.
        own_label: heading of what a row holds less what is inside.
    """

    key: str
    label: str
    rows: tuple[HotspotRow, ...]
    note: str = ""
    own_label: str = "Self \u00b1 U"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameNode:
    """A box of the energy icicle; children never hold more than their parent."""

    name: str
    text: str
    energy_j: float
    color: int
    names: tuple[int, ...]
    children: tuple[FlameNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """One contribution to the uncertainty of the headline: its standard uncertainty and its share of the variance."""

    name: str
    kind: str
    std: str
    share: float
    share_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """One doubtful thing, with the place and what to do about it."""

    severity: str
    slug: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageView:
    """A whole report.

    Args:
        subject: what was measured on what.
        badges: what the figures are worth.
        headline: value ± U; None when there is none.
        headline_unit: per what.
        no_headline: what was seen instead; empty when there is a headline.
        next_step: what to do about it; empty when there is a headline.
        hotspot: one sentence on the first hotspot; empty without one.
        figures: label and text: three beside the headline, or what the whole recording still says.
        figures_are: a label for figures that are no headline; empty else.
        scene: the map; None when no waveform was recorded.
        fold: the map with all periods on top of each other; None for a run that is not periodic.
        no_scene: why there is no map; empty when there is one.
        tables: hotspots, one per grouping.
        flame: root of the icicle; None without energies.
        budget: contributions to U of the headline, largest first.
        findings: worst first.
        refused: energies that were refused or grouped, and why: name and reason.
        provenance: label and text.
        command: to reproduce; empty when it cannot be told.
        traces: rails of a recording; empty for a profile.
        panels: further facts, in order.
        joules_are: what the joules of tables and icicle are, in a few words.
        flame_is: what the whole icicle stands for, in a few words.
        flame_title: its heading.
        budget_of: whose uncertainty the budget is.
    """

    subject: str
    badges: tuple[Badge, ...]
    headline: str | None
    headline_unit: str
    no_headline: str
    next_step: str
    hotspot: str
    figures: tuple[tuple[str, str], ...]
    figures_are: str
    scene: Scene | None
    fold: Scene | None
    no_scene: str
    tables: tuple[HotspotTable, ...]
    flame: FlameNode | None
    budget: tuple[BudgetShare, ...]
    findings: tuple[FindingRow, ...]
    refused: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]
    command: str
    traces: tuple[TraceRow, ...] = ()
    panels: tuple[Panel, ...] = ()
    joules_are: str = "joules per inference"
    flame_is: str = "one inference"
    flame_title: str = "Energy by path"
    budget_of: str = "the headline"
