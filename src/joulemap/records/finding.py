"""Doubt that rides with a record: a slug, how much it matters, and the place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["Finding", "Severity", "Validity", "collapse_findings", "worst"]

_PLACES = 6
"""Places of one finding that are named."""


class Severity(StrEnum):
    """How much a finding matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Validity(StrEnum):
    """What a result may claim: only a valid one has a headline."""

    VALID = "valid"
    DEGRADED = "degraded"
    INVALID = "invalid"


_BADNESS = {validity: rank for rank, validity in enumerate(Validity)}


def worst(validities: Iterable[Validity]) -> Validity:
    """Returns the worst of the validities; VALID when there is none."""
    return max(validities, key=_BADNESS.__getitem__, default=Validity.VALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One doubtful thing.

    Args:
        slug: snake_case name; an anchor in ``docs/findings.md``.
        severity: how much it matters.
        message: one sentence for a person, with numbers.
        span: where: a line, an offset, a capture, a time range; empty for the whole.
    """

    slug: str
    severity: Severity
    message: str
    span: str = ""

    def to_json(self) -> dict[str, object]:
        """Returns the JSON form of the contract; ``span`` is null when it is the whole."""
        return {
            "slug": self.slug,
            "severity": str(self.severity),
            "message": self.message,
            "span": self.span or None,
        }


def collapse_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns the findings in order, those that say the same once, with their first places and how many more.

    A span without a place says how often.
    """
    places: dict[Finding, list[str]] = {}
    for finding in findings:
        places.setdefault(replace(finding, span=""), []).append(finding.span)
    return tuple(replace(said, span=_places(spans)) for said, spans in places.items())


def _places(spans: list[str]) -> str:
    distinct = [span for span in dict.fromkeys(spans) if span]
    if not distinct:
        return f"{len(spans)} times" if len(spans) > 1 else ""
    if len(distinct) == 1 and len(spans) > 1:
        return f"{distinct[0]}, {len(spans)} times"
    more = f" and {len(distinct) - _PLACES} more" if len(distinct) > _PLACES else ""
    return f"{', '.join(distinct[:_PLACES])}{more}"
