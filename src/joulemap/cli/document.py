"""What every JSON document of the program begins with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from joulemap import __version__

__all__ = ["document_head", "render_document"]

_BLOCK = 256
_PLAIN = json.JSONEncoder(allow_nan=False).encode
_INDENTED = json.JSONEncoder(allow_nan=False, indent=2).encode


@runtime_checkable
class Texts(Protocol):
    """Items that know their JSON better than one by one."""

    def texts(self, first: int, last: int) -> list[str]:
        """Returns items ``first`` to ``last`` as JSON, a text each."""


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


def render_document(document: Mapping[str, object]) -> Iterator[str]:
    """Yields the text of a document in parts: keys indented, the items of a long list one a line.

    Args:
        document: its lists may be any sequences, whose items are made one by one.

    Raises:
        ValueError: a number that is not finite.
    """
    opening = "{"
    for key, value in document.items():
        yield f"{opening}\n  {_PLAIN(key)}: "
        opening = ","
        if isinstance(value, Sequence) and not isinstance(value, str | list | tuple):
            yield from _items(value)
        else:
            yield _INDENTED(value).replace("\n", "\n  ")
    yield "\n}\n" if document else "{}\n"


def _items(rows: Sequence[object]) -> Iterator[str]:
    """Yields a list with an item a line: a million of them take as much memory as a few thousand."""
    lead = "["
    for at in range(0, len(rows), _BLOCK):  # items are gone when the next ones are made: nothing piles up
        last = min(at + _BLOCK, len(rows))
        texts = rows.texts(at, last) if isinstance(rows, Texts) else [_PLAIN(rows[k]) for k in range(at, last)]
        yield f"{lead}\n    " + ",\n    ".join(texts)
        lead = ","
    yield "\n  ]" if rows else "[]"
