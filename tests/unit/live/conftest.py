"""A recording that marks go to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from joulemap.meters.live.marking import MarkSink, current_sink, install_sink


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[MarkSink]:
    made = MarkSink(tmp_path)
    before = current_sink()
    install_sink(made)
    yield made
    install_sink(before)
    made.close()
