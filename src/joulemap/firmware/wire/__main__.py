"""Regenerates ``hpx_wire.h`` and ``docs/wire.md`` in a checkout: ``python -m joulemap.firmware.wire``."""

from __future__ import annotations

from pathlib import Path

from joulemap.firmware.wire.generate import format_header, format_reference

_FIRMWARE = Path(__file__).resolve().parents[1]
_CHECKOUT = _FIRMWARE.parents[2]


def main() -> None:
    """Writes both files."""
    (_FIRMWARE / "csrc" / "target" / "hpx_wire.h").write_text(format_header(), encoding="utf-8")
    (_CHECKOUT / "docs" / "wire.md").write_text(format_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
