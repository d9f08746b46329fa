"""Numbers to rows: shares, groups, what is missing, and names from hostile files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from joulemap.records.finding import Finding, Severity
from joulemap.report.view.profile import ProfileView, build_profile_view
from joulemap.report.view.text import format_quantity, format_share, printable
from joulemap.workflow.result import ProfileFacts, build_result
from profile_facts import account, estimate, facts, model


def view_of(run: ProfileFacts) -> ProfileView:
    return build_profile_view(json.loads(json.dumps(build_result(run, bundle="x.jm"))))


def test_headline_has_two_digits_of_uncertainty() -> None:
    total = replace(account(), energy_per_inference_j=estimate(448.3123e-6, 7.1e-4))
    assert view_of(facts(account=total)).headline == "448.31 ± 0.66\u2009µJ per inference"


def test_a_wider_interval_takes_digits_from_the_value() -> None:
    total = replace(account(), energy_per_inference_j=estimate(448.3123e-6, 0.05))
    assert view_of(facts(account=total)).headline == "448 ± 47\u2009µJ per inference"


def test_members_of_a_group_name_it_and_its_sum_follows_the_last_of_them() -> None:
    rows = view_of(facts(account=account(grouped=True))).rows
    assert [row.op for row in rows] == [
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "g1: 1-2 + gap",
        "between layers",
        "one inference",
    ]
    assert [row.energy for row in rows[1:3]] == ["in g1", "in g1"]
    assert rows[4].energy == "in g1"
    assert "±" in rows[3].energy
    assert rows[1].fill is None


def test_the_longest_bar_is_full() -> None:
    fills = [row.fill for row in view_of(facts()).rows if row.fill is not None]
    assert max(fills) == 1.0
    assert all(0 <= fill <= 1 for fill in fills)


def test_findings_are_shown_worst_first() -> None:
    made = tuple(
        Finding(slug=f"s_{severity}", severity=severity, message="m")
        for severity in (Severity.INFO, Severity.ERROR, Severity.WARNING)
    )
    assert [f[0] for f in view_of(facts(findings=made)).findings] == ["error", "warning", "info"]


def test_a_kind_of_finding_is_shown_once_with_every_place() -> None:
    made = tuple(Finding(slug="lost", severity=Severity.ERROR, message=f"m{k}", span=f"capture {k}") for k in (1, 3))
    assert view_of(facts(findings=made)).findings == (("error", "lost", "m1 [capture 1, capture 3]"),)


def test_names_from_a_file_cannot_steer_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07[bold]x[/bold]\r\n"
    named = model()
    layers = tuple(replace(layer, op=hostile) for layer in named.layers)
    view = view_of(facts(model=replace(named, name=hostile, layers=layers)))
    texts = [view.title, view.hotspot, *(row.op for row in view.rows)]
    assert all(text.replace("\u2009", " ").isprintable() for text in texts)
    assert "\\x1b]0;owned" in view.title


@pytest.mark.parametrize(
    ("share", "expanded", "text"),
    [
        (0.7631, 0.001, "76.3\u2009%"),
        (0.7631, 0.02, "76\u2009%"),
        (None, None, "—"),
        (0.001, 1e-5, "0.1\u2009%"),
        (1e-6, 1e-9, "<0.1\u2009%"),
        (0.0, 0.0, "0.0\u2009%"),
    ],
)
def test_share(share: float | None, expanded: float | None, text: str) -> None:
    assert format_share(share, expanded) == text


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (None, "—"),
        ({"value": None, "provenance": "unavailable", "reason": "x"}, "—"),
        ({"value": 1.25, "expanded": 0.0}, "1.25000\u2009s"),
        ({"value": 1.25, "expanded": 0.02}, "1.250 ± 0.020\u2009s"),
    ],
)
def test_quantity(quantity: dict[str, Any] | None, text: str) -> None:
    assert format_quantity(quantity, "s") == text


def test_printable_keeps_text_and_escapes_controls() -> None:
    assert printable("µ\u2009ok\x00\x9b\u202e") == "µ\u2009ok\\x00\\x9b\\u202e"
