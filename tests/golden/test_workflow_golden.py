"""The golden result: a valid run of a small model, to nine digits. Only ``make golden`` moves it, on purpose."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from golden_files import UPDATE
from program import call
from small_models import write_small_model

GOLDEN = Path(__file__).parent / "result" / "small.json"
SCRUBBED = {"run_id", "bundle", "deployed_at", "target_id", "elf_sha256", "oracle_name", "version"}


def scrub(value: Any, key: str = "") -> Any:
    """Returns the document without what differs between two runs or two machines: names, times, digests, versions."""
    if key in SCRUBBED and isinstance(value, str):
        return "..."
    if key == "checkpoints":  # their words name digests and say what the build cache held
        return [[checkpoint["phase"], checkpoint["name"]] for checkpoint in value]
    if isinstance(value, dict):
        return {name: scrub(item, name) for name, item in value.items()}
    return [scrub(item) for item in value] if isinstance(value, list) else value


def differences(seen: Any, wanted: Any, where: str = "$") -> list[str]:
    """Returns where two documents differ; floats by more than 1e-9 of their size."""
    if isinstance(seen, dict) and isinstance(wanted, dict):
        moved = [f"{where}.{key} is on one side only" for key in sorted(seen.keys() ^ wanted.keys())]
        for key in sorted(seen.keys() & wanted.keys()):
            moved += differences(seen[key], wanted[key], f"{where}.{key}")
        return moved
    if isinstance(seen, list) and isinstance(wanted, list):
        moved = [] if len(seen) == len(wanted) else [f"{where} has {len(seen)} items, golden {len(wanted)}"]
        for k, (a, b) in enumerate(zip(seen, wanted, strict=False)):
            moved += differences(a, b, f"{where}[{k}]")
        return moved
    if isinstance(seen, float) and isinstance(wanted, float):
        return [] if math.isclose(seen, wanted, rel_tol=1e-9) else [f"{where}: {seen!r}, golden {wanted!r}"]
    return [] if seen == wanted and type(seen) is type(wanted) else [f"{where}: {seen!r}, golden {wanted!r}"]


def test_a_valid_run_has_the_golden_result(tmp_path: Path) -> None:
    model = write_small_model(tmp_path / "small.tflite")
    called = call("profile", model, "-o", tmp_path / "small.jm", "--count", "20", "--json", "--seed", "3", "--contrast")
    assert called.code == 0, called.err
    document = scrub(called.json)
    if os.environ.get(UPDATE):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    moved = differences(document, json.loads(GOLDEN.read_text(encoding="utf-8")))
    assert not moved, "\n".join(["the golden result moved; if that is meant, run `make golden`:", *moved[:20]])


def test_the_comparison_sees_a_moved_digit_a_lost_key_and_another_type() -> None:
    golden = {"a": 1.0, "b": [1, 2], "c": None}
    assert differences({"a": 1.0 + 1e-12, "b": [1, 2], "c": None}, golden) == []
    assert differences({"a": 1.0 + 1e-8, "b": [1, 2], "c": None}, golden) != []
    assert differences({"a": 1.0, "b": [1, 2]}, golden) != []
    assert differences({"a": 1.0, "b": [1, 2], "c": 0}, golden) != []
    assert differences({"a": 1.0, "b": [1], "c": None}, golden) != []
