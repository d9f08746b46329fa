"""What every JSON document of the program begins with."""

from __future__ import annotations

from joulemap import __version__

__all__ = ["document_head"]


def document_head(schema: str, *, validity: str = "valid", run_id: str | None = None) -> dict[str, object]:
    """Returns schema, version, tool, run, validity and an empty list of findings.

    Args:
        schema: name of the document's kind.
        validity: what the document may claim.
        run_id: null for a document that no run made.
    """
    return {
        "schema": schema,
        "schema_version": 1,
        "tool": {"name": "joulemap", "version": __version__},
        "run_id": run_id,
        "validity": validity,
        "findings": [],
    }
