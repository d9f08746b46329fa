"""A meter whose readings are files of the kernel: looked for, opened once, read in order. Knows no kind of file.

A driver says what it found as a :class:`Survey`; opening, reading, loss and closing are the same for all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from joulemap.estimate import Provenance
from joulemap.meters.live.ground.losses import lost_meter, refused_meter
from joulemap.meters.live.ground.made_up import is_made_up
from joulemap.meters.live.ground.number_file import NumberFile
from joulemap.records.live.domain import LiveDomain, MeterAddress, MeterCandidate

__all__ = ["FileMeter", "Paced", "Product", "Source", "Survey", "Transformed", "answers"]


class Source(Protocol):
    """What gives one reading."""

    @property
    def gone(self) -> bool:
        """True when there is nothing to read any more."""
        ...

    def open(self) -> None:
        """Opens it; no effect when it is open.

        Raises:
            OSError: it is not there or not permitted.
        """
        ...

    def read(self) -> float:
        """Returns the reading; NaN when it cannot be had now."""
        ...

    def close(self) -> None:
        """Closes it; idempotent."""
        ...


class Product:
    """The product of two files: voltage and current of one rail.

    Args:
        first: of the two.
        second: of the two.
    """

    __slots__ = ("_first", "_second")

    def __init__(self, first: NumberFile, second: NumberFile) -> None:
        self._first, self._second = first, second

    @property
    def gone(self) -> bool:
        """True when one of them is gone."""
        return self._first.gone or self._second.gone

    def open(self) -> None:
        """Opens both.

        Raises:
            OSError: one of them is not there or not permitted.
        """
        self._first.open()
        self._second.open()

    def read(self) -> float:
        """Returns the product; NaN when one of them cannot be had now."""
        return self._first.read() * self._second.read()

    def close(self) -> None:
        """Closes both."""
        self._first.close()
        self._second.close()


class Transformed:
    """Several files whose numbers make one reading.

    Args:
        files: in the order of the rule's arguments.
        rule: from the numbers, NaN for a missing one, to the reading.
    """

    __slots__ = ("_files", "_rule")

    def __init__(self, files: tuple[NumberFile, ...], rule: Callable[..., float]) -> None:
        self._files, self._rule = files, rule

    @property
    def gone(self) -> bool:
        """True when all files are gone."""
        return all(file.gone for file in self._files)

    def open(self) -> None:
        """Opens all files.

        Raises:
            OSError: one of them is not there or not permitted.
        """
        for file in self._files:
            file.open()

    def read(self) -> float:
        """Returns what the rule makes of the numbers."""
        return self._rule(*(file.read() for file in self._files))

    def close(self) -> None:
        """Closes all files."""
        for file in self._files:
            file.close()


class Paced:
    """A source that is read at most so often, and gives its last reading in between: for files that are slow to read.

    Args:
        source: read.
        every_s: least time between two readings, s.
        now_ns: the clock.
    """

    __slots__ = ("_due_ns", "_every_ns", "_last", "_now_ns", "_source")

    def __init__(self, source: Source, every_s: float, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._source = source
        self._every_ns = round(every_s * 1e9)
        self._now_ns = now_ns
        self._due_ns = 0
        self._last = math.nan

    @property
    def gone(self) -> bool:
        """True when the source is gone."""
        return self._source.gone

    def open(self) -> None:
        """Opens the source.

        Raises:
            OSError: it is not there or not permitted.
        """
        self._source.open()
        self._due_ns = 0

    def read(self) -> float:
        """Returns the reading, at most ``every_s`` old."""
        now_ns = self._now_ns()
        if now_ns >= self._due_ns:
            self._last = self._source.read()
            self._due_ns = now_ns + self._every_ns
        return self._last

    def close(self) -> None:
        """Closes the source."""
        self._source.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a look at the machine found.

    Args:
        domains: that can be read.
        sources: of their readings, in the same order.
        problem: why there is nothing to read; empty when there is.
        fix: the step that mends it.
    """

    domains: tuple[LiveDomain, ...] = ()
    sources: tuple[Source, ...] = ()
    problem: str = ""
    fix: str = ""


def answers(source: Source) -> bool:
    """True when the source can be opened and gives a number now; it is closed again.

    Raises:
        PermissionError: it may not be read.
    """
    try:
        source.open()
        return not math.isnan(source.read())
    except PermissionError:
        raise
    except OSError:
        return False
    finally:
        source.close()


class FileMeter:
    """Reads the sources of a survey.

    Args:
        address: what opens it again.
        name: of the candidate.
        look: looks at the machine.
    """

    def __init__(self, address: MeterAddress, name: str, look: Callable[[], Survey]) -> None:
        self._address = address
        self._name = name
        self._look = look
        self._domains: tuple[LiveDomain, ...] = ()
        self._sources: tuple[Source, ...] = ()
        self._reads: tuple[Callable[[], float], ...] = ()
        self._given: NDArray[np.float64] | None = None
        self._view = cast("memoryview[float]", np.empty(0).data)

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What it reads; empty before ``open``."""
        return self._domains

    def candidate(self) -> MeterCandidate:
        """Returns what discovery says of it now."""
        found = self._survey()
        return MeterCandidate(
            name=self._name, address=self._address, domains=found.domains, problem=found.problem, fix=found.fix
        )

    def open(self) -> None:
        """Opens the sources; no effect when they are open.

        Raises:
            SetupError: there is none, or none may be read (``meter-unusable``).
        """
        if self._sources:
            return
        found = self._survey()
        if self._domains and not found.problem:
            found = _in_order(self._domains, found)
        if found.problem:
            raise refused_meter(self._name, found.problem, found.fix)
        try:
            for source in found.sources:
                source.open()
        except OSError as error:
            for source in found.sources:
                source.close()
            raise refused_meter(self._name, f"went away while it was opened ({error.strerror})", "") from error
        self._domains, self._sources = found.domains, found.sources
        self._reads = tuple(source.read for source in found.sources)

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes one reading per domain.

        Raises:
            PowerError: every source is gone (``meter-lost``).
        """
        if raw is not self._given:  # who reads a thousand times a second gives one row again and again
            self._given, self._view = raw, cast("memoryview[float]", raw.data)
        view, lost, at = self._view, 0, 0
        for read in self._reads:
            view[at] = value = read()
            if value != value and self._sources[at].gone:  # noqa: PLR0124  NaN: only then it can be gone
                lost += 1
            at += 1
        if lost == at:
            raise lost_meter(self._name, "nothing of it can be read any more")

    def close(self) -> None:
        """Closes the sources; idempotent."""
        for source in self._sources:
            source.close()
        self._sources = self._reads = ()

    def _survey(self) -> Survey:
        found = self._look()
        if found.domains and is_made_up(Path(self._address.options.get("root", "/sys"))):
            domains = (replace(domain, provenance=Provenance.SIMULATED) for domain in found.domains)
            return replace(found, domains=tuple(domains))
        return found


def _in_order(domains: tuple[LiveDomain, ...], found: Survey) -> Survey:
    # opened again after a loss: readings must stay in the order that was declared
    by_name = dict(zip((domain.name for domain in found.domains), found.sources, strict=True))
    missing = [domain.name for domain in domains if domain.name not in by_name]
    if missing:
        return Survey(problem=f"{', '.join(missing)} did not come back")
    return Survey(domains=domains, sources=tuple(by_name[domain.name] for domain in domains))
