"""The text of a JSON document: what it says, and that a long list is written item by item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, overload

import pytest

from joulemap.cli.document import render_document


class Counted(Sequence[dict[str, int]]):
    """Items that are made when they are asked for; it knows how many were alive at most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.made = 0

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> dict[str, int]: ...

    @overload
    def __getitem__(self, at: slice) -> list[dict[str, int]]: ...

    def __getitem__(self, at: int | slice) -> Any:
        assert isinstance(at, int)
        self.made += 1
        return {"k": at}


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 600])
def test_a_long_list_is_an_item_a_line_and_reads_back(size: int) -> None:
    document = {"head": {"a": [1, 2], "b": None}, "rows": Counted(size), "tail": "a\nb"}
    text = "".join(render_document(document))
    assert json.loads(text) == {**document, "rows": [{"k": k} for k in range(size)]}
    assert sum(line.lstrip().startswith('{"k"') for line in text.splitlines()) == size


def test_what_is_no_long_list_looks_as_json_writes_it() -> None:
    document = {"a": [1, {"b": 2.5}], "c": "ü", "d": {}}
    assert "".join(render_document(document)) == json.dumps(document, indent=2) + "\n"
    assert "".join(render_document({})) == "{}\n"


def test_items_are_made_as_they_are_written() -> None:
    rows = Counted(10_000)
    parts = render_document({"rows": rows})
    next(parts), next(parts)
    assert 0 < rows.made < 1000


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        list(render_document({"a": float("nan")}))
