"""The energy of one inference as an icicle: inference, kind of operation, layer; width is joules. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.hotspots import Part, list_parts
from joulemap.report.view.page import FlameNode
from joulemap.report.view.text import format_quantity, format_share, format_supported, printable

__all__ = ["build_flame"]


def build_flame(document: Mapping[str, Any], colors: Mapping[str, int], names: Mapping[int, int]) -> FlameNode | None:
    """Returns the root, or None when there is no energy to show.

    Args:
        document: of the profile.
        colors: palette index by op.
        names: slice name in the scene by layer index.
    """
    total = document["energy_per_inference_j"]
    if total["value"] is None:
        return None
    parts = [part for part in list_parts(document) if part.in_sum and (part.energy["value"] or 0.0) > 0]
    kinds: dict[str, list[Part]] = {}
    for part in parts:
        kinds.setdefault(part.op or part.name, []).append(part)
    children = [_kind(name, members, total["value"], colors=colors, names=names) for name, members in kinds.items()]
    children.sort(key=lambda node: -node.energy_j)
    return FlameNode(
        name="one inference",
        text=format_quantity(total, "J"),
        # the parts add up to the whole within U; boxes never stick out of their parent
        energy_j=max(total["value"], sum(node.energy_j for node in children)),
        color=NEUTRAL,
        names=(),
        children=tuple(children),
    )


def _kind(
    name: str, members: Sequence[Part], total_j: float, *, colors: Mapping[str, int], names: Mapping[int, int]
) -> FlameNode:
    leaves = sorted((_leaf(part, total_j, colors, names) for part in members), key=lambda node: -node.energy_j)
    if len(leaves) == 1:
        return leaves[0]
    energy_j = sum(node.energy_j for node in leaves)
    expanded_j = sum(part.energy["expanded"] for part in members)
    share = format_share(energy_j / total_j, expanded_j / abs(total_j))
    return FlameNode(
        name=printable(name),
        text=f"{format_supported(energy_j, expanded_j, 'J')} ({share}), {len(leaves)} layers",
        energy_j=energy_j,
        color=colors.get(members[0].op, NEUTRAL),
        names=tuple(k for node in leaves for k in node.names),
        children=tuple(leaves),
    )


def _leaf(part: Part, total_j: float, colors: Mapping[str, int], names: Mapping[int, int]) -> FlameNode:
    share = format_share(part.energy["value"] / total_j, part.energy["expanded"] / abs(total_j))
    return FlameNode(
        name=printable(part.name),
        text=f"{format_quantity(part.energy, 'J')} ({share})",
        energy_j=part.energy["value"],
        color=colors.get(part.op, NEUTRAL),
        names=tuple(names[k] for k in part.layers if k in names),
    )
