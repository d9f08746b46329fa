"""An input file may be anything: it becomes plain arrays, or a refusal that says why; never memory without end."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulemap.errors import InputError
from joulemap.firmware.stages.input_arrays import ARRAY_LIMIT_B, read_input_arrays


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    padded = header.encode() + b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY" + version + len(padded).to_bytes(2, "little") + padded + content


def described(shape: str, descr: str = "'|i1'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def archive(path: Path, *entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in entries:
            file.writestr(name, content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_input_arrays(path)
    assert caught.value.slug == "input-unreadable"
    return caught.value.message


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["i1", "u1", "<i4", ">f4", "f8"])
def test_numbers_come_back_as_they_were(save: Callable[..., None], dtype: str, tmp_path: Path) -> None:
    a = np.arange(24).reshape(2, 3, 4).astype(dtype)
    arrays = {"a": a, "b": np.asfortranarray(a), "scalar": np.array(3, dtype), "none": np.zeros((0, 2), dtype)}
    save(tmp_path / "x.npz", **arrays)
    read = read_input_arrays(tmp_path / "x.npz")
    assert read.keys() == arrays.keys()
    for name, values in arrays.items():
        assert read[name].dtype == values.dtype
        np.testing.assert_array_equal(read[name], values)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "magic"),
        (b"plain bytes", "magic"),
        (npy("(" * 3000), "input"),
        (npy("__import__('os').abort()"), "input"),
        (npy(described("(1, 1000000000000)")), "at most"),
        (npy(described("(1, -640)"), bytes(640)), "impossible shape"),
        (npy(described("(1, 640)"), bytes(64)), "less than 640"),
        (npy(described("(1, 640)"), bytes(641)), "more than 640"),
        (npy(described("(2,)", "'|O'"), bytes(16)), "not numeric"),
        (npy(described("(2,)", "'|b1'"), bytes(2)), "not numeric"),
        (npy(described("(2,)", "'<M8[s]'"), bytes(16)), "not numeric"),
        (npy(described("(2,)", "[('a', 'i1')]"), bytes(2)), "not numeric"),
        (npy(described("(2,)"), bytes(2), version=b"\x09\x00"), "version"),
    ],
)
def test_an_array_that_is_none_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    assert why in refusal(archive(tmp_path / "x.npz", ("a.npy", content)))


def test_an_array_is_weighed_before_it_is_unpacked(tmp_path: Path) -> None:
    content = npy(described(f"({ARRAY_LIMIT_B + 1},)"), bytes(ARRAY_LIMIT_B + 1))
    path = archive(tmp_path / "x.npz", ("a.npy", content), method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < ARRAY_LIMIT_B // 500
    assert f"at most {ARRAY_LIMIT_B}" in refusal(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_numpy_does_not_write_is_refused(method: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", ("a.npy", npy(described("(1,)"), b"1")), method=method)
    assert "packed in a way" in refusal(path)


@pytest.mark.parametrize("offset", [6, 8])
def test_flags_of_another_tool_are_refused(offset: int, tmp_path: Path) -> None:
    """Encryption, and a packing method that does not exist."""
    path = archive(tmp_path / "x.npz", ("a.npy", npy(described("(1,)"), b"1")))
    content = bytearray(path.read_bytes())
    for start, shift in ((content.find(b"PK\x03\x04"), 0), (content.find(b"PK\x01\x02"), 2)):
        content[start + offset + shift] |= 97
    path.write_bytes(content)
    assert "encrypted" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_are_unique_and_of_arrays(tmp_path: Path) -> None:
    one = npy(described("(1,)"), b"1")
    assert "twice" in refusal(archive(tmp_path / "x.npz", ("a.npy", one), ("a.npy", one)))
    assert "no array" in refusal(archive(tmp_path / "y.npz", ("readme.txt", b"hello")))


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path(os.devnull)):
        assert "no regular file" in refusal(path)
    assert "no such file" in refusal(tmp_path / "none.npz")


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_damage_is_refused_or_harmless(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damage") / "x.npz"
    np.savez_compressed(path, a=np.arange(100, dtype=np.int8))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        arrays = read_input_arrays(path)
    except InputError:
        return
    assert all(np.issubdtype(array.dtype, np.number) for array in arrays.values())
