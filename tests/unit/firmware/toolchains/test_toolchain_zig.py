"""The zig toolchain: reproducible, cached per object, and precise about what it cannot do."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from board_bench import FOLDER, firmware_source
from joulemap.errors import BuildError, CapacityError, SetupError, UsageError
from joulemap.firmware.toolchains.registry import toolchain, toolchain_names
from joulemap.firmware.toolchains.zig import ZigToolchain
from joulemap.records.firmware import ArtifactRole, FirmwareArtifact, FirmwareSource
from joulemap.records.target import CpuSpec

M33 = CpuSpec(core="cortex-m33", features=frozenset({"dsp", "fp_sp"}))
NETWORK = (FOLDER / "network.c").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("a cache with spaces and ünïcode")


def _build(cache_dir: Path, source: FirmwareSource, cpu: CpuSpec = M33) -> FirmwareArtifact:
    return ZigToolchain(cache_dir).build(source, cpu)


def _with(source: FirmwareSource, files: Mapping[str, str], role: ArtifactRole | None = None) -> FirmwareSource:
    return FirmwareSource(role=role or source.role, files={**source.files, **files}, defines=source.defines)


def _objects(cache_dir: Path) -> dict[str, int]:
    """Names of the cached objects and how many versions of each there are."""
    names = [path.name for path in (cache_dir / "object").rglob("*.o")]
    return {name: names.count(name) for name in names}


def test_an_image_says_what_it_is(cache_dir: Path) -> None:
    artifact = _build(cache_dir, firmware_source(NETWORK))
    assert artifact.role is ArtifactRole.POWER
    assert artifact.toolchain.startswith("zig 0.17.1 (clang ")
    assert artifact.source_sha256 == firmware_source(NETWORK).sha256
    assert artifact.symbols["vectors"] == (0, 64)
    assert artifact.symbols["layer_000"][0] % 2 == 0
    assert artifact.sections[".text"] > 256
    assert artifact.sections[".bss"] >= 4096
    assert artifact.flash_b == artifact.sections[".text"] + artifact.sections.get(".ARM.exidx", 0)
    assert artifact.ram_b == artifact.sections[".bss"] + artifact.sections.get(".data", 0)
    assert any("-mcpu=cortex_m33+dsp+fp_armv8d16sp" in line for line in artifact.command)


def test_an_identical_build_compiles_nothing(cache_dir: Path) -> None:
    first = _build(cache_dir, firmware_source(NETWORK))
    before = {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.o")}
    again = _build(cache_dir, firmware_source(NETWORK))
    assert again.reused
    assert (again.sha256, again.elf, again.symbols) == (first.sha256, first.elf, first.symbols)
    assert {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.o")} == before


def test_a_changed_main_or_definition_rebuilds_nothing_else(cache_dir: Path) -> None:
    source = firmware_source("int twice(int x) { return 2 * x + LATER; }")
    files = {"entry.c": "int twice(int); int main(void) { return twice(N); }"}
    first = FirmwareSource(role=source.role, files={**source.files, **files}, defines={"N": "1", "LATER": "0"})
    _build(cache_dir, first)
    before = _objects(cache_dir)
    second = FirmwareSource(role=ArtifactRole.PROFILE, files=first.files, defines={"N": "2", "LATER": "0"})
    assert not _build(cache_dir, second).reused
    after = _objects(cache_dir)
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {"entry.o": 1}


def test_no_path_of_the_machine_reaches_the_image(cache_dir: Path, tmp_path: Path) -> None:
    source = firmware_source(
        "const char *where(void) { return __FILE__; } volatile double d = 2; volatile long long q = 7;"
        " int main(void) { d = d * d; q = q / 3; return where()[0]; }"  # with what compiler-rt brings along
    )
    here = _build(cache_dir, source)
    there = _build(tmp_path / "elsewhere", source)
    assert here.elf.read_bytes() == there.elf.read_bytes()
    assert here.sha256 == there.sha256
    content = here.elf.read_bytes()
    for path in (cache_dir, tmp_path, Path(sys.prefix), Path.home()):
        assert str(path).encode() not in content
    assert not [line for line in here.command if str(cache_dir) in line or sys.prefix in line]


@pytest.mark.parametrize("kind", ["image", "object", "host"])
def test_a_damaged_cache_entry_is_built_again(cache_dir: Path, kind: str) -> None:
    files = {"a.c": "int answer(void) { return 42; }"}
    artifact = _build(cache_dir, firmware_source(NETWORK))
    library = ZigToolchain(cache_dir).build_host_library("damage", files).read_bytes()
    for path in (cache_dir / kind).rglob("*"):
        if path.is_file() and path.name != "sha256":
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    if kind == "object":
        artifact.elf.write_bytes(b"")
    again = _build(cache_dir, firmware_source(NETWORK))
    assert again.sha256 == artifact.sha256
    assert again.elf.read_bytes()[:4] == b"\x7fELF"
    assert again.reused is (kind == "host")
    assert ZigToolchain(cache_dir).build_host_library("damage", files).read_bytes() == library


def test_concurrent_builds_agree(cache_dir: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from board_bench import firmware_source;"
        "from joulemap.firmware.toolchains.zig import ZigToolchain; from joulemap.records.target import CpuSpec;"
        "cpu = CpuSpec(core='cortex-m33', features=frozenset({'dsp', 'fp_sp'}));"
        "source = firmware_source('int main(void) { return 77; }');"
        "print(ZigToolchain(Path(sys.argv[1])).build(source, cpu).sha256)"
    )
    root = Path(__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "tests" / "support")])}
    builds = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(cache_dir)], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    outputs = [build.communicate(timeout=120)[0].strip() for build in builds]
    assert [build.returncode for build in builds] == [0, 0, 0]
    assert len(set(outputs)) == 1
    assert outputs[0] == _build(cache_dir, firmware_source("int main(void) { return 77; }")).sha256


def test_ctrl_c_in_a_build_leaves_no_half_entry(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from board_bench import firmware_source;"
        "from joulemap.firmware.toolchains.zig import ZigToolchain; from joulemap.records.target import CpuSpec;"
        "cpu = CpuSpec(core='cortex-m33', features=frozenset({'dsp', 'fp_sp'}));"
        "zig = ZigToolchain(Path(sys.argv[1])); zig.describe(); print('building', flush=True);"
        "zig.build(firmware_source('int main(void) { return 78; }'), cpu)"
    )
    root = Path(__file__).parents[4]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "tests" / "support")])}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    ) as build:  # fmt: skip
        assert build.stdout is not None
        assert build.stdout.readline() == "building\n"
        time.sleep(0.5)  # a cold link takes seconds
        os.killpg(build.pid, signal.SIGINT)
        _, stderr = build.communicate(timeout=60)
    assert build.returncode != 0
    assert "KeyboardInterrupt" in stderr
    assert not (tmp_path / "image").exists()
    assert not list((tmp_path / "scratch").iterdir())
    for entry in (tmp_path / "object").glob("*"):
        assert sorted(path.suffix for path in entry.iterdir()) == ["", ".o"]


@pytest.mark.parametrize(
    ("region", "line"), [("ram", "static volatile char big[600000];"), ("flash", "const char big[3000000] = {1};")]
)
def test_what_does_not_fit_names_region_need_and_have(cache_dir: Path, region: str, line: str) -> None:
    source = firmware_source(f"{line} int main(void) {{ return *(volatile char *)&big[7]; }}")
    with pytest.raises(CapacityError) as caught:
        _build(cache_dir, source)
    details = caught.value.details
    have_b = {"ram": 512 * 1024, "flash": 2 * 1024 * 1024}[region]
    assert (details["region"], details["have_b"]) == (region, have_b)
    need_b = details["need_b"]
    assert isinstance(need_b, int)
    assert need_b > have_b
    assert caught.value.exit_code == 6


def test_a_compile_error_shows_the_compilers_lines(cache_dir: Path) -> None:
    with pytest.raises(BuildError) as caught:
        _build(cache_dir, firmware_source("int main(void) { return missing; }"))
    assert "main.c:1" in caught.value.message
    assert "missing" in caught.value.message
    assert str(cache_dir) not in caught.value.message
    assert caught.value.slug == "build-failed"
    assert caught.value.artifact_role == ArtifactRole.POWER


def test_a_link_error_shows_the_linkers_lines(cache_dir: Path) -> None:
    with pytest.raises(BuildError, match="nowhere"):
        _build(cache_dir, firmware_source("int nowhere(void); int main(void) { return nowhere(); }"))


def test_an_image_needs_one_linker_script(cache_dir: Path) -> None:
    with pytest.raises(BuildError, match="one linker script"):
        _build(cache_dir, _with(firmware_source(NETWORK), {"other.ld": ""}))


def test_an_unknown_core_or_feature_is_refused(cache_dir: Path) -> None:
    for cpu, text in (
        (CpuSpec(core="cortex-m99"), "cortex-m99"),
        (CpuSpec(core="cortex-m33", features=frozenset({"mve"})), "mve"),
    ):
        with pytest.raises(BuildError, match=text) as caught:
            _build(cache_dir, firmware_source(NETWORK), cpu)
        assert caught.value.slug == "cpu-unknown"


@pytest.mark.parametrize(
    ("core", "features", "macros"),
    [
        ("cortex-m33", {"dsp", "fp_sp"}, {"__ARM_FEATURE_DSP": True, "__ARM_FP": True, "__ARM_FEATURE_MVE": False}),
        ("cortex-m33", set(), {"__ARM_FEATURE_DSP": False, "__ARM_FP": False, "__ARM_FEATURE_MVE": False}),
        ("cortex-m4", {"dsp", "fp_sp"}, {"__ARM_FEATURE_DSP": True, "__ARM_FP": True, "__ARM_FEATURE_MVE": False}),
        ("cortex-m55", {"dsp", "fp_sp", "mve", "mve_fp"}, {"__ARM_FEATURE_DSP": True, "__ARM_FEATURE_MVE": True}),
    ],
)
def test_a_core_is_compiled_for_as_described(
    cache_dir: Path, core: str, features: set[str], macros: dict[str, bool]
) -> None:
    lines = "".join(
        f"#if defined({macro}) != {int(present)}\n#error {macro}\n#endif\n" for macro, present in macros.items()
    )
    source = FirmwareSource(  # ends before the link, which would build compiler-rt for a core that no board has
        role=ArtifactRole.PROFILE, files={"main.c": f"{lines}#error as described\n", "test.ld": ""}
    )
    with pytest.raises(BuildError) as caught:
        _build(cache_dir, source, CpuSpec(core=core, features=frozenset(features)))
    errors = [line for line in caught.value.message.splitlines() if "error:" in line]
    assert [line.rsplit("error: ", 1)[1] for line in errors] == ["as described"]


def test_the_host_library_is_shared_by_equal_sources(cache_dir: Path) -> None:
    zig = ZigToolchain(cache_dir)
    files = {"a.c": '#include "b.h"\nint sum(int x) { return x + OFFSET; }', "b.h": "#define OFFSET 4\n"}
    first = zig.build_host_library("adder", files)
    assert zig.build_host_library("adder", dict(reversed(files.items()))) == first
    other = zig.build_host_library("adder", {**files, "b.h": "#define OFFSET 5\n"})
    assert other != first
    assert (ctypes.CDLL(str(first)).sum(3), ctypes.CDLL(str(other)).sum(3)) == (7, 8)
    with pytest.raises(BuildError, match=r"a\.c:1"):
        zig.build_host_library("adder", {"a.c": "int ;;; x("})


def test_a_missing_package_names_the_install_line(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(SetupError) as caught:
        ZigToolchain(cache_dir).describe()
    assert (caught.value.slug, caught.value.hint) == ("missing-extra", "pip install 'joulemap[virtual]'")


def test_a_compiler_that_does_not_end_is_ended(cache_dir: Path) -> None:
    with pytest.raises(BuildError) as caught:
        ZigToolchain(cache_dir, wall_limit_s=1e-4).describe()
    assert caught.value.slug == "build-timeout"


@pytest.mark.parametrize(
    ("program", "mode", "slug", "words"),
    [
        ("#!/bin/sh\necho broken >&2; exit 1\n", 0o755, "build-failed", "broken"),
        ("#!/bin/sh\nkill -9 $$\n", 0o755, "build-failed", "killed by signal 9"),
        ("", 0o644, "machine-exhausted", "cannot be started"),
    ],
    ids=["fails", "is killed", "no program"],
)
def test_a_broken_compiler_has_no_identity(
    program: str, mode: int, slug: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "zig").write_text(program)
    (package / "zig").chmod(mode)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    with pytest.raises((BuildError, SetupError)) as caught:
        ZigToolchain(tmp_path / "cache").describe()
    assert caught.value.slug == slug
    assert words in caught.value.message


def test_the_registry_knows_zig() -> None:
    assert toolchain_names() == ("zig",)
    assert toolchain("zig").name == "zig"
    with pytest.raises(UsageError, match="no toolchain named tcc"):
        toolchain("tcc")


def test_the_board_core_compiles_without_a_warning(cache_dir: Path) -> None:
    folder = Path(__file__).parents[4] / "src" / "joulemap" / "firmware" / "csrc" / "board"
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    pragma = '#pragma clang diagnostic error "-Wall"\n#pragma clang diagnostic error "-Wextra"\n'
    strict = {name: pragma + text if name.endswith(".c") else text for name, text in files.items()}
    assert ZigToolchain(cache_dir).build_host_library("strict", strict).exists()
