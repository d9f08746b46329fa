"""The energy of a recording as an icicle: paths of nested slices, or rails inside rails where nothing ran. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.page import FlameNode
from joulemap.report.view.recording.sections import Document, PowerLine
from joulemap.report.view.text import format_measured, format_share, printable, shorten

__all__ = ["BOX_LIMIT", "build_path_flame", "build_rail_flame"]

BOX_LIMIT = 100
"""Boxes that a page holds; of more, those with the most energy."""

_SMALLEST = 1e-3  # share of the whole below which no box is drawn


@dataclass(slots=True)
class _Path:
    """A path while the tree is built: its row, and what is inside it."""

    name: str
    row: Document
    inner: list[_Path] = field(default_factory=list)


def build_path_flame(
    rows: Sequence[Document], document: Document, color: Callable[[str], int], shown: Mapping[str, tuple[int, ...]]
) -> FlameNode | None:
    """Returns the root, or None when there is no energy to show.

    Args:
        rows: of the map by path.
        document: of the map.
        color: of a name.
        shown: name -> names of the scene.
    """
    total = document["total_j"]
    if total["value"] is None or total["value"] <= 0 or not rows or document["split"] == "none":
        return None
    floor_j = max(_SMALLEST * total["value"], _floor(rows))

    def node(path: _Path) -> FlameNode | None:
        children = [made for child in path.inner if (made := node(child)) is not None]
        energy = path.row["energy_j"]
        held_j = energy["value"] if energy["value"] is not None else 0.0
        inside_j = sum(child.energy_j for child in children)
        if max(held_j, inside_j) < floor_j:
            return None
        share = format_share(max(held_j, inside_j) / total["value"], None)
        text = (
            f"{format_measured(energy, 'J')} ({share})" if energy["value"] is not None else f"refused, {share} inside"
        )
        return FlameNode(
            name=shorten(printable(path.name)),
            text=text,
            energy_j=max(held_j, inside_j),
            color=color(path.name),
            names=shown.get(path.name, ()),
            children=tuple(sorted(children, key=lambda child: -child.energy_j)),
        )

    children = [made for path in _grow(rows) if (made := node(path)) is not None]
    idle = document["idle_j"]
    if idle["value"] is not None and idle["value"] >= floor_j:
        share = format_share(idle["value"] / total["value"], idle["expanded"] / total["value"])
        text = f"{format_measured(idle, 'J')} ({share})"
        children.append(FlameNode(name="idle", text=text, energy_j=idle["value"], color=NEUTRAL, names=()))
    return _root("whole recording", total, children)


def _floor(rows: Sequence[Document]) -> float:
    held = sorted((row["energy_j"]["value"] for row in rows if row["energy_j"]["value"] is not None), reverse=True)
    return float(held[BOX_LIMIT]) if len(held) > BOX_LIMIT else 0.0


def _grow(rows: Sequence[Document]) -> list[_Path]:
    """Returns the outermost paths; a path lies in the longest other one that it begins with."""
    paths = {row["key"]: _Path(row["key"], row) for row in rows}
    roots = []
    for key in sorted(paths):
        at = key.rfind(";")
        while at > 0 and key[:at] not in paths:
            at = key.rfind(";", 0, at)
        if at > 0:
            paths[key].name = key[at + 1 :]
            paths[key[:at]].inner.append(paths[key])
        else:
            roots.append(paths[key])
    return roots


def _root(name: str, total: Document, children: list[FlameNode]) -> FlameNode:
    children.sort(key=lambda child: -child.energy_j)
    return FlameNode(
        name=name,
        text=format_measured(total, "J"),
        energy_j=max(total["value"], sum(child.energy_j for child in children)),
        color=NEUTRAL,
        names=(),
        children=tuple(children),
    )


def build_rail_flame(lines: Sequence[PowerLine]) -> FlameNode | None:
    """Returns the mapped trace with the traces inside it, or None when none is."""
    told = [line for line in lines if (line.energy["value"] or 0.0) > 0]
    outer = [line for line in told if line.mapped]
    if len(outer) != 1 or not any(outer[0].name in line.inside for line in told):
        return None
    return _rail(outer[0], told, frozenset(), color=NEUTRAL)


def _rail(line: PowerLine, lines: Sequence[PowerLine], above: frozenset[PowerLine], *, color: int) -> FlameNode:
    seen = above | {line}
    inner = [other for other in lines if line.name in other.inside and other not in seen]
    direct = [other for other in inner if not any(rail.name in other.inside for rail in inner if rail is not other)]
    children = [_rail(other, lines, seen, color=(len(above) + k) % NEUTRAL) for k, other in enumerate(direct)]
    energy_j = float(line.energy["value"])
    text = format_measured(line.energy, "J")
    if above:
        whole_j = max(float(outer.energy["value"]) for outer in above)
        text += f" ({format_share(energy_j / whole_j, line.energy['expanded'] / whole_j)})"
    return FlameNode(
        name=shorten(printable(line.name)),
        text=text,
        energy_j=max(energy_j, sum(child.energy_j for child in children)),
        color=color,
        names=(),
        children=tuple(sorted(children, key=lambda child: -child.energy_j)),
    )
