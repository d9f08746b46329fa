"""Names of the inference runtimes and which of them a file belongs to. The only module that names a runtime.

To add one: one file with a class of ``runtimes.base.Runtime``, one line here, the contract suite green.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, cast

from joulemap.errors import UsageError
from joulemap.runtimes.base import Runtime

__all__ = ["RUNTIMES", "choose_runtime", "runtime", "runtime_names"]

RUNTIMES: Final[dict[str, tuple[str, str]]] = {
    "onnxruntime": ("joulemap.runtimes.onnxruntime", "OnnxRuntime"),
    "litert": ("joulemap.runtimes.litert", "LiteRuntime"),
    "torch": ("joulemap.runtimes.torch", "TorchRuntime"),
    "simulated": ("joulemap.runtimes.simulated.runtime", "SimulatedRuntime"),
}


def runtime_names() -> tuple[str, ...]:
    """Returns the names in the order in which files are offered to them."""
    return tuple(RUNTIMES)


def runtime(name: str) -> Runtime:
    """Returns the runtime of that name.

    Raises:
        UsageError: there is none (``unknown-runtime``).
    """
    if name not in RUNTIMES:
        raise UsageError(
            f"no runtime is called {name!r}", hint=f"one of: {', '.join(RUNTIMES)}", slug="unknown-runtime"
        )
    module, kind = RUNTIMES[name]
    return cast("Runtime", getattr(import_module(module), kind)())


def choose_runtime(name: str, model: Path) -> Runtime:
    """Returns the named runtime, or the first one that loads files like this.

    Raises:
        UsageError: there is no such runtime (``unknown-runtime``), or it loads no such file (``runtime-file``).
    """
    if name:
        chosen = runtime(name)
        if model.suffix not in chosen.traits.suffixes:
            raise UsageError(
                f"{model.name}: {name} loads {', '.join(chosen.traits.suffixes)} files",
                hint="name another --runtime, or leave it out",
                slug="runtime-file",
            )
        return chosen
    for other in RUNTIMES:
        candidate = runtime(other)
        if model.suffix in candidate.traits.suffixes and not candidate.traits.simulated:
            return candidate
    raise UsageError(
        f"{model.name}: no runtime of this machine loads {model.suffix or 'files without a suffix'}",
        hint="give a .onnx, .tflite or .pt2 file",
        slug="runtime-file",
    )
