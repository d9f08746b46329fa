"""One browser for all tests of the page; they are skipped where the distribution has none installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chromium import Chromium, find_chromium
from joulemap.report.html.page import render_page
from joulemap.report.source import load_page
from profile_facts import degraded_facts, profile_only_facts
from report_bundle import hostile_facts, large_page, shaped_facts, write_report_bundle


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with Chromium(program) as opened:
        yield opened


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by what they are of; ``valid.jm`` lies beside them."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {
        "valid": shaped_facts(),
        "hostile": hostile_facts(),
        "degraded": degraded_facts(),
        "profile_only": profile_only_facts(),
    }
    views = {name: load_page(write_report_bundle(folder / f"{name}.jm", run)) for name, run in runs.items()}
    views["large"] = large_page(views["valid"])
    for name, view in views.items():
        (folder / f"{name}.html").write_text(render_page(view), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in views}
