"""Calls that end before a board runs: flags, names, files, places, missing extras, and how each is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from program import Called, call, call_blocked, leftovers
from small_models import write_flash_hog, write_ram_hog, write_small_model

HEAVY = (
    "numpy",
    "pandas",
    "scipy",
    "numba",
    "pyarrow",
    "onnxruntime",
    "torch",
    "rich",
    "unicorn",
    "ziglang",
    "elftools",
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_small_model(tmp_path / "small.tflite")


def told(called: Called, code: int, slug: str) -> None:
    """Checks exit code, message, pointer to the cure, and that nobody sees a traceback."""
    assert called.code == code, called.err
    assert called.err.startswith("joulemap: ")
    assert f"docs/errors.md#{slug} (exit {code})" in called.err
    assert "Traceback" not in called.err


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    script = (
        "import sys; from joulemap.cli.main import run; code = run(['--help']);"
        f"sys.stderr.write(','.join(name for name in {HEAVY!r} if name in sys.modules)); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for command in ("profile", "score", "boards", "doctor"):
        assert f"\n  {command}" in done.stdout


def test_version_is_told() -> None:
    assert call("--version").out.startswith("joulemap, version ")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["profile"], ["profile", "m.tflite", "--nonsense"], ["profile", "m", "--repeats", "0"]]
)
def test_what_does_not_parse_is_usage(arguments: list[str]) -> None:
    called = call(*arguments)
    assert called.code == 2
    assert "Usage: joulemap" in called.err


def test_what_does_not_parse_is_a_document_with_json() -> None:
    called = call("profile", "m.tflite", "--nonsense", "--json")
    assert called.code == 2
    assert called.json["schema"] == "joulemap.failure"
    assert called.json["error"]["exit_code"] == 2


@pytest.mark.parametrize(
    "flags",
    [
        ["--count", "10", "--window-s", "1"],
        ["--no-power", "--count", "10"],
        ["--no-power", "--repeats", "3"],
        ["--no-power", "--instrument", "virtual-1k"],
        ["--no-power", "--contrast"],
        ["--no-power", "--fault", "no_ready"],
        ["--fault", "no_ready@9"],
        ["--quiet", "-v"],
    ],
)
def test_flags_that_contradict_each_other_are_usage(model: Path, tmp_path: Path, flags: list[str]) -> None:
    told(call("profile", model, "-o", tmp_path / "x.jm", *flags), 2, "flags-contradict")
    assert leftovers(tmp_path) == ["small.tflite"]


@pytest.mark.parametrize("fault", ["nonsense", "no_ready@0", "no_ready@x", "no_ready@", "@1"])
def test_a_fault_that_does_not_exist_is_usage(model: Path, tmp_path: Path, fault: str) -> None:
    called = call("profile", model, "-o", tmp_path / "x.jm", "--fault", fault)
    told(called, 2, "unknown-fault")
    assert "gate_disconnected" in called.err


@pytest.mark.parametrize("flag", ["--target", "--engine", "--transport", "--instrument"])
def test_a_name_that_does_not_exist_is_usage(model: Path, tmp_path: Path, flag: str) -> None:
    called = call("profile", model, "-o", tmp_path / "x.jm", flag, "nonsense", "--json")
    assert called.code == 2
    assert called.json["error"]["stage"] == "preflight"
    assert called.json["error"]["hint"]
    assert leftovers(tmp_path) == ["small.tflite"]


def make_missing(path: Path) -> None:
    assert not path.exists()


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_folder(path: Path) -> None:
    path.mkdir()


def make_text(path: Path) -> None:
    path.write_text("a model, honestly\n" * 100)


def make_truncated(path: Path) -> None:
    whole = write_small_model(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def make_zip(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(4096))


@pytest.mark.parametrize("make", [make_missing, make_empty, make_folder, make_text, make_truncated, make_zip])
def test_a_model_that_is_none_is_rejected(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = tmp_path / "model.tflite"
    make(path)
    before = leftovers(tmp_path)
    called = call("profile", path, "-o", tmp_path / "x.jm", "--json")
    assert called.code == 6, called.err
    assert "model.tflite" in called.err
    assert called.json["error"]["exit_code"] == 6
    assert leftovers(tmp_path) == before


@pytest.mark.parametrize(("write", "region"), [(write_flash_hog, "flash"), (write_ram_hog, "ram")])
def test_a_model_that_does_not_fit_says_region_need_and_have(tmp_path: Path, write: object, region: str) -> None:
    assert callable(write)
    called = call("profile", write(tmp_path / "hog.tflite"), "-o", tmp_path / "x.jm", "--json")
    assert called.code == 6, called.err
    details = called.json["error"]["details"]
    assert details["region"] == region
    assert details["need_b"] > details["have_b"] > 0
    assert called.json["error"]["phase"] == "setup"  # before anything is built
    assert leftovers(tmp_path) == ["hog.tflite"]


def test_an_input_that_is_missing_is_rejected(model: Path, tmp_path: Path) -> None:
    called = call("profile", model, "-o", tmp_path / "x.jm", "--input", tmp_path / "none.npz")
    assert called.code == 6
    assert "none.npz" in called.err


def test_a_place_that_is_no_folder_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told(call("profile", model, "-o", tmp_path / "file" / "x.jm"), 3, "output-unwritable")
    told(call("profile", model, "-o", tmp_path / "no" / "such" / "x.jm"), 3, "output-unwritable")


def test_something_that_is_no_bundle_is_never_replaced(model: Path, tmp_path: Path) -> None:
    keep = tmp_path / "precious"
    keep.mkdir()
    (keep / "thesis.txt").write_text("years of work")
    told(call("profile", model, "-o", keep), 2, "bundle-exists")
    told(call("profile", model, "-o", keep, "--force"), 2, "bundle-exists")
    assert leftovers(keep) == ["thesis.txt"]


@pytest.mark.parametrize("package", ["ziglang", "unicorn", "tflite_micro"])
def test_a_missing_extra_says_what_to_install(model: Path, tmp_path: Path, package: str) -> None:
    blocked = (package, "ai_edge_litert") if package == "tflite_micro" else (package,)
    called = call_blocked(blocked, "profile", model, "-o", tmp_path / "x.jm")
    assert called.code == 3, called.err
    assert "pip install 'joulemap[virtual]'" in called.err
    assert "Traceback" not in called.err
    assert leftovers(tmp_path) == ["small.tflite"]


def test_doctor_finds_the_target_sound() -> None:
    called = call("doctor", "--json")
    assert (called.code, called.json["runnable"]) == (0, True)
    assert "virtual-m33 can run here" in call("doctor").out


@pytest.mark.parametrize("package", ["ziglang", "unicorn", "tflite_micro"])
def test_doctor_ends_with_3_and_the_fix_when_the_target_cannot_run(package: str) -> None:
    called = call_blocked((package,), "doctor", "--target", "virtual-m33")
    assert called.code == 3
    assert "fix: pip install 'joulemap[virtual]'" in called.out
    assert "virtual-m33 cannot run here" in called.out


def test_doctor_without_numba_is_slower_and_runs() -> None:
    called = call_blocked(("numba",), "doctor", "--target", "virtual-m33")
    assert called.code == 0
    assert "slower   fast kernels" in called.out


def test_doctor_of_an_unknown_target_is_usage() -> None:
    told(call("doctor", "--target", "nonsense"), 2, "unknown-target")


def test_boards_lists_targets_and_why_one_cannot_run() -> None:
    board = call("boards", "--json").json["boards"][0]
    assert (board["name"], board["runnable"], board["provenance"]) == ("virtual-m33", True, "simulated")
    blocked = call_blocked(("unicorn",), "boards")
    assert blocked.code == 0
    assert "cannot run" in blocked.out
    assert "fix: pip install" in blocked.out


def test_a_fault_of_joulemap_itself_is_told_without_a_traceback(model: Path, tmp_path: Path) -> None:
    broken = call_blocked(("pyarrow",), "profile", model, "-o", tmp_path / "x.jm", "--json")
    assert broken.code == 70
    assert "docs/errors.md#internal-fault" in broken.err
    assert "Traceback" not in broken.err
    assert '"schema": "joulemap.failure"' in broken.out


def test_a_reader_that_went_away_is_no_failure() -> None:
    script = f"{sys.executable} -c 'from joulemap.cli.main import main; main()' boards | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
