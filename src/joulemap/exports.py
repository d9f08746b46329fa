"""Names that ``joulemap`` itself offers to programs, each loaded when it is first asked for. Imports no room."""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["EXPORTS", "load_export"]

EXPORTS: Final = {
    "measure": "joulemap.workflow.api:measure",
    "Measurement": "joulemap.workflow.api:Measurement",
    "mark": "joulemap.meters.live.marking:Mark",
    "instant": "joulemap.meters.live.marking:instant",
    "adapters": "joulemap.workflow.adapters:",
}
"""Name -> ``module:symbol``; no symbol for the module itself."""


def load_export(name: str) -> Any:
    """Returns what ``joulemap.NAME`` stands for.

    Raises:
        AttributeError: there is none of that name.
    """
    if name not in EXPORTS:
        raise AttributeError(f"module 'joulemap' has no attribute {name!r}")
    module, _, symbol = EXPORTS[name].partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, symbol) if symbol else loaded
