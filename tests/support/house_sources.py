"""What the house tests look at: sources as syntax trees, pages as lines. Reads only what git would commit."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "joulemap"
DOCS = ROOT / "docs"


@functools.cache
def list_modules() -> tuple[Path, ...]:
    """Every Python file of the package, sorted."""
    return tuple(sorted(SRC.rglob("*.py")))


@functools.cache
def parse(path: Path) -> ast.Module:
    """The file as a syntax tree."""
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every absolute import of a file: dotted name, and whether it stands at the top (outside any function)."""
    late = {
        id(node)
        for function in ast.walk(parse(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    typing_only = {
        id(node)
        for branch in ast.walk(parse(path))
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(parse(path)):
        top = id(node) not in late and id(node) not in typing_only
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", top


def list_anchors(page: str) -> list[str]:
    """Second-level headings of a page that are slugs."""
    return re.findall(r"^## ([a-z0-9_-]+)$", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)
