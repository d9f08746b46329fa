"""The result document: every key of the contract, the one form of what is not available, nothing of this machine."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from joulemap.workflow.plain import plain
from joulemap.workflow.result import ProfileFacts, build_result
from profile_facts import (
    CLEAN_CYCLES,
    LAYER_CYCLES,
    MACS,
    PERIOD_S,
    TOTAL_J,
    account,
    degraded_facts,
    facts,
    profile_only_facts,
)

ESTIMATES = (
    "energy_per_inference_j",
    "energy_above_idle_per_inference_j",
    "inferences_per_j",
    "ops_per_j",
    "average_power_w",
    "peak_power_w",
    "latency_s",
)
KEYS = {
    "schema", "schema_version", "tool", "run_id", "validity", "findings", *ESTIMATES, "ops_per_inference",
    "ops_definition", "peak_bandwidth_hz", "layers", "groups", "gap", "plan", "captures", "observation", "terminal",
    "deployments", "checkpoints", "memory", "operating_point", "output_crc", "counter_source", "bundle",
}  # fmt: skip
LAYER_KEYS = {
    "index", "op", "name", "group", "macs", "bytes", "cycles", "instructions", "duration_s", "energy_j", "share",
}  # fmt: skip
ESTIMATE_KEYS = {"value", "std", "expanded", "coverage_probability", "k", "dof", "provenance"}


def document(run: ProfileFacts) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(build_result(run, bundle="three.jm"), allow_nan=False))
    return made


@pytest.mark.parametrize("run", [facts(), degraded_facts(), profile_only_facts(), facts(account=account(grouped=True))])
def test_every_key_of_the_contract_is_there(run: ProfileFacts) -> None:
    made = document(run)
    assert made.keys() >= KEYS
    assert all(layer.keys() >= LAYER_KEYS for layer in made["layers"])
    for key in ESTIMATES:
        if made[key]["value"] is None:
            assert made[key].keys() == {"value", "provenance", "reason"}
        else:
            assert made[key].keys() >= ESTIMATE_KEYS


def test_numbers_are_not_rounded() -> None:
    made = document(facts())
    assert made["energy_per_inference_j"]["value"] == TOTAL_J
    assert made["ops_per_inference"] == 2 * sum(MACS)
    assert [layer["cycles"] for layer in made["layers"]] == list(LAYER_CYCLES)
    assert made["cycles_per_inference"] == CLEAN_CYCLES


def test_layers_groups_and_gap_add_up_to_the_gate() -> None:
    for grouped in (False, True):
        made = document(facts(account=account(grouped=grouped)))
        parts = [*made["layers"], *made["groups"], made["gap"]]
        total = sum(part["energy_j"]["value"] or 0.0 for part in parts)
        assert total == pytest.approx(made["energy_per_inference_j"]["value"], rel=1e-12)


def test_a_member_of_a_group_has_no_energy_of_its_own() -> None:
    made = document(facts(account=account(grouped=True)))
    member = made["layers"][1]
    assert member["energy_j"] == {"value": None, "provenance": "unavailable", "reason": "layer_unidentifiable"}
    assert (member["group"], member["share"]) == ("g1", None)


def test_a_degraded_run_has_statistics_and_no_headline() -> None:
    made = document(degraded_facts())
    for key in ESTIMATES[:-1]:
        assert made[key] == {"value": None, "provenance": "unavailable", "reason": "gate_no_fall"}
    assert made["trace_statistics"]["label"]
    assert all(layer["energy_j"]["value"] is None for layer in made["layers"])


def test_a_run_without_power_has_modelled_latency_and_no_energy() -> None:
    made = document(profile_only_facts())
    assert made["latency_s"]["value"] == pytest.approx(PERIOD_S)
    assert made["latency_s"]["provenance"] == "modelled"
    assert made["energy_per_inference_j"]["reason"] == "power_not_run"
    assert (made["plan"], made["captures"], made["observation"], made["terminal"]) == (None, [], None, None)


def test_checksums_are_side_by_side() -> None:
    assert document(facts())["output_crc"] == {
        "power_image": "deadbeef",
        "profile_image": "deadbeef",
        "oracle": "deadbeef",
        "oracle_name": "tflite-micro",
    }
    assert "oracle" not in document(facts(oracle=None, oracle_crc32=None))["output_crc"]


def test_no_path_of_the_machine_is_in_it() -> None:
    assert "/nowhere" not in json.dumps(document(facts()))


def test_plain_turns_numpy_enums_and_infinity_into_json() -> None:
    assert plain({"a": np.arange(2), "b": np.float32(0.5), "c": float("inf"), "d": frozenset({"y", "x"})}) == {
        "a": [0, 1],
        "b": 0.5,
        "c": None,
        "d": ["x", "y"],
    }
