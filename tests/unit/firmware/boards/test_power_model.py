"""The coefficients: sourced, plausible for a 100 MHz M33, and scaled as documented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from board_bench import LAYERS, build_network, open_session, run_inference
from joulemap.firmware.boards.base import ResetOptions
from joulemap.firmware.boards.virtual_m33.power_model import CLASSES, PERIPHERALS, TRAFFIC, read_power_model


def _document() -> dict[str, object]:
    path = Path(read_power_model.__code__.co_filename).with_name("power_model.json")
    document: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _leaves(node: object) -> list[dict[str, object]]:
    if not isinstance(node, dict):
        return []
    if "tag" in node:
        return [node]
    return [leaf for child in node.values() for leaf in _leaves(child)]


def test_every_coefficient_has_a_tag_and_a_source() -> None:
    document = _document()
    tags = document["tags"]
    assert isinstance(tags, dict)
    leaves = _leaves({key: value for key, value in document.items() if key != "tags"})
    assert len(leaves) == len(CLASSES) + len(TRAFFIC) + len(PERIPHERALS) + 7
    assert all(leaf["tag"] in tags and leaf["source"] for leaf in leaves)


def test_the_page_shows_the_coefficients_of_the_file() -> None:
    page = (Path(__file__).parents[4] / "docs" / "power_model.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if line.startswith("|")]
    for leaf in _leaves({key: value for key, value in _document().items() if key != "tags"}):
        value = leaf.get("value", leaf.get("energy_fj"))
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        matching = [row for row in rows if str(leaf["source"]) in row and leaf["tag"] in row]
        assert any(shown in " ".join(row[2:4]).split() for row in matching), (shown, leaf["source"])


@pytest.mark.parametrize("damage", ["no tag", "unknown tag", "no source", "no value", "schema"])
def test_a_coefficient_without_its_source_is_refused(damage: str, tmp_path: Path) -> None:
    document = _document()
    entry = document["static_uw"]
    assert isinstance(entry, dict)
    if damage == "schema":
        document["schema_version"] = 2
    elif damage == "unknown tag":
        entry["tag"] = "guess"
    else:
        entry.pop(damage.removeprefix("no "))
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match="joulemap.power_model" if damage == "schema" else "coefficient"):
        read_power_model(path)


def test_dynamic_energy_follows_the_square_of_the_core_voltage_and_leakage_its_own_law() -> None:
    model = read_power_model()
    reference, lower = model.coefficients(), model.coefficients(core_v=model.core_v * 0.9)
    for name in ("class_fj", "traffic_fj_per_b"):
        values, references = lower[name], reference[name]
        assert isinstance(values, list)
        assert isinstance(references, list)
        assert values == pytest.approx([0.81 * value for value in references], rel=1e-3)
    assert lower["clock_fj_per_cycle"] == pytest.approx(0.81 * model.clock_fj_per_cycle, rel=1e-4)
    factor = model.leakage_factor_per_volt ** (-0.1 * model.core_v)
    assert lower["static_uw"] == pytest.approx(factor * model.static_uw, rel=1e-3)
    assert model.leakage_factor_per_volt**0.2 == pytest.approx(1.87, rel=0.01)
    assert lower["peripheral_uw"] == reference["peripheral_uw"]


def test_a_slower_clock_costs_more_static_energy_per_cycle_and_no_more_dynamic() -> None:
    model = read_power_model()
    slow = model.coefficients(core_hz=50e6)
    assert (slow["period_ns"], slow["throttled_period_ns"]) == (20, 40)
    assert slow["class_fj"] == model.coefficients()["class_fj"]
    with pytest.raises(ValueError, match="whole number of ns"):
        model.coefficients(core_hz=64e6)


def test_the_peripherals_contaminate_in_the_published_order() -> None:
    draw = dict(zip(PERIPHERALS, read_power_model().peripheral_uw, strict=True))
    assert draw["uart"] < draw["swo"] < draw["usb"]


def test_a_busy_core_draws_what_such_a_part_draws() -> None:
    with open_session(build_network(), layers=LAYERS) as session:
        run_inference(session, ResetOptions(deadline_s=1.0))
        truth = session.truth()
    power_w = truth.gate_j / (truth.gate_cycles / 100e6)
    assert 10e-3 < power_w < 16e-3  # 12 mW datasheet run at 100 MHz x 1.06 to 1.27 for a network, and its spread
