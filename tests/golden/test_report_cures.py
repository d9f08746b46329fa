"""The cures that the page shows are those of the docs: one text, written once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import joulemap.report.view
from golden_files import check_golden
from house_sources import DOCS


def read_cures() -> dict[str, str]:
    """Slug -> cure of every section of docs/findings.md, links as paths of their pages."""
    sections = re.split(r"^## ", (DOCS / "findings.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    cures = {}
    for section in sections:
        cure = " ".join(section.split("**Cure.**")[1].split())
        cures[section.splitlines()[0].strip()] = re.sub(r"\[[^]]*\]\(([^)#]+)[^)]*\)", r"docs/\1", cure)
    return cures


def test_the_cures_of_the_page_are_those_of_the_docs() -> None:
    text = json.dumps(dict(sorted(read_cures().items())), indent=1, ensure_ascii=False) + "\n"
    assert "Check the GATE wire to the instrument." in text
    check_golden(Path(joulemap.report.view.__file__).parent / "cures.json", text)
