"""The schema comes from either package, and without the oracle the engine says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from joulemap.firmware.engines.aot.tflite.schema import OPTIONS, enum_names, load_schema
from joulemap.firmware.engines.aot.tflite.writer import ModelWriter

HIDE = "import sys; sys.modules.update(dict.fromkeys({hidden!r}))\n"


def run_hidden(hidden: list[str], script: str) -> str:
    """Output of a script in a process where importing the hidden packages fails."""
    command = [sys.executable, "-c", HIDE.format(hidden=hidden) + script]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def write_model(path: Path) -> Path:
    w = ModelWriter()
    x = w.input(w.tensor("x", [8], scale=0.1))
    w.operator("LOGISTIC", [x], [w.output(w.tensor("y", [8], scale=1 / 256, zero_point=-128))])
    path.write_bytes(w.build())
    return path


def test_every_options_table_exists_in_the_schema() -> None:
    known = set(enum_names("BuiltinOptions").values())
    assert set(OPTIONS.values()) <= known
    assert set(OPTIONS) <= set(enum_names("BuiltinOperator").values())
    assert load_schema().__name__.startswith("tflite_micro")


def test_the_second_schema_package_and_no_oracle(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.tflite")
    script = (
        "from pathlib import Path; from joulemap.firmware.engines.registry import engine\n"
        "from joulemap.firmware.engines.aot.tflite.schema import load_schema\n"
        f"p = engine('aot').prepare(Path({str(path)!r}), inputs=None, seed=0)\n"
        "print(load_schema().__name__, p.oracle, p.reference_output, p.reference_crc32, len(p.summary.layers))"
    )
    assert run_hidden(["tflite_micro"], script) == "ai_edge_litert.schema_py_generated None None None 1"


def test_without_any_schema_the_error_is_the_install_line(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.tflite")
    script = (
        "from pathlib import Path; from joulemap.errors import SetupError\n"
        "from joulemap.firmware.engines.registry import engine\n"
        f"try: engine('aot').prepare(Path({str(path)!r}), inputs=None, seed=0)\n"
        "except SetupError as e: print(e.slug, e.hint)"
    )
    assert run_hidden(["tflite_micro", "ai_edge_litert"], script) == "missing-extra pip install 'joulemap[virtual]'"


def test_listing_engines_imports_no_schema_and_no_oracle() -> None:
    script = (
        "from joulemap.firmware.engines.registry import engine_names; engine_names()\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in {'tflite_micro', 'ai_edge_litert', 'flatbuffers'}))"
    )
    assert run_hidden([], script) == "[]"
