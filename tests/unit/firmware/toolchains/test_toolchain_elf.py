"""Reading an image: whatever the bytes are, the answer is an image or one typed error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from board_bench import build_network
from joulemap.errors import BuildError
from joulemap.firmware.toolchains.elf import read_elf


def test_an_image_is_read_as_it_is_loaded() -> None:
    artifact = build_network()
    image = read_elf(artifact.elf)
    assert image.symbols == dict(artifact.symbols)
    assert (image.flash_b, image.ram_b) == (artifact.flash_b, artifact.ram_b)
    assert image.segments[0].load_address == 0
    assert max(address + size_b for address, size_b in image.symbols.values() if address < 2**28) >= image.code_end > 0
    assert all(segment.memory_b < 2**20 for segment in image.segments)  # GNU_STACK is none of them


@pytest.mark.parametrize("seed", range(200))
def test_damage_is_one_typed_error_or_none(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    content = bytearray(build_network().elf.read_bytes())
    if seed % 3 == 0:
        content = content[: draw.randrange(len(content))]
    for _ in range(draw.choice([1, 4, 64])):
        if content:
            place = draw.randrange(min(len(content), 64 if seed % 2 else len(content)))
            content[place] = draw.randrange(256)
    if seed % 5 == 0:  # the section and symbol tables stand at the end
        for _ in range(32):
            content[len(content) - 1 - draw.randrange(min(len(content), 2000))] = draw.randrange(256) if content else 0
    path = tmp_path / "damaged.elf"
    path.write_bytes(content)
    try:
        image = read_elf(path)
    except BuildError as error:
        assert error.slug == "elf-corrupt"  # noqa: PT017  either outcome is right
    else:
        assert image.segments


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    content = bytearray(build_network().elf.read_bytes())
    content[18] = 0x3E  # EM_X86_64
    path = tmp_path / "other.elf"
    path.write_bytes(content)
    with pytest.raises(BuildError, match="32-bit little-endian Arm"):
        read_elf(path)
