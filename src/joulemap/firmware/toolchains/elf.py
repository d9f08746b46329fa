"""What a linked image says of itself: load segments, sections, symbols, sizes. Must not know boards or compilers."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from joulemap.errors import BuildError, SetupError

__all__ = ["ElfImage", "ElfSegment", "read_elf"]

_SHF_WRITE, _SHF_ALLOC = 1, 2
_MACHINE_ARM = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSegment:
    """A piece of the image as it is loaded.

    Args:
        load_address: where the bytes are programmed.
        run_address: where they, and the zeros after them, stand at run time.
        content: bytes to program.
        memory_b: bytes taken at run time, >= ``len(content)`` for a segment with zeros.
    """

    load_address: int
    run_address: int
    content: bytes
    memory_b: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElfImage:
    """A linked image.

    Args:
        segments: what is loaded (the GNU_STACK segment, which zig pads with 16 MiB, is none).
        sections: allocated section name -> bytes.
        symbols: function and object symbols, name -> (address without the Thumb bit, bytes).
        code_end: first address after the last function.
        flash_b: bytes that are programmed.
        ram_b: bytes of writable sections: data, zeros and a stack section.
    """

    segments: tuple[ElfSegment, ...]
    sections: dict[str, int]
    symbols: dict[str, tuple[int, int]]
    code_end: int
    flash_b: int
    ram_b: int


def read_elf(path: Path) -> ElfImage:
    """Returns the image of a 32-bit little-endian Arm ELF.

    Raises:
        BuildError: the file is missing, no such ELF, or damaged (``elf-corrupt``).
        SetupError: pyelftools is not installed.
    """
    try:
        from elftools.common.exceptions import ELFError  # noqa: PLC0415  vendor module, imported late
        from elftools.construct.core import ConstructError  # noqa: PLC0415
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(
            "reading a firmware image needs pyelftools",
            hint="pip install 'joulemap[virtual]'",
            slug="missing-extra",
        ) from error
    try:
        with BytesIO(path.read_bytes()) as stream:
            return _read(ELFFile(stream))
    except (
        ELFError,
        ConstructError,
        OSError,
        ValueError,
        LookupError,
        struct.error,
        TypeError,
        AttributeError,
    ) as error:
        raise BuildError(
            f"{path.name} is no intact Arm ELF: {error}",
            hint="build the firmware again",
            slug="elf-corrupt",
            phase="setup",
        ) from error


def _read(elf: Any) -> ElfImage:
    if elf.elfclass != 32 or not elf.little_endian or elf.header["e_machine"] not in ("EM_ARM", _MACHINE_ARM):
        raise ValueError("not a 32-bit little-endian Arm image")
    segments = tuple(
        ElfSegment(
            load_address=segment["p_paddr"],
            run_address=segment["p_vaddr"],
            content=_content(segment),
            memory_b=segment["p_memsz"],
        )
        for segment in elf.iter_segments()
        if segment["p_type"] == "PT_LOAD"
    )
    if not any(segment.content for segment in segments):
        raise ValueError("nothing to load")
    sections, flash_b, ram_b = _sections(elf)
    symbols, code_end = _symbols(elf)
    return ElfImage(
        segments=segments, sections=sections, symbols=symbols, code_end=code_end, flash_b=flash_b, ram_b=ram_b
    )


def _content(segment: Any) -> bytes:
    content = bytes(segment.data())
    if len(content) != segment["p_filesz"]:
        raise ValueError("a segment ends after the file")
    return content


def _sections(elf: Any) -> tuple[dict[str, int], int, int]:
    sections: dict[str, int] = {}
    flash_b = ram_b = 0
    for section in elf.iter_sections():
        if not section["sh_flags"] & _SHF_ALLOC or not section["sh_size"]:
            continue
        size_b = int(section["sh_size"])
        sections[section.name] = sections.get(section.name, 0) + size_b
        if section["sh_type"] != "SHT_NOBITS":
            flash_b += size_b
        if section["sh_flags"] & _SHF_WRITE:
            ram_b += size_b
    return sections, flash_b, ram_b


def _symbols(elf: Any) -> tuple[dict[str, tuple[int, int]], int]:
    table = elf.get_section_by_name(".symtab")
    symbols: dict[str, tuple[int, int]] = {}
    code_end = 0
    for symbol in table.iter_symbols() if table is not None else ():
        kind = symbol["st_info"]["type"]
        address, size_b = int(symbol["st_value"]), int(symbol["st_size"])
        if kind == "STT_FUNC":
            address &= ~1
            code_end = max(code_end, address + size_b)
        elif kind != "STT_OBJECT" or symbol["st_shndx"] == "SHN_UNDEF":
            continue
        symbols[symbol.name] = (address, size_b)
    return symbols, code_end
