"""The seam of inference runtimes: what each declares of itself, and the sessions that it opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulemap.records.host.campaign import EXACT, InPlaceError, OperatorTimes
from joulemap.records.host.model import HostModel
from joulemap.records.host.request import SessionRequest

__all__ = ["Arrays", "Runtime", "RuntimeSession", "RuntimeTraits", "Stamp"]

Arrays = Mapping[str, NDArray[np.generic]]
"""Inputs of a model by name."""

Stamp = Callable[[], int]
"""Returns the present instant, ns, on the clock of the meter's trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeTraits:
    """What a runtime can do.

    Args:
        name: registry name.
        suffixes: of the files that it loads, for example ``.onnx``.
        extra: what to install for it, for example ``host``; empty for nothing.
        profiles: it tells the time of each operator itself, in a session of its own.
        repeats: it can execute operators several times in place.
        precisions: that can be asked for; empty when the model's own is all there is.
        providers: that can be asked for; empty when there is no choice.
        simulated: nothing is executed: times and energies are invented from declared figures.
        in_place_error: of operators that are repeated.
    """

    name: str
    suffixes: tuple[str, ...]
    extra: str
    profiles: bool
    repeats: bool
    precisions: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    simulated: bool = False
    in_place_error: InPlaceError = EXACT


class RuntimeSession(Protocol):
    """A loaded model, ready to run on the inputs that it was fed."""

    @property
    def model(self) -> HostModel:
        """What is executed."""
        ...

    @property
    def repeatable(self) -> frozenset[int]:
        """Operators that can be executed several times in place."""
        ...

    def feed(self, arrays: Arrays) -> None:
        """Takes the inputs of every following run.

        Raises:
            InputError: one is missing, of another type or shape (``input-mismatch``).
        """
        ...

    def run(self, count: int) -> NDArray[np.float64]:
        """Executes the model ``count`` times and returns how long each took, (count,) s.

        Raises:
            InputError: the runtime refuses to execute it (``model-unsupported``).
        """
        ...

    def profile(self, count: int) -> OperatorTimes | None:
        """Returns times of the operators from a session of its own; None when the runtime tells none.

        Raises:
            InputError: as :meth:`run`.
        """
        ...

    def again(self) -> RuntimeSession:
        """Returns another session of the same model, fed alike: its memory lies elsewhere.

        Raises:
            InputError: the runtime refuses to load it once more (``model-unsupported``).
        """
        ...

    def repeated(self, operators: Sequence[int], copies: int) -> RuntimeSession:
        """Returns a session in which the operators are executed ``copies`` times in place, fed alike.

        Raises:
            InputError: the runtime refuses the changed model (``model-unsupported``).
        """
        ...

    def bare(self) -> RuntimeSession | None:
        """Returns a session with the same inputs that executes no operator of the model; None when there is no such."""
        ...

    def close(self) -> None:
        """Releases it; idempotent."""
        ...


class Runtime(Protocol):
    """One inference runtime."""

    @property
    def traits(self) -> RuntimeTraits:
        """What it can do."""
        ...

    def version(self) -> str:
        """Returns the version that is installed.

        Raises:
            SetupError: it is not installed (``missing-extra``).
        """
        ...

    def open(self, request: SessionRequest, stamp: Stamp) -> RuntimeSession:
        """Returns a session of the model.

        Args:
            request: what to load, and how.
            stamp: the clock of latencies.

        Raises:
            SetupError: the runtime is not installed (``missing-extra``).
            UsageError: it has no such precision or provider (``runtime-option``).
            InputError: the file cannot be loaded, or leaves dimensions open that nothing fills (``open-dimension``).
        """
        ...
