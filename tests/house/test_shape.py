"""Sizes, names and words of the sources."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from house_sources import DOCS, ROOT, SRC, list_modules, module_name, parse

_LIMIT = 400
_FOLDER_LIMIT = 16
_BAD_NAMES = re.compile(r"^(get_|process_|handle_(?!of))|(^|_)(utils?|helpers?|common|misc)$")
_REGISTRY_HOSTS = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(org|com)|crates\.io|proxy\.golang\.org|repo\.maven|rubygems\.org|conda\.anaconda",
    re.IGNORECASE,
)
_MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|root)/")


def list_texts() -> list[Path]:
    """Every text file that git holds or would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of the files that belong to it")
    suffixes = {".py", ".md", ".toml", ".c", ".h", ".ld", ".txt", ".json", ".yml", ".cfg", ""}
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def test_no_module_is_longer_than_the_limit() -> None:
    long = {
        module_name(path): n for path in list_modules() if (n := len(path.read_text("utf-8").splitlines())) > _LIMIT
    }
    assert not long, "look for the second noun"


def test_no_folder_holds_too_many_files() -> None:
    crowded = {
        folder.relative_to(SRC).as_posix(): n
        for folder in {path.parent for path in list_modules()}
        if (n := len(list(folder.glob("[!_]*.py")))) > _FOLDER_LIMIT
    }
    # one file per pair of stages, one file per command
    assert set(crowded) <= {"firmware/stages", "cli"}, "a folder is a room: give it a second one"


def test_every_module_says_what_it_is_for() -> None:
    silent = [module_name(path) for path in list_modules() if not (ast.get_docstring(parse(path)) or "").strip()]
    assert not silent


def test_every_room_says_what_it_must_not_know() -> None:
    rooms = list(SRC.glob("*/__init__.py"))
    assert len(rooms) >= 8
    words = re.compile(r"must not|never|no |nothing", re.IGNORECASE)
    vague = [module_name(path) for path in rooms if not words.search(ast.get_docstring(parse(path)) or "")]
    assert not vague


def test_an_init_only_says_and_re_exports() -> None:
    busy = []
    for path in SRC.rglob("__init__.py"):
        for node in parse(path).body:
            allowed = ast.Import | ast.ImportFrom | ast.Expr | ast.Assign
            if not isinstance(node, allowed):
                busy.append(f"{module_name(path)}:{node.lineno}")
    assert not busy


def test_names_are_verbs_and_nouns_of_the_house() -> None:
    bad = [module_name(path) for path in list_modules() if _BAD_NAMES.search(path.stem)]
    for path in list_modules():
        names = (node.name for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef | ast.ClassDef))
        bad += [f"{module_name(path)}.{name}" for name in names if _BAD_NAMES.search(name.lstrip("_"))]
    # click asks a command group for its commands by this name
    assert [name for name in bad if not name.endswith(".get_command")] == []


def test_nothing_is_left_to_do() -> None:
    word = re.compile(r"\b(TO" + "DO|FIX" + "ME|X" + r"XX|NotImplemented" + r"Error)\b")
    left = [
        f"{path.relative_to(ROOT)}"
        for path in list_texts()
        if path.suffix in {".py", ".c", ".h"} and word.search(path.read_text("utf-8", errors="replace"))
    ]
    assert not left


@pytest.mark.parametrize("pattern", [_REGISTRY_HOSTS, _MACHINE_PATHS], ids=["registry hosts", "paths of a machine"])
def test_no_file_names_a_host_or_a_machine(pattern: re.Pattern[str]) -> None:
    own = Path(__file__)
    bad = [
        str(path.relative_to(ROOT))
        for path in list_texts()
        if path != own and pattern.search(path.read_text("utf-8", errors="replace"))
    ]
    assert not bad


def test_records_are_frozen_and_slotted() -> None:
    bad = []
    for path in [*(SRC / "records").glob("*.py"), *(SRC / "trace").glob("*.py")]:
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "dataclass":
                    given = {k.arg for k in decorator.keywords if isinstance(k.value, ast.Constant) and k.value.value}
                    if not {"frozen", "slots", "kw_only"} <= given:
                        bad.append(f"{module_name(path)}.{node.name}")
    assert not bad


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_page_opens_with_a_command(page: Path) -> None:
    lines = [line for line in page.read_text("utf-8").splitlines() if line.strip()]
    assert lines[0].startswith("# ")
    if page.name == "wire.md":
        return  # generated: a reference, held to the code by a test of its own
    assert lines[1].startswith("```"), "what can be run stands before what can be read"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
