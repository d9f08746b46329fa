"""Findings that say the same are one, with their places and a count."""

from __future__ import annotations

from joulemap.records.finding import Finding, Severity, collapse_findings


def finding(message: str, span: str = "", severity: Severity = Severity.WARNING) -> Finding:
    return Finding(slug="time_gap", severity=severity, message=message, span=span)


def test_what_says_the_same_is_one_with_its_places() -> None:
    found = [finding("a", f"line {k}") for k in (3, 5, 5, 9)] + [finding("b"), finding("b"), finding("c", "x")]
    assert collapse_findings(found) == (
        finding("a", "line 3, line 5, line 9"),
        finding("b", "2 times"),
        finding("c", "x"),
    )


def test_many_places_are_counted_and_severities_stay_apart() -> None:
    found = [finding("a", f"line {k}") for k in range(10)] + [finding("a", "line 1", Severity.INFO)]
    first, second = collapse_findings(found)
    assert first.span == "line 0, line 1, line 2, line 3, line 4, line 5 and 4 more"
    assert second == finding("a", "line 1", Severity.INFO)
    assert collapse_findings([finding("a", "line 1")] * 3) == (finding("a", "line 1, 3 times"),)
    assert collapse_findings([]) == ()
