"""The result table as people see it: widths, ASCII, colour, and the results without a headline."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from golden_files import check_golden
from joulemap.report.console.profile import render_profile
from joulemap.report.console.style import Style
from joulemap.report.view.profile import build_profile_view
from joulemap.workflow.result import ProfileFacts, build_result
from profile_facts import account, degraded_facts, facts, profile_only_facts

HERE = Path(__file__).parent / "console"
PLAIN = Style(color=False, unicode=True)


def rendered(run: ProfileFacts, *, width: int, style: Style = PLAIN) -> str:
    document = json.loads(json.dumps(build_result(run, bundle="three.jm"), allow_nan=False))
    return render_profile(build_profile_view(document), width=width, style=style, bundle="three.jm")


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_table_at_this_width_is_the_golden_one(width: int) -> None:
    check_golden(HERE / f"valid-{width}.txt", rendered(facts(), width=width))


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("grouped", facts(account=account(grouped=True))),
        ("degraded", degraded_facts()),
        ("profile-only", profile_only_facts()),
    ],
)
def test_other_results_are_the_golden_ones(name: str, run: ProfileFacts) -> None:
    check_golden(HERE / f"{name}-100.txt", rendered(run, width=100))


def test_ascii_is_the_golden_one_and_holds_ascii_only() -> None:
    text = rendered(facts(), width=100, style=Style(color=False, unicode=False))
    check_golden(HERE / "valid-ascii-100.txt", text)
    assert text.isascii()


@pytest.mark.parametrize("width", [62, 70, 80, 100, 140])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, unicode: bool) -> None:
    for run in (facts(), facts(account=account(grouped=True)), degraded_facts(), profile_only_facts()):
        text = rendered(run, width=width, style=Style(color=False, unicode=unicode))
        assert max(len(line) for line in text.splitlines()) <= width


def test_bars_go_first_then_macs_then_cycles() -> None:
    heads = {width: rendered(facts(), width=width).splitlines()[3] for width in (140, 80, 70, 60)}
    assert "█" in rendered(facts(), width=140)
    assert "█" not in rendered(facts(), width=80)
    assert ("MAC" in heads[80], "cycles" in heads[80]) == (True, True)
    assert ("MAC" in heads[70], "cycles" in heads[70]) == (False, True)
    assert ("MAC" in heads[60], "cycles" in heads[60]) == (False, False)


def test_colour_changes_no_character() -> None:
    colored = rendered(facts(), width=100, style=Style(color=True, unicode=True))
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == rendered(facts(), width=100)


def test_the_word_simulated_stands_in_every_result_with_an_energy() -> None:
    assert rendered(facts(), width=80).splitlines()[1].startswith("energies simulated, times modelled")


def test_a_run_without_headline_prints_no_energy_per_inference() -> None:
    text = rendered(degraded_facts(), width=80)
    assert "No energy per inference" in text
    assert "whole trace, not one inference" in text
    assert not re.search(r"\d [µmn]?J per inference", text)
    assert "inferences per joule" not in text
