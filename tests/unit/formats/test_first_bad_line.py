"""A table of which nothing parses names its first bad line, what is wrong with it, and what was wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.errors import FormatError
from recording_files import read_bytes

MAPPED: dict[str, object] = {"columns": {"time": "t", "power": "p"}, "units": {"time": "s", "power": "W"}}
FORMS: dict[str, tuple[str, str, dict[str, object], str, str]] = {
    "generic": ("csv", "t,p\n\n1,abc\n2,def\n", MAPPED, "line 3", "a time in 't' as a number"),
    "generic-comma": ("csv", "t;p\n1,5;abc\n2,5;def\n", MAPPED, "line 2", "decimal comma in 'p'"),
    "calendar": ("csv", "t,p\nnoon,1\n", MAPPED | {"units": {"power": "W"}}, "line 2", "2026-01-02T"),
    "saleae": ("saleae-csv", "Time [s],Channel 0\n0.0,high?\n0.1,low?\n", {}, "line 2", "each of Channel 0"),
    "markers": ("markers", "start_ns,end_ns,name\nsoon,later,a\n", {}, "line 2", "times that are numbers"),
    "markers-lines": ("markers", '{"start_ns": "x", "end_ns": "y", "name": "a"}\n', {}, "line 1", "times that are"),
    "nvidia": ("nvidia-smi-csv", "timestamp, power.draw [W]\nsoon, 12 W\n", {}, "line 2", ""),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_first_bad_line_is_named_with_what_was_wanted(form: str, tmp_path: Path) -> None:
    name, body, options, line, wanted = FORMS[form]
    with pytest.raises(FormatError) as caught:
        read_bytes(name, body, tmp_path, **options)
    assert caught.value.slug == "recording-empty"
    assert f"; {line}: " in caught.value.message
    assert wanted in caught.value.hint
