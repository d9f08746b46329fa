"""Findings as a reader needs them: each kind once, worst first, with every place and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from joulemap.report.view.cures import CURES
from joulemap.report.view.page import FindingRow
from joulemap.report.view.text import printable

__all__ = ["build_finding_rows"]

_PLACES = 6
_MESSAGES = 3
_ORDER = {"error": 0, "warning": 1, "info": 2}


def build_finding_rows(findings: Sequence[Mapping[str, Any]]) -> tuple[FindingRow, ...]:
    """Returns one row per severity, slug and message; of one kind with many messages the first few.

    Args:
        findings: as the contract's JSON.
    """
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    for finding in sorted(findings, key=lambda f: _ORDER[f["severity"]]):
        messages = kinds.setdefault((finding["severity"], finding["slug"]), {})
        messages.setdefault(finding["message"], []).extend([finding["span"]] if finding["span"] else [])
    rows = []
    for (severity, slug), messages in kinds.items():
        for number, (message, places) in enumerate(list(messages.items())[:_MESSAGES]):
            more = len(messages) - _MESSAGES
            last = number == _MESSAGES - 1 and more > 0
            text = message + _where(places) + (f" (and {more} more of the kind)" if last else "")
            cure = CURES.get(slug, "") if number == 0 else ""
            rows.append(FindingRow(severity=severity, slug=slug, message=printable(text), cure=cure))
    return tuple(rows)


def _where(places: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(places))
    if not distinct:
        return ""
    more = f" and {len(distinct) - _PLACES} more" if len(distinct) > _PLACES else ""
    return f" [{', '.join(distinct[:_PLACES])}{more}]"
