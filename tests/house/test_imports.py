"""What imports what: siblings behind a registry, late vendor modules, a light command line."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from house_sources import ROOT, SRC, list_imports, list_modules, module_name, parse

# third-party modules that may stand at the top of exactly these files; everywhere else they come late or never
_VENDORS = {
    "numba": {"trace/kernels/compiling.py"},
    "unicorn": set(),
    "ziglang": set(),
    "elftools": set(),
    "tflite_micro": set(),
    "ai_edge_litert": set(),
    "pyarrow": set(),
    "tflite": set(),
    "flatbuffers": set(),
}
_NEVER = {"scipy", "pandas", "torch", "onnxruntime", "tensorflow", "jinja2"}
# what a registry names beside its members: ground that they may share
_GROUND = {"formats": {"bundle", "bundle_writer", "parquet"}}
_CATCH_ALL_ROOTS = {"cli/main.py", "firmware/boards/virtual_m33/worker.py", "formats/joulescope/jls_child.py"}


def list_registries() -> list[Path]:
    return [path for path in list_modules() if path.name == "registry.py"]


def list_members(registry: Path) -> set[str]:
    """Members of a registry: what it imports or names of its own folder, less the ground."""
    package = module_name(registry.parent / "__init__.py") + "."
    named = [name for name, _ in list_imports(registry)]
    named += [
        node.value
        for node in ast.walk(parse(registry))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    members = {".".join(name.removeprefix(package).split(".")[:2]) for name in named if name.startswith(package)}
    folder = registry.parent
    paths = {m if (folder / m.replace(".", "/")).with_suffix(".py").is_file() else m.split(".")[0] for m in members}
    return paths - {"base"} - _GROUND.get(folder.relative_to(SRC).as_posix(), set())


@pytest.mark.parametrize("registry", list_registries(), ids=module_name)
def test_members_behind_a_registry_never_import_each_other(registry: Path) -> None:
    package = module_name(registry.parent / "__init__.py")
    members = list_members(registry)
    assert members
    bad = []
    for path in registry.parent.rglob("*.py"):
        own = module_name(path).removeprefix(package + ".")
        home = next((m for m in members if own == m or own.startswith(m + ".")), None)
        if home is None:
            continue
        for name, _ in list_imports(path):
            other = name.removeprefix(package + ".")
            bad += [f"{own} imports {m}" for m in members - {home} if (other + ".").startswith(m + ".")]
    assert not bad


def test_the_command_line_starts_without_heavy_modules() -> None:
    heavy = "pandas scipy numba pyarrow onnxruntime torch unicorn ziglang elftools tflite_micro numpy.testing"
    program = f"import sys, joulemap.cli.main; print([m for m in {heavy.split()!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_importing_a_room_loads_no_heavy_module() -> None:
    rooms = [module_name(path) for path in SRC.glob("*/__init__.py")]
    heavy = "pandas scipy numba pyarrow onnxruntime torch unicorn ziglang tflite_micro"
    program = (
        f"import sys, importlib\nfor room in {rooms!r}: importlib.import_module(room)\n"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_vendor_modules_come_late_and_some_never() -> None:
    bad = []
    for path in list_modules():
        relative = path.relative_to(SRC).as_posix()
        if path.stem.endswith("worker"):
            continue  # a program of its own
        for name, top in list_imports(path):
            vendor = name.split(".")[0]
            if vendor in _NEVER or (vendor in _VENDORS and top and relative not in _VENDORS[vendor]):
                bad.append(f"{relative} imports {name}")
    assert not bad


def test_only_one_module_imports_numba() -> None:
    users = {
        module_name(path) for path in list_modules() for name, _ in list_imports(path) if name.split(".")[0] == "numba"
    }
    assert users == {"joulemap.trace.kernels.compiling"}


def test_every_exception_is_caught_only_at_the_roots_or_passed_on() -> None:
    bad = []
    for path in list_modules():
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            everything = node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"}
            passed_on = isinstance(node.body[-1], ast.Raise)
            if everything and not passed_on and path.relative_to(SRC).as_posix() not in _CATCH_ALL_ROOTS:
                bad.append(f"{module_name(path)}:{node.lineno}")
    assert not bad


def test_the_floors_are_checked_by_import_linter() -> None:
    assert "importlinter" in (ROOT / "pyproject.toml").read_text("utf-8")
