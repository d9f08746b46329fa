"""What an object depends on: the files it includes and the definitions it names."""

from __future__ import annotations

import pytest

from joulemap.firmware.toolchains.sources import plan_units

FILES = {
    "main.c": '#include "port.h"\nint x = N;\n',
    "model.c": '#include "kernels/conv.h"\n',
    "port.h": "#include <stdint.h>\n",
    "kernels/conv.h": '#  include "k.h"\nint y = WIDTH;\n',
    "kernels/k.h": "",
    "k.h": "int other;",
    "link.ld": "",
}


def test_a_unit_holds_what_it_reaches_and_no_more() -> None:
    main, model = plan_units(FILES, {"N": "3", "WIDTH": "8", "UNUSED": "1"})
    assert (main.name, sorted(main.files), dict(main.defines)) == ("main.c", ["main.c", "port.h"], {"N": "3"})
    assert sorted(model.files) == ["kernels/conv.h", "kernels/k.h", "model.c"]
    assert dict(model.defines) == {"WIDTH": "8"}


def test_an_include_by_macro_reaches_every_header() -> None:
    (unit,) = plan_units({"a.c": "#define H <b.h>\n#include H\n", "b.h": "", "c.h": ""}, {})
    assert sorted(unit.files) == ["a.c", "b.h", "c.h"]


def test_headers_may_include_each_other() -> None:
    (unit,) = plan_units({"a.c": '#include "b.h"\n', "b.h": '#include "c.h"\n', "c.h": '#include "b.h"\n'}, {})
    assert sorted(unit.files) == ["a.c", "b.h", "c.h"]


@pytest.mark.parametrize("name", ["/etc/x.c", "../x.c", "a/../../x.c"])
def test_a_file_outside_the_source_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="leaves the source folder"):
        plan_units({name: ""}, {})
