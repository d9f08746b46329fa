"""A meter behind an address or a command: asked at most so often, its last answer given in between. Knows no address.

Such a meter answers in milliseconds to seconds, so its driver asks for all figures at once and hands them over by name.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joulemap.errors import SetupError
from joulemap.meters.live.ground.losses import lost_meter, refused_meter
from joulemap.records.live.domain import LiveDomain, MeterAddress, MeterCandidate

__all__ = ["Answer", "AskError", "PacedMeter"]

_MOST_FAILURES = 3

Answer = Mapping[str, tuple[LiveDomain, float]]
"""By the name of a domain: what it is, and its reading in raw units."""


class AskError(Exception):
    """The meter did not answer; with the step that mends it.

    Args:
        problem: what went wrong.
        fix: empty when there is none.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.fix = fix


class PacedMeter:
    """Asks, keeps, and gives.

    Args:
        address: what opens it again.
        name: of the candidate.
        ask: gives all figures, or raises :class:`AskError`.
        every_s: least time between two questions, s.
        machine: whose power it is; empty for the machine that records.
        now_ns: the clock.
    """

    def __init__(
        self,
        address: MeterAddress,
        name: str,
        ask: Callable[[], Answer],
        *,
        every_s: float,
        machine: str = "",
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._address = address
        self._name = name
        self._ask = ask
        self._machine = machine
        self._every_ns = round(every_s * 1e9)
        self._now_ns = now_ns
        self._domains: tuple[LiveDomain, ...] = ()
        self._values: Sequence[float] = ()
        self._due_ns = 0
        self._failures = 0

    @property
    def address(self) -> MeterAddress:
        """What opens it again."""
        return self._address

    @property
    def domains(self) -> tuple[LiveDomain, ...]:
        """What the first answer held; empty before ``open``."""
        return self._domains

    def candidate(self) -> MeterCandidate:
        """Returns what discovery says of it now."""
        try:
            self.open()
        except SetupError as error:
            problem = error.message.removeprefix(f"{self._name}: ")
            return MeterCandidate(name=self._name, address=self._address, problem=problem, fix=error.hint)
        return MeterCandidate(name=self._name, address=self._address, domains=self._domains)

    def open(self) -> None:
        """Asks for the first time; no effect when it is open.

        Raises:
            SetupError: there is no answer, or nothing of power in it (``meter-unusable``).
        """
        if self._domains:
            return
        try:
            answer = self._ask()
        except AskError as error:
            raise refused_meter(self._name, str(error), error.fix) from error
        if not answer:
            raise refused_meter(self._name, "the answer holds no energy and no power", "")
        self._domains = tuple(replace(domain, machine=self._machine) for domain, _ in answer.values())
        self._values = [value for _, value in answer.values()]
        self._due_ns = self._now_ns() + self._every_ns

    def read(self, raw: NDArray[np.float64]) -> None:
        """Writes one reading per domain, of this moment when it is time to ask, else of the last answer.

        Raises:
            PowerError: three questions in a row had no answer (``meter-lost``).
        """
        now_ns = self._now_ns()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + self._every_ns
            try:
                answer = self._ask()
                self._failures = 0
            except AskError as error:
                answer = {}
                self._failures += 1
                if self._failures >= _MOST_FAILURES:
                    raise lost_meter(self._name, f"no answer three times ({error})") from error
            self._values = [answer[domain.name][1] if domain.name in answer else math.nan for domain in self._domains]
        raw[: len(self._values)] = self._values

    def close(self) -> None:
        """Holds nothing open; idempotent."""
