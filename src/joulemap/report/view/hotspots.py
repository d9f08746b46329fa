"""The hotspot tables of a profile: by layer, by kind of operation, by path; most joules first. Pure.

The U of a sum of layers is the sum of their U: an upper bound, since gain, offset and clock are common to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from joulemap.report.view.colors import NEUTRAL
from joulemap.report.view.host.facts import format_members
from joulemap.report.view.page import HotspotRow, HotspotTable
from joulemap.report.view.text import DASH, format_quantity, format_share, format_supported, format_time, printable

__all__ = ["Part", "build_tables", "list_parts"]

Document = Mapping[str, Any]
_RESOLUTIONS = {
    "overlap": "overlap",
    "least_squares": "least squares",
    "in_place": "in place",
    "time_share": "by time (modelled)",
    "refused": "refused",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A layer, a group of layers, or the gap: what the energy of one inference is made of.

    Args:
        name: as shown.
        op: kind of operation; empty for a group of several kinds and for the gap.
        path: name of the layer in its model.
        energy: estimate of the contract's JSON.
        duration_s: per inference.
        macs: multiply-accumulates; 0 for none.
        resolution: as shown.
        layers: their indices; empty for the gap.
        in_sum: False for a member of a group, whose energy is in the group's part.
    """

    name: str
    op: str
    path: str
    energy: Document
    duration_s: float
    macs: int
    resolution: str
    layers: tuple[int, ...]
    in_sum: bool = True


def list_parts(document: Document) -> tuple[Part, ...]:
    """Returns layers, groups and gap of a profile document, in the order of the model."""
    layers: Sequence[Document] = document["layers"]
    parts = [
        Part(
            name=f"{layer['op']} #{layer['index']}",
            op=layer["op"],
            path=layer["name"],
            energy=layer["energy_j"],
            duration_s=layer["duration_s"],
            macs=layer["macs"],
            resolution=f"in {layer['group']}" if layer["group"] else _resolution(layer),
            layers=(layer["index"],),
            in_sum=layer["group"] is None,
        )
        for layer in layers
    ]
    by_index = {layer["index"]: layer for layer in layers}
    parts += [_group(group, [by_index[k] for k in group["layers"]]) for group in document["groups"]]
    gap = document["gap"]
    grouped = any(group["contains_gap"] for group in document["groups"])
    if document["plan"] is not None and not grouped:
        parts.append(
            Part(
                name="between layers",
                op="",
                path="",
                energy=gap["energy_j"],
                duration_s=gap["duration_s"],
                macs=0,
                resolution=_gap_resolution(document),
                layers=(),
            )
        )
    return tuple(parts)


def _gap_resolution(document: Document) -> str:
    """Returns how what no layer holds was resolved: as the layers that stand alone."""
    if document["gap"]["energy_j"]["value"] is None:
        return DASH
    return next((_resolution(layer) for layer in document["layers"] if layer["energy_j"]["value"] is not None), DASH)


def _resolution(layer: Document) -> str:
    return _RESOLUTIONS.get(layer["resolution"], DASH)


def _group(group: Document, layers: Sequence[Document]) -> Part:
    ops = list(dict.fromkeys(layer["op"] for layer in layers))
    indices = tuple(int(k) for k in group["layers"])
    gapless = indices[-1] - indices[0] == len(indices) - 1
    members = f"#{indices[0]}" if len(indices) == 1 else f"#{indices[0]}\u2013{indices[-1]}"
    members = members if gapless else f"#{format_members(indices)}"
    return Part(
        name=f"{group['id']}: {_kinds(ops)} {members}{' + gap' if group['contains_gap'] else ''}",
        op=ops[0] if len(ops) == 1 else "",
        path=" + ".join(layer["name"] for layer in layers) if len(layers) <= 8 else "",
        energy=group["energy_j"],
        duration_s=group["duration_s"],
        macs=sum(layer["macs"] for layer in layers),
        resolution="sum alone",
        layers=indices,
    )


def _kinds(ops: Sequence[str]) -> str:
    return " + ".join(ops) if len(ops) <= 4 else f"{' + '.join(ops[:3])} and {len(ops) - 3} more kinds"


def build_tables(
    document: Document, colors: Mapping[str, int], names: Mapping[int, int], *, count: str
) -> tuple[HotspotTable, ...]:
    """Returns the tables by layer, op and path.

    Args:
        document: of the profile.
        colors: palette index by op.
        names: slice name in the scene by layer index.
        count: executions of each layer that were measured, as text.
    """
    parts = list_parts(document)
    total = document["energy_per_inference_j"]["value"]

    def row(part: Part) -> HotspotRow:
        return _row(part, total, color=colors.get(part.op, NEUTRAL), names=names, count=count)

    by_op = _merge(parts, lambda part: part.op or part.name)
    by_path = _merge(parts, lambda part: part.path.split("/")[0] if part.path else part.name)
    bound = "U of a sum of layers is the sum of their U, an upper bound."
    tables = [HotspotTable(key="layer", label="Layer", rows=_ranked(tuple(map(row, parts)), total))]
    if len(by_op) < len(parts):
        tables.append(HotspotTable(key="op", label="Op", rows=_ranked(tuple(map(row, by_op)), total), note=bound))
    if any("/" in part.path for part in parts) and 1 < len(by_path) < len(parts):
        tables.append(HotspotTable(key="path", label="Path", rows=_ranked(tuple(map(row, by_path)), total), note=bound))
    return tuple(tables)


def _merge(parts: Sequence[Part], key: Any) -> list[Part]:
    """Returns one part per key; energies are added, members of groups count through their group."""
    merged: dict[str, list[Part]] = {}
    for part in parts:
        if part.in_sum:
            merged.setdefault(key(part), []).append(part)
    return [
        members[0] if len(members) == 1 and not members[0].op else _add(name, members)
        for name, members in merged.items()
    ]


def _add(name: str, members: Sequence[Part]) -> Part:
    known = [part.energy for part in members if part.energy["value"] is not None]
    energy: dict[str, Any] = dict(members[0].energy)
    if len(known) == len(members):
        energy["value"] = sum(e["value"] for e in known)
        energy["expanded"] = sum(e["expanded"] for e in known)
    else:
        energy = {"value": None}
    ops = {part.op for part in members}
    ways = dict.fromkeys(part.resolution for part in members)
    return Part(
        name=name,
        op=members[0].op if len(ops) == 1 else "",
        path=name,
        energy=energy,
        duration_s=sum(part.duration_s for part in members),
        macs=sum(part.macs for part in members),
        resolution=", ".join(ways),
        layers=tuple(k for part in members for k in part.layers),
    )


def _row(part: Part, total: float | None, *, color: int, names: Mapping[int, int], count: str) -> HotspotRow:
    value, expanded = part.energy["value"], part.energy.get("expanded")
    share = expanded_share = None
    power = per_mac = DASH
    if value is not None and expanded is not None:
        if total:
            share, expanded_share = value / total, expanded / abs(total)
        if part.duration_s > 0:
            power = format_supported(value / part.duration_s, expanded / part.duration_s, "W")
        if part.macs:
            per_mac = format_supported(value / part.macs, expanded / part.macs, "J")
    energy = format_quantity(part.energy, "J")
    if not part.in_sum:
        energy = part.resolution
    return HotspotRow(
        name=printable(part.name),
        op=printable(part.op) or DASH,
        path=printable(part.path),
        color=color,
        count=count,
        energy=energy,
        energy_j=value,
        expanded_j=expanded,
        share=format_share(share, expanded_share),
        cumulative=DASH,
        time=format_time(part.duration_s),
        duration_s=part.duration_s,
        power=power,
        per_mac=per_mac,
        resolution=part.resolution,
        names=tuple(names[k] for k in part.layers if k in names),
    )


def _ranked(rows: Sequence[HotspotRow], total: float | None) -> tuple[HotspotRow, ...]:
    """Returns the rows, most joules first, those without a figure last, each with the share of all down to it."""
    ranked = sorted(rows, key=lambda row: (row.energy_j is None, -(row.energy_j or 0.0), -row.duration_s))
    summed_j = expanded_j = 0.0
    out = []
    for row in ranked:
        if row.energy_j is not None and row.expanded_j is not None and total:
            summed_j += row.energy_j
            expanded_j += row.expanded_j
            row = replace(row, cumulative=format_share(summed_j / total, expanded_j / abs(total)))  # noqa: PLW2901
        out.append(row)
    return tuple(out)
