"""What a target is: core, memory, clock, supply. Nouns that boards, toolchains and plans share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from joulemap.estimate import Boundary, Provenance

__all__ = ["CpuSpec", "Line", "MemoryPlan", "MemoryRegion", "OperatingPoint", "RegionUse", "Target"]


class Line(StrEnum):
    """The three GPIO lines of the pipeline. READY and GATE are driven by the firmware, GO by the host."""

    READY = "ready"
    GATE = "gate"
    GO = "go"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSpec:
    """The core that a toolchain compiles for.

    Args:
        core: the vendor's name in lower case, for example ``cortex-m33``.
        features: extensions present, for example ``dsp``, ``fp_sp``, ``mve``.
    """

    core: str
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRegion:
    """One addressable memory.

    Args:
        name: ``flash`` or ``ram``, or another word of the target.
        origin: first address.
        size_b: bytes.
    """

    name: str
    origin: int
    size_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionUse:
    """What a plan or an image needs of a region, bytes."""

    region: MemoryRegion
    need_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Where the model goes before anything is built.

    Args:
        uses: one per region.
        arena_b: activation arena, bytes (inside ram).
        constants_b: weights and tables, bytes (inside flash).
    """

    uses: tuple[RegionUse, ...]
    arena_b: int
    constants_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Clock and supply of a run.

    Args:
        core_hz: core clock, Hz.
        supply_v: supply of the measured rail, V.
    """

    core_hz: float
    supply_v: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A board that a run can name with ``--target``.

    Args:
        name: for example ``virtual-m33``.
        description: one line for ``joulemap boards``.
        cpu: the core.
        regions: flash and ram.
        operating_point: default clock and supply.
        boundary: what its measured rail feeds.
        provenance: of its energies: ``simulated`` for a virtual board.
        counter_source: where cycle counts come from: ``dwt``, ``virtual_pmu``.
        transports: links that it offers, for example ``rtt``.
        requires: extras that it needs, for example ``virtual``.
        window_limit_s: longest run whose power can be recorded, s; None where the target sets no limit.
    """

    name: str
    description: str
    cpu: CpuSpec
    regions: tuple[MemoryRegion, ...]
    operating_point: OperatingPoint
    boundary: Boundary
    provenance: Provenance
    counter_source: str
    transports: tuple[str, ...]
    requires: tuple[str, ...] = ()
    window_limit_s: float | None = None

    def region(self, name: str) -> MemoryRegion:
        """Returns the region of that name.

        Raises:
            KeyError: the target has none.
        """
        for region in self.regions:
            if region.name == name:
                return region
        raise KeyError(name)
