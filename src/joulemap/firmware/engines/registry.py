"""The engines by name: the only module that names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from joulemap.errors import UsageError
from joulemap.firmware.engines.aot import AotEngine
from joulemap.firmware.engines.base import Engine

__all__ = ["engine", "engine_names"]

_ENGINES: Mapping[str, Callable[[], Engine]] = MappingProxyType({"aot": AotEngine})


def engine_names() -> tuple[str, ...]:
    """Returns the names that ``--engine`` takes."""
    return tuple(_ENGINES)


def engine(name: str) -> Engine:
    """Returns the engine of that name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in _ENGINES:
        raise UsageError(
            f"there is no engine {name!r}", hint=f"choose one of {', '.join(engine_names())}", slug="unknown-engine"
        )
    return _ENGINES[name]()
