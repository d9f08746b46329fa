"""The report as Markdown to the byte, less what depends on the machine that wrote the bundle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from golden_files import check_golden
from joulemap.report.markdown import render_markdown
from joulemap.report.source import load_page
from joulemap.workflow.result import ProfileFacts
from profile_facts import account, degraded_facts, facts
from report_bundle import hostile_facts, write_report_bundle

HERE = Path(__file__).parent / "report"
RUNS = {
    "valid": facts(),
    "grouped": facts(account=account(grouped=True)),
    "degraded": degraded_facts(),
    "hostile": hostile_facts(),
}
_MACHINE = re.compile(r"^- (Environment|Tool|Bundle): .*$", re.MULTILINE)


@pytest.mark.parametrize("name", RUNS)
def test_the_markdown_is_the_golden_one(name: str, tmp_path: Path) -> None:
    run: ProfileFacts = RUNS[name]
    text = render_markdown(load_page(write_report_bundle(tmp_path / "run.jm", run)))
    check_golden(HERE / f"{name}.md", _MACHINE.sub(r"- \1: (of the machine)", text))
