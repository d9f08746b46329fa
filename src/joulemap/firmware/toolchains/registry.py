"""The toolchains that a run can name. The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable

from joulemap.errors import UsageError
from joulemap.firmware.toolchains.base import Toolchain
from joulemap.firmware.toolchains.zig import ZigToolchain

__all__ = ["toolchain", "toolchain_names"]

_TOOLCHAINS: dict[str, Callable[[], Toolchain]] = {"zig": ZigToolchain}


def toolchain_names() -> tuple[str, ...]:
    """Returns the names that :func:`toolchain` knows."""
    return tuple(_TOOLCHAINS)


def toolchain(name: str) -> Toolchain:
    """Returns the toolchain of that name.

    Raises:
        UsageError: there is none (``unknown-toolchain``).
    """
    if name not in _TOOLCHAINS:
        raise UsageError(
            f"no toolchain named {name}",
            hint=f"one of: {', '.join(_TOOLCHAINS)}",
            slug="unknown-toolchain",
        )
    return _TOOLCHAINS[name]()
