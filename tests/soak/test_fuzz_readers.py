"""The long version of the reader fuzzing: 20,000 mutants each, 2,000 where a reader works in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.formats.base import ReadOptions
from joulemap.formats.readers import reader
from reader_fuzz import fuzz_reader
from recording_files import READ_OPTIONS, SEEDS

LONG = {"jls": 2000}


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(SEEDS))
def test_many_mutants(name: str, tmp_path: Path) -> None:
    if name == "jls":
        pytest.importorskip("pyjls")
    options = ReadOptions(**READ_OPTIONS.get(name, {}))  # type: ignore[arg-type]
    report = fuzz_reader(
        reader(name), SEEDS[name](), options, mutants=LONG.get(name, 20_000), folder=tmp_path, draw=101
    )
    assert not [why for _, why in report.failures]
    assert report.reached >= 0.3, report.outcomes
    assert report.slowest_s <= 0.0
    assert report.largest_b <= 0
