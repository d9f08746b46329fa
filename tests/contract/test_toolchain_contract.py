"""What every cross compiler of the registry must do: run by its line in the registry alone."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from board_bench import FOLDER, firmware_source
from joulemap.errors import BuildError, CapacityError
from joulemap.firmware.toolchains.base import Toolchain
from joulemap.firmware.toolchains.registry import toolchain, toolchain_names
from joulemap.records.firmware import FirmwareSource
from joulemap.records.target import CpuSpec

M33 = CpuSpec(core="cortex-m33", features=frozenset({"dsp", "fp_sp"}))
SOURCE = firmware_source((FOLDER / "network.c").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=toolchain_names())
def compiler(request: pytest.FixtureRequest) -> Toolchain:
    return toolchain(request.param)


def grown(text: str) -> FirmwareSource:
    """Returns the source with one more file."""
    return FirmwareSource(role=SOURCE.role, files={**SOURCE.files, "more.c": text}, defines=SOURCE.defines)


def test_it_knows_its_name_and_version(compiler: Toolchain) -> None:
    assert compiler.name in toolchain_names()
    assert compiler.describe().startswith(f"{compiler.name} ")
    assert any(character.isdigit() for character in compiler.describe())


def test_an_image_is_what_was_asked_for(compiler: Toolchain) -> None:
    image = compiler.build(SOURCE, M33)
    assert (image.role, image.source_sha256) == (SOURCE.role, SOURCE.sha256)
    assert image.elf.read_bytes()[:4] == b"\x7fELF"
    assert "Reset_Handler" in image.symbols
    assert 0 < image.flash_b < 1 << 20
    assert 0 < image.ram_b < 1 << 20
    assert image.toolchain == compiler.describe()


def test_no_path_of_the_machine_is_in_the_image_or_its_command(compiler: Toolchain) -> None:
    image = compiler.build(SOURCE, M33)
    home = str(Path.home()).encode()
    assert home not in image.elf.read_bytes()
    assert not any(str(Path.home()) in line for line in image.command)


def test_a_second_identical_build_is_reused_and_the_same_to_the_byte(compiler: Toolchain) -> None:
    first = compiler.build(SOURCE, M33)
    second = compiler.build(SOURCE, M33)
    assert second.reused
    assert second.sha256 == first.sha256


def test_an_image_that_does_not_fit_says_region_need_and_have(compiler: Toolchain) -> None:
    used = "__attribute__((used))"
    hog = f"""
static volatile unsigned char hog[64u << 20];
{used} unsigned char take(void) {{ return hog[5]; }}
__attribute__((constructor)) {used} static void pull(void) {{ (void)take(); }}
"""
    with pytest.raises(CapacityError) as caught:
        compiler.build(grown(hog), M33)
    assert caught.value.exit_code == 6
    assert caught.value.details["region"] in {"ram", "flash"}


def test_a_source_that_does_not_compile_says_where(compiler: Toolchain) -> None:
    with pytest.raises(BuildError) as caught:
        compiler.build(grown("int broken( {"), M33)
    assert caught.value.exit_code == 7
    assert "more.c" in caught.value.message


def test_a_host_library_can_be_called(compiler: Toolchain) -> None:
    path = compiler.build_host_library("contract", {"contract.c": "int answer(void) { return 42; }"})
    assert ctypes.CDLL(str(path)).answer() == 42
