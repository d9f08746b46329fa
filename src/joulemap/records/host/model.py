"""A model as a runtime of this machine executes it: tensors, operators in execution order, and where each one ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ExecutionAudit", "HostModel", "HostOperator", "HostTensor", "ProviderShare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """An input or output of a model.

    Args:
        name: name in the model file.
        dtype: numpy name, for example ``float32``.
        shape: dimensions; a name stands for one that the model leaves open, -1 for one without a name.
        scale: quantisation scale; 0.0 when the tensor is not quantised.
        zero_point: quantisation zero point.
        default: shape that the file holds for its open dimensions; empty when it holds none.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    scale: float = 0.0
    zero_point: int = 0
    default: tuple[int, ...] = ()

    @property
    def open_dimensions(self) -> tuple[str, ...]:
        """Names of the dimensions that the model leaves open, ``?`` for one without a name."""
        return tuple("?" if d == -1 else str(d) for d in self.shape if isinstance(d, str) or d < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOperator:
    """One operator that is executed once per inference.

    Args:
        index: position in execution order, from 0, dense.
        op: kind of operator, for example ``Conv``.
        name: of the node, or of its first output.
        macs: multiply-accumulates of one execution; 0 for none or where the shapes do not tell.
        bytes: constants, inputs and outputs that it must touch at least once; 0 where the shapes do not tell.
        weights_b: constants of these, bytes.
        provider: execution provider or delegate that runs it; empty when it is not known.
        dtype: of its first floating or integer activation; empty when it is not known.
    """

    index: int
    op: str
    name: str
    macs: int = 0
    bytes: int = 0
    weights_b: int = 0
    provider: str = ""
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostModel:
    """What is executed.

    Args:
        name: file stem.
        sha256: digest of the file.
        size_b: bytes of the file.
        inputs: to be fed.
        outputs: produced.
        operators: in execution order.
        constants_b: weights and tables, bytes.
        runtime: name and version.
    """

    name: str
    sha256: str
    size_b: int
    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    operators: tuple[HostOperator, ...]
    constants_b: int
    runtime: str

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(operator.macs for operator in self.operators)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderShare:
    """What one provider ran of an inference.

    Args:
        provider: its name.
        nodes: operators.
        macs: multiply-accumulates.
        time_share: share of the operators' time, 0..1; None when no time is known.
        dtypes: operators by the type of their activations.
    """

    provider: str
    nodes: int
    macs: int
    time_share: float | None
    dtypes: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtypes", MappingProxyType(dict(self.dtypes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionAudit:
    """What was asked of a runtime and what it did.

    Args:
        requested_provider: asked for; empty for the runtime's own choice.
        requested_precision: asked for; empty for the model's own.
        providers: what each of them ran, the largest time or work first.
        fallback_nodes: operators that ran elsewhere than asked; None when the runtime does not tell.
        fallback_mac_share: share of the multiply-accumulates that did, 0..1; None as above or without any.
        precision_share: share of the multiply-accumulates in the asked precision; None when none was asked.
        note: what the runtime does not tell.
    """

    requested_provider: str
    requested_precision: str
    providers: tuple[ProviderShare, ...]
    fallback_nodes: int | None
    fallback_mac_share: float | None
    precision_share: float | None
    note: str = ""
