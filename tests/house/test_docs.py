"""Every page opens with a command, is listed in the index, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from house_sources import DOCS

ROOT = DOCS.parent
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def list_targets(page: Path) -> set[str]:
    """Anchors of a page as the common renderers make them."""
    return {
        re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in HEADING.findall(page.read_text("utf-8"))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_opens_with_a_command_that_is_there(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1:3] == ["", "```"], "a page begins with its title and a command"
    block = lines[3 : lines.index("```", 3)]
    assert all(line.startswith((".venv/bin/", "make ")) for line in block if not block[0].endswith("<<'END'")), block
    for script in re.findall(r"examples/\w+\.py", "\n".join(block)):
        assert (ROOT / script).is_file()
    words = " ".join(block)
    assert not re.search(r"\b(MODEL|RUN|FILE)\b", words), "a placeholder cannot be pasted"


def test_the_index_lists_every_page() -> None:
    listed = set(LINK.findall((DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page.name for page in PAGES} - {"index.md"} == listed


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in list_targets(target), link
