"""The report as Markdown to the byte, less what depends on the machine that wrote the bundle."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import check_golden
from joulemap.analysis.clocks.solve import AlignRequest
from joulemap.report.markdown import render_markdown
from joulemap.report.source import load_page
from joulemap.workflow.recordings.map_bundle import BundleMapRequest
from joulemap.workflow.result import ProfileFacts
from profile_facts import account, degraded_facts, facts
from recording_sections import import_files, load_recording_page, write_nested, write_rails
from report_bundle import hostile_facts, write_report_bundle

UNITS = BundleMapRequest(align=AlignRequest(offset_s=0.0), per="infer")
HERE = Path(__file__).parent / "report"
RUNS = {
    "valid": facts(),
    "grouped": facts(account=account(grouped=True)),
    "degraded": degraded_facts(),
    "hostile": hostile_facts(),
}
Write = Callable[[Path], tuple[Path, ...]]
RECORDINGS: dict[str, tuple[Write, dict[str, Any], BundleMapRequest]] = {
    "units": (write_nested, {"columns": {"time": "moment (s)", "power": "power (W)"}}, UNITS),
    "rails": (lambda folder: (write_rails(folder),), {"utc_offset_s": 0.0}, BundleMapRequest()),
    "times": (lambda folder: write_nested(folder)[1:], {}, BundleMapRequest()),
}
_MACHINE = re.compile(r"^- (Environment|Tool|Bundle|Import): .*$", re.MULTILINE)


@pytest.mark.parametrize("name", RUNS)
def test_the_markdown_is_the_golden_one(name: str, tmp_path: Path) -> None:
    run: ProfileFacts = RUNS[name]
    text = render_markdown(load_page(write_report_bundle(tmp_path / "run.jm", run)))
    check_golden(HERE / f"{name}.md", _MACHINE.sub(r"- \1: (of the machine)", text))


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_markdown_of_recordings_is_the_golden_one(name: str, tmp_path: Path) -> None:
    write, options, request = RECORDINGS[name]
    view = load_recording_page(import_files(tmp_path / "run.jm", *write(tmp_path), **options), request)
    check_golden(HERE / f"recording-{name}.md", _MACHINE.sub(r"- \1: (of the machine)", render_markdown(view)))
