"""Reads the model's input from an ``.npz`` file that may be anything: bounded, without pickle, into plain numbers.

Every array is checked by its header before a byte of it is unpacked, so that no file can ask for more memory than it
is worth. Must not know what the model takes; the engine compares names, shapes and types.
"""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from joulemap.errors import InputError

__all__ = ["ARRAY_LIMIT_B", "read_input_arrays"]

ARRAY_LIMIT_B = 64 << 20
"""More than any tensor that an engine takes."""
_ARRAY_LIMIT = 256
_SUFFIX = ".npy"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


def read_input_arrays(
    path: Path, *, limit_b: int = ARRAY_LIMIT_B, bools: bool = False
) -> dict[str, NDArray[np.number[Any]]]:
    """Returns the arrays of an ``.npz`` file by name.

    Args:
        path: of the file.
        limit_b: largest array that is taken, B.
        bools: truth values are taken too.

    Raises:
        InputError: missing, no regular file, no ``.npz``, damaged, or an array that is not numeric or is too large
            (``input-unreadable``).
    """
    try:
        if not path.is_file():  # a folder, a pipe, a device: to read it may never end
            raise _refuse(path, "it is no regular file" if path.exists() else "there is no such file")
        with zipfile.ZipFile(path) as archive:
            arrays = _read_entries(path, archive, (limit_b, bools))
    except zipfile.BadZipFile as error:
        raise _refuse(path, f"it is no .npz archive, or a damaged one ({error})") from error
    except (OSError, ValueError, EOFError, SyntaxError, RuntimeError, tokenize.TokenError, zlib.error) as error:
        raise _refuse(path, str(error) or type(error).__name__) from error
    if not arrays:
        raise _refuse(path, "it holds no array")
    return arrays


def _read_entries(path: Path, archive: zipfile.ZipFile, taken: tuple[int, bool]) -> dict[str, NDArray[np.number[Any]]]:
    entries = archive.infolist()
    if len(entries) > _ARRAY_LIMIT:
        raise _refuse(path, f"it holds {len(entries)} arrays, at most {_ARRAY_LIMIT} are taken")
    arrays: dict[str, NDArray[np.number[Any]]] = {}
    for entry in entries:
        name = entry.filename.removesuffix(_SUFFIX)
        if name == entry.filename:
            raise _refuse(path, f"{name} is no array: its name does not end in {_SUFFIX}")
        if name in arrays:
            raise _refuse(path, f"it holds {name} twice")
        if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
            raise _refuse(path, f"{name} is encrypted, or packed in a way that numpy does not use")
        with archive.open(entry) as stream:
            arrays[name] = _read_array(path, name, stream, taken=taken)
    return arrays


def _read_array(path: Path, name: str, stream: IO[bytes], *, taken: tuple[int, bool]) -> NDArray[np.number[Any]]:
    limit_b, bools = taken
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise _refuse(path, f"{name} is of version {version} of the .npy format, which is not known")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran_order, dtype = read_header(stream)
    if not (np.issubdtype(dtype, np.number) or (bools and dtype.kind == "b")):
        raise _refuse(path, f"{name} is not numeric")
    if min(shape, default=0) < 0:
        raise _refuse(path, f"{name} has the impossible shape {shape}")
    size_b = math.prod(shape) * dtype.itemsize
    if size_b > limit_b:
        raise _refuse(path, f"{name} has {size_b} bytes, at most {limit_b} are taken")
    content = stream.read(size_b + 1)  # one more: what follows an array is damage too, and the checksum is compared
    if len(content) != size_b:
        raise _refuse(path, f"{name} has {'more' if len(content) > size_b else 'less'} than {size_b} bytes")
    values: NDArray[np.number[Any]] = np.frombuffer(content, dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")


def _refuse(path: Path, what: str) -> InputError:
    return InputError(
        f"input {path}: {what}",
        hint="save the model's inputs with numpy.savez, one array per input tensor",
        slug="input-unreadable",
    )
