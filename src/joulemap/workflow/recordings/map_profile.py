"""The layers of a profile as the rows of a map: per inference, sorted, summed by operator where asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap import __version__
from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import UsageError

__all__ = ["map_profile"]


def map_profile(result: Mapping[str, Any], key: MapKey, *, bundle: str) -> dict[str, object]:
    """Returns the map document of a profile; every figure is per inference.

    Args:
        result: of the bundle.
        key: ``layer`` or ``name`` for each layer, ``op`` for sums over operators.
        bundle: its path.

    Raises:
        UsageError: a profile has no rows of that key.
    """
    if key not in (MapKey.NAME, MapKey.LAYER, MapKey.OP):
        raise UsageError(f"--by {key}: a profile has layers", hint="use --by layer or --by op", slug="flags-contradict")
    total = result["energy_per_inference_j"]
    rows = [_row(layer, total["value"]) for layer in result["layers"]]
    rows += [_group_row(group, total["value"]) for group in result["groups"]]
    if key is MapKey.OP:
        rows = _by_operator(result["layers"], rows, total["value"])
    rows.sort(key=lambda row: (-(row["self_j"]["value"] if row["self_j"]["value"] is not None else -1.0), row["key"]))
    running = 0.0
    for row in rows:
        if row["share"] is not None:
            running += row["share"]
            row["cumulative_share"] = running
    gap = result["gap"]
    return {
        "schema": "joulemap.map",
        "schema_version": 1,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": result["run_id"],
        "validity": result["validity"],
        "findings": list(result["findings"]),
        "bundle": bundle,
        "traces": [],
        "timeline": None,
        "per": "inference",
        "total_j": total,
        "idle_j": gap["energy_j"],
        "power_w": result["average_power_w"],
        "duration_s": result["latency_s"]["value"],
        "busy_s": sum(layer["duration_s"] for layer in result["layers"]),
        "split": "none",
        "concurrent_tracks": 1,
        "rows": rows,
        "rule": "joulemap",
        "metrics": {
            "inferences_per_j": result["inferences_per_j"],
            "ops_per_j": result["ops_per_j"],
            "latency_s": result["latency_s"],
        },
        "clocks": [],
        "budget": list(result.get("budget", [])),
        "meter": {"name": None, "source": None},
    }


def _power(energy: Mapping[str, Any], duration_s: float) -> dict[str, Any]:
    if energy["value"] is None or not duration_s:
        return dict(energy)
    return {k: v / duration_s if k in ("value", "std", "expanded") else v for k, v in energy.items()}


def _blank(key: str, energy: Mapping[str, Any], duration_s: float, total: float | None) -> dict[str, Any]:
    known = energy["value"] is not None
    return {
        "key": key,
        "count": 1,
        "outside": 0,
        "energy_j": dict(energy),
        "self_j": dict(energy),
        "share": energy["value"] / total if known and total else None,
        "cumulative_share": None,
        "duration_s": duration_s,
        "self_s": duration_s,
        "mean_power_w": _power(energy, duration_s),
        "resolution": "refused",
        "reason": None if known else energy.get("reason"),
        "runs_needed": None,
    }


def _row(layer: Mapping[str, Any], total: float | None) -> dict[str, Any]:
    row = _blank(f"{layer['op']} #{layer['index']}", layer["energy_j"], layer["duration_s"], total)
    known = layer["energy_j"]["value"] is not None
    return row | {"resolution": layer.get("resolution", "overlap") if known else "refused"}


def _group_row(group: Mapping[str, Any], total: float | None) -> dict[str, Any]:
    layers = ", ".join(f"#{index}" for index in group["layers"])
    key = f"{group['id']}: {layers}{' and the gap' if group['contains_gap'] else ''}"
    row = _blank(key, group["energy_j"], group["duration_s"], total)
    return row | {"count": len(group["layers"]), "resolution": "least_squares"}


def _by_operator(
    layers: Sequence[Mapping[str, Any]], rows: Sequence[dict[str, Any]], total: float | None
) -> list[dict[str, Any]]:
    """Returns sums over operators; what stands only in a group of several operators keeps its group's row.

    Standard uncertainties are added as they are: the layers of a run share their meter, so nothing averages out.
    """
    operators: dict[str, list[dict[str, Any]]] = {}
    for layer, row in zip(layers, rows, strict=False):
        operators.setdefault(layer["op"], []).append(row)
    summed = []
    for operator, members in operators.items():
        known = [row["energy_j"] for row in members if row["energy_j"]["value"] is not None]
        duration_s = sum(row["duration_s"] for row in members)
        if len(known) == len(members):
            energy = dict(known[0])
            for field in ("value", "std", "expanded"):
                energy[field] = sum(part[field] for part in known)
        else:
            reason = next(r["energy_j"].get("reason") for r in members if r["energy_j"]["value"] is None)
            energy = {"value": None, "provenance": "unavailable", "reason": reason}
        row = _blank(operator, energy, duration_s, total)
        ways = {member["resolution"] for member in members}
        row |= {"count": len(members), "resolution": ways.pop() if len(ways) == 1 else "refused"}
        summed.append(row)
    return [*summed, *rows[len(layers) :]]
