"""How far a simulated run is from the truth that its board kept. The only reader of ``truth/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joulemap import __version__
from joulemap.errors import FormatError, InputError
from joulemap.formats.bundle import read_bundle
from joulemap.records.rail import BoardTruth
from joulemap.workflow.result import SCHEMA as RESULT_SCHEMA

__all__ = ["TRUTH_PATH", "TRUTH_SCHEMA", "Score", "build_truth", "score_bundle", "score_result"]

TRUTH_PATH = "truth/truth.json"
TRUTH_SCHEMA = "joulemap.truth"
_SCHEMA = "joulemap.score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The document of the contract and the verdict: False when the total's error is beyond the limit."""

    document: dict[str, object]
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Truth:
    """True energies per inference at run factor 1, J."""

    total_j: float
    layer_j: tuple[float, ...]
    gap_j: float


def build_truth(truths: Mapping[int, BoardTruth], *, count: int) -> dict[str, object]:
    """Returns the section that holds the board's truth.

    Args:
        truths: by capture index.
        count: N, inferences inside GATE.
    """
    return {
        "schema": TRUTH_SCHEMA,
        "schema_version": 1,
        "count": count,
        "captures": [
            {
                "index": index,
                "run_factor": truth.run_factor,
                "gate_j": truth.gate_j,
                "gap_j": truth.gap_j,
                "layer_j": [float(energy_j) for energy_j in truth.layer_j],
                "layer_cycles": [int(cycles) for cycles in truth.layer_cycles],
                "layer_entries": [int(entries) for entries in truth.layer_entries],
                "gate_cycles": truth.gate_cycles,
            }
            for index, truth in sorted(truths.items())
        ],
    }


def score_bundle(folder: Path, *, max_error: float | None = None) -> Score:
    """Returns the score of a bundle.

    Args:
        folder: the bundle.
        max_error: largest relative error of the total that passes; None for no limit.

    Raises:
        InputError: not a bundle, or one that holds no truth (``no-truth``).
        FormatError: a section is damaged.
    """
    bundle = read_bundle(folder)
    result = bundle.read_json("result.json", schema=RESULT_SCHEMA)
    if not bundle.has(TRUTH_PATH):
        raise InputError(
            f"{folder}: holds no truth to score against",
            hint="only runs on a virtual board keep it, unless truth/ was deleted",
            slug="no-truth",
        )
    truth = bundle.read_json(TRUTH_PATH, schema=TRUTH_SCHEMA)
    try:
        return score_result(result, truth, max_error=max_error)
    except (KeyError, TypeError, IndexError, ValueError, ArithmeticError) as error:
        raise FormatError(
            f"{folder / TRUTH_PATH}: truth and result do not fit each other ({type(error).__name__}: {error})",
            hint="take the bundle again from where it was made",
            slug="bundle-damaged",
        ) from error


def score_result(result: Mapping[str, Any], truth: Mapping[str, Any], *, max_error: float | None) -> Score:
    """Returns the score of a result document against a truth document; raises KeyError when they do not fit."""
    true = _mean_truth(result, truth)
    total = _compare(true.total_j, result["energy_per_inference_j"])
    layers = [
        {
            "index": layer["index"],
            **_compare(true.layer_j[layer["index"]], layer["energy_j"]),
            "refused": layer["energy_j"]["value"] is None,
        }
        for layer in result["layers"]
    ]
    groups = [
        {"id": g["id"], "layers": g["layers"], **_compare(_group_j(g, true), g["energy_j"])} for g in result["groups"]
    ]
    error_rel = total["error_rel"]
    passed = max_error is None or (error_rel is not None and abs(error_rel) <= max_error)
    document: dict[str, object] = {
        "schema": _SCHEMA,
        "schema_version": 1,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": result["run_id"],
        "validity": result["validity"],
        "findings": [],
        "model": result["model"]["name"],
        "target": result["target"]["name"],
        "total": total,
        "layers": layers,
        "groups": groups,
        "gap": _compare(true.gap_j, result["gap"]["energy_j"]),
        "max_error": max_error,
        "passed": passed,
    }
    return Score(document=document, passed=passed)


def _mean_truth(result: Mapping[str, Any], truth: Mapping[str, Any]) -> _Truth:
    """Returns the mean over the captures that the headline is made of; over all of them when none is valid."""
    valid = {c["index"] for c in result["captures"] if c["observation"]["integrity"] == "valid"}
    captures = [c for c in truth["captures"] if c["index"] in valid] or list(truth["captures"])
    if not captures:
        raise ValueError("the truth holds no capture")
    if truth["count"] < 1:
        raise ValueError(f"the truth is of {truth['count']} inferences")
    inferences = truth["count"] * len(captures)
    layers = len(result["layers"])
    return _Truth(
        total_j=_sum(captures, "gate_j") / inferences,
        layer_j=tuple(sum(c["layer_j"][k] for c in captures) / inferences for k in range(layers)),
        gap_j=_sum(captures, "gap_j") / inferences,
    )


def _sum(captures: Sequence[Mapping[str, Any]], key: str) -> float:
    return sum(float(capture[key]) for capture in captures)


def _group_j(group: Mapping[str, Any], true: _Truth) -> float:
    layers_j = sum(true.layer_j[int(k)] for k in group["layers"])
    return layers_j + true.gap_j if group["contains_gap"] else layers_j


def _compare(truth_j: float, estimate: Mapping[str, Any]) -> dict[str, Any]:
    value, error_rel, covered = estimate["value"], None, None
    if value is not None:
        error_rel = (value - truth_j) / truth_j if truth_j else None
        covered = abs(value - truth_j) <= estimate["expanded"]
    return {"truth_j": truth_j, "estimate_j": value, "error_rel": error_rel, "covered": covered}
