"""Every slug has its section in the docs, and every section its slug in the code."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from house_sources import DOCS, list_anchors, list_modules, parse

_ERROR = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FINDING = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


@functools.cache
def collect_slugs() -> dict[str, set[str]]:
    """Slugs of the code by what carries them: ``error`` or ``finding``."""
    slugs: dict[str, set[str]] = {"error": set(), "finding": set()}
    for path in list_modules():
        for slug, callee in list_slugs(path):
            slugs[classify(slug, callee)].add(slug)
    return slugs


def list_slugs(path: Path) -> Iterator[tuple[str, str]]:
    """Slug and callee for every argument named ``slug``, by keyword, by position, or as a default."""
    places: dict[str, int] = {}
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg not in {"self", "cls"}]
            if "slug" in names:
                places[node.name] = names.index("slug")
            for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if argument.arg == "slug" and default is not None:
                    yield from ((text, node.name) for text in list_texts(default))
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [keyword.value for keyword in node.keywords if keyword.arg == "slug"]
            if callee in places:
                given += node.args[places[callee] : places[callee] + 1]
            yield from ((text, callee) for value in given for text in list_texts(value))


def list_texts(node: ast.AST) -> list[str]:
    """Texts that an expression may be; nothing of what is called or looked up inside it."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return list_texts(node.body) + list_texts(node.orelse)
    return []


def classify(slug: str, callee: str) -> str:
    if callee == "Finding" or "finding" in callee.lower() or "_" in slug:
        return "finding"
    return "error"


def test_slugs_are_found_at_all() -> None:
    slugs = collect_slugs()
    assert {"bundle-exists", "bad-quantity", "internal-fault"} <= slugs["error"]
    assert "samples_lost" in slugs["finding"]


@pytest.mark.parametrize(("kind", "page"), [("error", "errors.md"), ("finding", "findings.md")])
def test_every_slug_of_the_code_has_its_section(kind: str, page: str) -> None:
    missing = sorted(collect_slugs()[kind] - set(list_anchors(page)))
    assert not missing, f"docs/{page} lacks a section for each of these: say cause and cure"


@pytest.mark.parametrize("page", ["errors.md", "findings.md"])
def test_every_section_has_its_slug_in_the_code(page: str) -> None:
    texts = {
        node.value
        for path in list_modules()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    orphans = sorted(set(list_anchors(page)) - texts)
    assert not orphans, f"docs/{page} describes what no code raises"


@pytest.mark.parametrize("page", ["errors.md", "findings.md"])
def test_no_section_stands_twice(page: str) -> None:
    anchors = list_anchors(page)
    assert sorted(anchors) == sorted(set(anchors))


@pytest.mark.parametrize("page", ["errors.md", "findings.md"])
def test_every_section_says_cause_and_cure(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    short = [s.splitlines()[0] for s in sections if "**Cause.**" not in s or "**Cure.**" not in s]
    assert not short, f"sections of docs/{page} without **Cause.** and **Cure.**"


def test_slugs_have_one_shape_each() -> None:
    slugs = collect_slugs()
    assert not [slug for slug in sorted(slugs["error"]) if not _ERROR.fullmatch(slug)]
    assert not [slug for slug in sorted(slugs["finding"]) if not _FINDING.fullmatch(slug)]
