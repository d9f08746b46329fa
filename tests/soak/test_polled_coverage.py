"""How often the intervals of polled files hold the truth, and what their values would be off by if they were not dated.

Run with ``make soak`` or ``pytest -m soak -s``: one line a case.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from polled_study import POLLED_CASES, PolledCase, polled_study

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("what", POLLED_CASES, ids=lambda what: what.case.name)
def test_layers_of_a_polled_file(what: PolledCase, tmp_path: Path) -> None:
    result = polled_study(what, 100, tmp_path)
    print(f"\n{result.line()}")  # noqa: T201  # figures for who runs the soak with -s
    low, high = result.bounds()
    assert low <= result.covered <= max(high, 0.985), result.line()
