"""A profile as a map: layers sorted, sums by operator, groups kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from joulemap.analysis.mapping.keys import MapKey
from joulemap.errors import UsageError
from joulemap.workflow.recordings.map_profile import map_profile

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "result" / "small.json"


@pytest.fixture
def result() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(GOLDEN.read_text())
    return document


def test_layers_come_sorted_by_energy(result: dict[str, Any]) -> None:
    document: dict[str, Any] = map_profile(result, MapKey.LAYER, bundle="x.jm")
    assert document["total_j"] == result["energy_per_inference_j"]
    values = [row["self_j"]["value"] for row in document["rows"] if row["self_j"]["value"] is not None]
    assert values
    assert values == sorted(values, reverse=True)
    shares = [row["cumulative_share"] for row in document["rows"] if row["share"] is not None]
    assert shares == sorted(shares)
    assert shares[-1] <= 1.0 + 1e-9


def test_operators_are_sums_of_their_layers(result: dict[str, Any]) -> None:
    rows: Any = map_profile(result, MapKey.OP, bundle="x.jm")["rows"]
    known: dict[str, float] = {}
    for layer in result["layers"]:
        value = layer["energy_j"]["value"]
        known[layer["op"]] = known.get(layer["op"], 0.0) + (float("nan") if value is None else value)
    for row in rows:
        if row["self_j"]["value"] is not None and row["key"] in known:
            assert row["self_j"]["value"] == pytest.approx(known[row["key"]])


def test_a_profile_has_no_kernels(result: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        map_profile(result, MapKey.KERNEL, bundle="x.jm")
