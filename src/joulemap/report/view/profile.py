"""The result of ``joulemap profile`` as headline, figures and rows. Input is the document of the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joulemap.report.view.host.facts import format_members, host_figures, is_host, label_energy
from joulemap.report.view.text import (
    DASH,
    format_cycles,
    format_macs,
    format_memory,
    format_quantity,
    format_share,
    format_time,
    printable,
)
from joulemap.units import format_si

__all__ = ["LayerRow", "ProfileView", "build_profile_view"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """One line of the table; every cell is text already.

    Args:
        index: layer number; empty for a group, the gap and the sum.
        op: operator, or what the line stands for.
        macs: multiply-accumulates.
        cycles: core cycles per inference.
        time: per inference.
        energy: with its expanded uncertainty, or the group that holds it.
        share: of the gate energy per inference.
        fill: length of the bar, 0..1; None for no bar.
    """

    index: str
    op: str
    macs: str
    cycles: str
    time: str
    energy: str
    share: str
    fill: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileView:
    """Everything that a person is shown of a profile, in the order of importance.

    Args:
        title: model, target, engine.
        badge: provenance and validity in words.
        rows: layers, groups, gap, sum.
        headline: energy per inference; None when there is none.
        no_headline: why there is none; empty when there is one.
        hotspot: one sentence on the first hotspot; empty without one.
        figures: label and text.
        findings: severity, slug, message.
        cycles_are: what kind of number the cycles are, for example ``modelled``.
    """

    title: str
    badge: str
    rows: tuple[LayerRow, ...]
    headline: str | None
    no_headline: str
    hotspot: str
    figures: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, str, str], ...]
    cycles_are: str


def build_profile_view(document: Document) -> ProfileView:
    """Returns the view of a profile document; raises KeyError when a required key is missing."""
    total = document["energy_per_inference_j"]
    available = total["value"] is not None
    power = document["plan"] is not None
    return ProfileView(
        title=printable(
            f"{document['model']['name']} on {document['target']['name']}, engine {document['model']['engine']}"
        ),
        badge=_badge(document, power=power),
        rows=_rows(document, power=power),
        headline=f"{format_quantity(total, 'J')} per inference" if available else None,
        no_headline="" if available else _explain_missing(document, power=power),
        hotspot=_hotspot(document) if available else "",
        figures=_figures(document, power=power),
        findings=_findings(document["findings"]),
        cycles_are=document["time_provenance"],
    )


def _badge(document: Document, *, power: bool) -> str:
    provenance = document["energy_per_inference_j"]["provenance"]
    if provenance == "unavailable":
        provenance = document["target"]["provenance"]
    energies = f"energies {_words(provenance)}, " if power else ""
    return f"{energies}times {_words(document['time_provenance'])}, {document['validity']}"


def _explain_missing(document: Document, *, power: bool) -> str:
    if not power:
        return "No energy: the run had no power phase (--no-power)."
    reason = document["energy_per_inference_j"]["reason"]
    worst = next((f for f in _by_severity(document["findings"]) if f["slug"] == reason), None)
    what = f" {printable(worst['message'])}" if worst else ""
    return f"No energy per inference: the run is {document['validity']} ({reason}).{what}"


def _by_severity(findings: Sequence[Document]) -> list[Document]:
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda f: order[f["severity"]])


def _findings(findings: Sequence[Document]) -> tuple[tuple[str, str, str], ...]:
    """Returns each kind of finding once, worst first: the first message, and every place that it was found at."""
    kinds: dict[tuple[str, str], list[Document]] = {}
    for finding in _by_severity(findings):
        kinds.setdefault((finding["severity"], finding["slug"]), []).append(finding)
    merged = []
    for (severity, slug), found in kinds.items():
        places = ", ".join(f["span"] for f in found if f["span"])
        message = f"{found[0]['message']} [{places}]" if places else found[0]["message"]
        merged.append((severity, slug, printable(message)))
    return tuple(merged)


def _rows(document: Document, *, power: bool) -> tuple[LayerRow, ...]:
    layers, groups = document["layers"], {group["id"]: group for group in document["groups"]}
    total = document["energy_per_inference_j"]["value"]
    largest = max((layer["share"] or 0.0 for layer in layers), default=0.0)
    rows: list[LayerRow] = []
    for layer in layers:
        rows.append(_layer_row(layer, total, largest))
        group = groups.get(layer["group"])
        if group is not None and group["layers"][-1] == layer["index"]:
            rows.append(_group_row(group, total, largest))
    if power:
        holder = next((group["id"] for group in document["groups"] if group["contains_gap"]), None)
        rows.append(_gap_row(document["gap"], total, holder))
    rows.append(_sum_row(document))
    return tuple(rows)


def _share(quantity: Document, total: float | None) -> tuple[float | None, float | None]:
    if quantity["value"] is None or not total:
        return None, None
    return quantity["value"] / total, quantity["expanded"] / abs(total)


def _layer_row(layer: Document, total: float | None, largest: float) -> LayerRow:
    energy = layer["energy_j"]
    share, expanded = _share(energy, total)
    return LayerRow(
        index=str(layer["index"]),
        op=printable(layer["op"]),
        macs=format_macs(layer["macs"]),
        cycles=format_cycles(layer["cycles"]),
        time=format_time(layer["duration_s"]),
        energy=f"in {layer['group']}" if layer["group"] else label_energy(layer, format_quantity(energy, "J")),
        share=format_share(share, expanded),
        fill=share / largest if share is not None and largest > 0 else None,
    )


def _group_row(group: Document, total: float | None, largest: float) -> LayerRow:
    share, expanded = _share(group["energy_j"], total)
    members = format_members(group["layers"])
    return LayerRow(
        index="",
        op=f"{group['id']}: {members}{' + gap' if group['contains_gap'] else ''}",
        macs="",
        cycles="",
        time=format_time(group["duration_s"]),
        energy=format_quantity(group["energy_j"], "J"),
        share=format_share(share, expanded),
        fill=min(share / largest, 1.0) if share is not None and largest > 0 else None,
    )


def _gap_row(gap: Document, total: float | None, holder: str | None) -> LayerRow:
    share, expanded = _share(gap["energy_j"], total)
    return LayerRow(
        index="",
        op="between layers",
        macs="",
        cycles="",
        time=format_time(gap["duration_s"]),
        energy=f"in {holder}" if holder else format_quantity(gap["energy_j"], "J"),
        share=format_share(share, expanded),
        fill=None,
    )


def _sum_row(document: Document) -> LayerRow:
    total = document["energy_per_inference_j"]
    return LayerRow(
        index="",
        op="one inference",
        macs=format_macs(document["ops_per_inference"] // 2),
        cycles=format_cycles(document["cycles_per_inference"]),
        time=format_time(document["latency_s"]["value"]),
        energy=format_quantity(total, "J"),
        share="100\u2009%" if total["value"] is not None else DASH,
        fill=None,
    )


def _hotspot(document: Document) -> str:
    alone = [layer for layer in document["layers"] if layer["energy_j"]["value"] is not None]
    if not alone:
        return ""
    first = max(alone, key=lambda layer: layer["energy_j"]["value"])
    share, expanded = _share(first["energy_j"], document["energy_per_inference_j"]["value"])
    what = f"{printable(first['op'])} #{first['index']}"
    modelled = ", modelled" if first["energy_j"].get("provenance") == "modelled" else ""
    return f"{what} takes {format_share(share, expanded)} ({format_quantity(first['energy_j'], 'J')}{modelled})"


def _figures(document: Document, *, power: bool) -> tuple[tuple[str, str], ...]:
    point = document["operating_point"]
    energies: tuple[tuple[str, str], ...] = ()
    if document["energy_per_inference_j"]["value"] is not None:
        energies = _energy_figures(document)
    elif "trace_statistics" in document:
        energies = _trace_figures(document["trace_statistics"])
    own = host_figures(document) if is_host(document) else _board_figures(document, point)
    return (
        *energies,
        ("latency", format_quantity(document["latency_s"], "s")),
        *own,
        ("provenance", _provenance(document, power=power)),
        ("integrity", _integrity(document, power=power)),
    )


def _board_figures(document: Document, point: Document) -> tuple[tuple[str, str], ...]:
    clock, supply = format_si(point["core_hz"], "Hz", digits=4), format_si(point["supply_v"], "V", digits=3)
    return (("memory", _memory(document["memory"])), ("clock and supply", f"{clock}, {supply}"))


def _energy_figures(document: Document) -> tuple[tuple[str, str], ...]:
    above_idle = format_quantity(document["energy_above_idle_per_inference_j"], "J")
    efficiency = format_quantity(document["ops_per_j"], "op/J")
    return (
        ("above idle", f"{above_idle} per inference"),
        ("inferences per joule", format_quantity(document["inferences_per_j"], "")),
        ("efficiency", f"{efficiency} ({document['ops_definition']})"),
        ("average power", format_quantity(document["average_power_w"], "W")),
        ("peak power", f"{format_quantity(document['peak_power_w'], 'W')}{_bandwidth(document)}"),
    )


def _trace_figures(statistics: Document) -> tuple[tuple[str, str], ...]:
    return (
        ("what follows is", printable(statistics["label"])),
        ("energy", f"{format_quantity(statistics['energy_j'], 'J')} in {format_time(statistics['duration_s'])}"),
        ("average power", format_quantity(statistics["average_power_w"], "W")),
    )


def _bandwidth(document: Document) -> str:
    bandwidth_hz = document["peak_bandwidth_hz"]
    return "" if bandwidth_hz is None else f" at {format_si(bandwidth_hz, 'Hz', digits=3)}"


def _memory(memory: Document) -> str:
    parts = (("flash", "flash_b"), ("RAM", "ram_b"), ("arena", "arena_b"))
    return ", ".join(f"{name} {format_memory(memory[key])}" for name, key in parts)


def _words(provenance: str) -> str:
    return provenance.replace("_", " ")


def _provenance(document: Document, *, power: bool) -> str:
    target = document["target"]
    energies = f"energies {_words(target['provenance'])} at the {target['boundary']}; " if power else ""
    if is_host(document):
        return f"{energies}times {_words(document['time_provenance'])}, of operators by {document['counter_source']}"
    return f"{energies}cycles and times {document['time_provenance']}"


def _integrity(document: Document, *, power: bool) -> str:
    checked = document["output_crc"]
    output = "output unchecked"
    if checked.get("oracle") is not None:
        images = [checked[key] for key in ("profile_image", "power_image") if checked.get(key) is not None]
        output = (
            "output equals the oracle's"
            if all(c == checked["oracle"] for c in images)
            else "output differs from the oracle's"
        )
    if not power:
        return output
    captures = document["captures"]
    valid = sum(capture["observation"]["integrity"] == "valid" for capture in captures)
    return f"{document['validity']}, {valid} of {document['plan']['repeats']} captures valid, {output}"
