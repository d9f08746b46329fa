"""Lines and fields of files of unknown origin."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from joulemap.errors import FormatError, InputError
from joulemap.formats.ground.text import (
    HEAD_B,
    head_lines,
    normal_label,
    open_table,
    read_head,
    read_json,
    read_lines,
    split_fields,
)


def write(folder: Path, body: bytes) -> Path:
    path = folder / "x"
    path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    "body",
    [
        "a\nb\n\nc",
        "a\r\nb\r\n\r\nc\r\n",
        "\ufeffa\nb\n\nc\n",
    ],
)
def test_line_ends_and_marks_do_not_matter(body: str, tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path, body.encode()))) == [(1, "a"), (2, "b"), (3, ""), (4, "c")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_read(encoding: str, tmp_path: Path) -> None:
    text = "W\u0a0a\nb µ\n"  # a code unit whose low byte is a line feed
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    assert [line for _, line in read_lines(write(tmp_path, mark + text.encode(encoding)))] == ["W\u0a0a", "b µ"]


def test_windows_1252_is_the_fallback_of_a_line(tmp_path: Path) -> None:
    assert [line for _, line in read_lines(write(tmp_path, b"\xb5W\nplain\n"))] == ["µW", "plain"]


def test_gzip_is_read_through_and_a_cut_one_is_said(tmp_path: Path) -> None:
    packed = gzip.compress(b"a\nb\n" * 1000)
    assert len(list(read_lines(write(tmp_path, packed)))) == 2000
    assert read_head(write(tmp_path, packed)).startswith(b"a\nb\n")
    with pytest.raises(FormatError) as caught:
        list(read_lines(write(tmp_path, packed[:-12])))
    assert caught.value.slug == "archive-damaged"


def test_a_line_without_end_is_refused_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 2") as caught:
        list(read_lines(write(tmp_path, b"ok\n" + b"x" * 200), limit_b=100))
    assert caught.value.slug == "line-too-long"


def test_a_head_is_bounded_and_a_folder_has_none(tmp_path: Path) -> None:
    assert len(read_head(write(tmp_path, b"x" * (HEAD_B + 5)))) == HEAD_B
    assert read_head(tmp_path) == b""
    with pytest.raises(InputError):
        read_head(tmp_path / "absent")


def test_head_lines_skip_blanks_and_refuse_binary() -> None:
    assert head_lines(b"\n\na\n \nb\n", 5) == ["a", "b"]
    assert head_lines(b"\0\1\0\2" * 100) == []
    assert head_lines(b"\xff\xfea\0\n\0b\0") == ["a", "b"]


def test_quoted_fields_hold_the_delimiter() -> None:
    assert split_fields('a,"b, c",d') == ["a", "b, c", "d"]
    assert split_fields('a;"say ""x""" ;d', ";") == ["a", 'say "x"', "d"]
    assert split_fields(" a , b ") == ["a", "b"]


def test_labels_compare_without_case_quotes_and_micro_signs() -> None:
    assert normal_label(' "Current(µA)" ') == normal_label("current(\u03bcA)") == "current(ua)"


def test_a_table_fills_short_rows_and_says_so(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, b"\na,b,c,\n1,2,3,\n\n4,5\n6,7,8,9,10\n"))
    assert table.header == ["a", "b", "c"]
    rows = list(table.rows())
    assert [(row.line, row.fields, row.ragged) for row in rows] == [
        (3, ["1", "2", "3"], False),
        (5, ["4", "5", ""], True),
        (6, ["6", "7", "8"], True),
    ]
    assert table.index("B", "b") == 1
    assert table.index("z") is None


def test_a_semicolon_table_may_have_a_decimal_comma(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, b"t;p\n0,5;1,25\n"))
    assert (table.delimiter, table.decimal) == (";", ",")
    assert open_table(write(tmp_path, b"t;p\n0.5;1.25\n")).decimal == "."
    with pytest.raises(FormatError) as caught:
        open_table(write(tmp_path, b"\n \n"))
    assert caught.value.slug == "recording-empty"


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a": 1} x', b"\xff\xfe\xff"])
def test_what_is_no_json_is_said(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_json(write(tmp_path, body))
    assert caught.value.slug == "json-damaged"


def test_json_is_bounded_and_takes_a_mark(tmp_path: Path) -> None:
    assert read_json(write(tmp_path, b'\xef\xbb\xbf{"a": [1]}')) == {"a": [1]}
    with pytest.raises(FormatError):
        read_json(write(tmp_path, b"[1, 2, 3]"), 4)
