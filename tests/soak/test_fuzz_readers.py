"""The long fuzzing of every reader: 20,000 mutants each, 2,000 where a reader works in a process of its own.

With ``JOULEMAP_FUZZ_FIGURES=FILE`` each reader appends its row: name, mutants, share that reached the records, slowest
read (s of processor time), greatest growth of memory (MB), mutants read with other findings than the seed, failures.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from joulemap.formats.readers import reader, reader_names
from reader_cases import CASES, IN_A_CHILD
from reader_fuzz import fuzz_reader
from value_fields import changed_values


@pytest.mark.soak
@pytest.mark.parametrize("name", reader_names())
def test_many_mutants(name: str, tmp_path: Path) -> None:
    child = name in IN_A_CHILD
    report = fuzz_reader(
        reader(name), CASES[name], mutants=2000 if child else 20_000, folder=tmp_path, draw=101, child=child
    )
    if figures := os.environ.get("JOULEMAP_FUZZ_FIGURES"):
        with Path(figures).open("a", encoding="ascii") as out:
            out.write(report.line(name) + "\n")
    assert report.failures == []
    assert report.reached >= 0.3, report.outcomes
    assert report.late_s <= 0.0
    assert report.excess_b <= 0


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(name for name in CASES if any(case.value for case in CASES[name])))
def test_many_changed_values(name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES[name] if case.value)
    assert case.value is not None
    files = dict(case.files())
    path = case.write(tmp_path, files)
    found = reader(name)
    before = found.read(path, case.options)
    rng = random.Random(17)
    file, change = case.value
    for number in range(50 if name in IN_A_CHILD else 500):
        (tmp_path / file).write_bytes(change(files[file], rng))
        after = found.read(path, case.options)
        most, all_of_them = changed_values(before, after)
        assert after.findings != before.findings or (0 < most <= case.changed and all_of_them > 0), (number, most)
