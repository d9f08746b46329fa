"""What the sampling process is told, as one line of JSON; and what it answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from joulemap.records.live.domain import MeterAddress

__all__ = ["Command", "NamedMeter", "Priority", "SamplingPlan"]


class Priority(StrEnum):
    """How hard the sampling process asks to run on time."""

    NORMAL = "normal"
    NICE = "nice"
    REALTIME = "realtime"


class Command(StrEnum):
    """One byte each on the process's standard input; its end means stop."""

    READ = "r"  # read every meter now, and write it out
    PAUSE = "p"
    RESUME = "g"
    STOP = "q"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMeter:
    """A meter to sample, under the name that its domains carry."""

    name: str
    address: MeterAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    """What to sample.

    Args:
        meters: at least one; names unique.
        rate_hz: readings per second, > 0.
        session: id of the recording.
        file: capture to append to; empty for none (live readers only).
        priority: asked for; what was granted stands in the header.
        flush_s: longest time that a sample stays in memory, s.
        ring_fd: descriptor of the shared memory that live readers map; -1 for none.
        parent: process id of the owner: the sampler ends when it is gone.
        paused: begin in a pause that was ordered of a process that this one replaces.
        scratch: folder that is the owner's alone and of no use without it; removed when the owner is gone.
    """

    meters: tuple[NamedMeter, ...]
    rate_hz: float
    session: str
    file: str = ""
    priority: Priority = Priority.NORMAL
    flush_s: float = 0.25
    ring_fd: int = -1
    parent: int = 0
    paused: bool = False
    scratch: str = ""

    def __post_init__(self) -> None:
        if not (self.meters and 0 < self.rate_hz <= 1e5 and 0 < self.flush_s <= 1.0):
            raise ValueError("a plan needs meters, a rate in (0, 100000] Hz and a flush within 1 s")

    def to_line(self) -> str:
        """Returns the plan as one line."""
        return (
            json.dumps(
                {
                    "meters": [
                        {"name": m.name, "driver": m.address.driver, "options": dict(m.address.options)}
                        for m in self.meters
                    ],
                    "rate_hz": self.rate_hz,
                    "session": self.session,
                    "file": self.file,
                    "priority": str(self.priority),
                    "flush_s": self.flush_s,
                    "ring_fd": self.ring_fd,
                    "parent": self.parent,
                    "paused": self.paused,
                    "scratch": self.scratch,
                }
            )
            + "\n"
        )

    @classmethod
    def from_line(cls, line: str) -> SamplingPlan:
        """Returns the plan of a line.

        Raises:
            ValueError, KeyError: the line is no plan.
        """
        told = json.loads(line)
        return cls(
            meters=tuple(
                NamedMeter(name=m["name"], address=MeterAddress(driver=m["driver"], options=m["options"]))
                for m in told["meters"]
            ),
            rate_hz=told["rate_hz"],
            session=told["session"],
            file=told["file"],
            priority=Priority(told["priority"]),
            flush_s=told["flush_s"],
            ring_fd=told["ring_fd"],
            parent=told["parent"],
            paused=told["paused"],
            scratch=told["scratch"],
        )
