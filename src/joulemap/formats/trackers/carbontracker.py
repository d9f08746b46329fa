"""carbontracker's logs: epochs with mean powers per component, and consumptions multiplied by a PUE factor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import local_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, SampleBook, chain_interval, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import parse_clock_time, parse_stamp
from joulemap.records.recording import Recording
from joulemap.trace import Slice, Timeline

__all__ = ["CarbontrackerReader"]

_LINE = re.compile(r"^(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) - (.*)$")
_EPOCH = re.compile(r"^Epoch (\d+):$")
_DURATION = re.compile(r"^Duration: (\d+):(\d{2}):(\d{2}(?:\.\d+)?)$")
_POWER = re.compile(r"^Average power usage \(W\) for (\w+): (.+)$")
_PUE = re.compile(r"PUE coefficient of (\d+(?:\.\d*)?)")
_BLOCK = re.compile(r"^(Predicted|Actual) consumption for (\d+) epoch\(s\):")
_ENERGY = re.compile(r"^\s+Energy:\s+(\S+) kWh")


@dataclass(slots=True)
class _State:
    epoch: str = ""
    stamp_ns: int = 0
    span: tuple[int, int] | None = None
    block: str = ""


class CarbontrackerReader:
    """Reads carbontracker's log (epochs) and its output log (predicted and actual consumption).

    The stamps are local whole seconds, written when an epoch ends; epochs are laid end to end from the first. The
    powers of epochs are not multiplied by the PUE factor, the consumptions are.

    References:
        PyPI carbontracker 2.4.7 (logs written by it); FORMATS_MORE, "carbontracker".
    """

    name: ClassVar[str] = "carbontracker"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the first lines of either log."""
        del path
        lines = head_lines(head, 3)
        return 1.0 if any(" - carbontracker version" in t or " - CarbonTracker: " in t for t in lines) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns epochs as slices and traces, or consumptions as stated figures.

        Raises:
            FormatError: neither an epoch nor a consumption.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e9)
        book = SampleBook(clock, log)
        state = _State()
        slices: list[Slice] = []
        metadata: dict[str, str] = {}
        for line, text in read_lines(path):
            match = _LINE.match(text)
            body = match.group(2) if match else text
            pue = _PUE.search(body)
            if pue is not None:
                metadata["pue"] = pue.group(1)
            block, energy = _BLOCK.match(body), _ENERGY.match(text)
            if block is not None:
                state.block = block.group(1).lower()
            elif energy is not None and state.block:
                domain = Domain(boundary=Boundary.FACILITY, provenance=Provenance.ESTIMATED)
                book.state(
                    f"{state.block}_energy_j", read_quantity(log, energy.group(1), line) * 3.6e6, domain, f"line {line}"
                )
                log.add(
                    "pue_included",
                    f"the {state.block} consumption is multiplied by carbontracker's PUE factor",
                    f"line {line}",
                )
            if match is None:
                continue
            try:
                stamp_ns = parse_stamp(match.group(1)).ns + shift_ns
            except ValueError:
                log.add("stamp_unreadable", f"{match.group(1)!r} is no date", f"line {line}")
                continue
            self._epoch_line(body, (stamp_ns, line), state, (book, slices))
        timelines = (Timeline.from_slices(clock, slices),) if slices else ()
        return recording_of(self.name, path, book, metadata=metadata, timelines=timelines)

    @staticmethod
    def _epoch_line(body: str, place: tuple[int, int], state: _State, sink: tuple[SampleBook, list[Slice]]) -> None:
        stamp_ns, line = place
        book, slices = sink
        epoch, duration, power = _EPOCH.match(body), _DURATION.match(body), _POWER.match(body)
        if epoch is not None:
            state.epoch, state.stamp_ns = epoch.group(1), stamp_ns
        elif duration is not None and state.epoch:
            hours, minutes, seconds = duration.groups()
            try:
                length_ns = int(hours[:6]) * 3_600_000_000_000 + parse_clock_time(f"00:{minutes}:{seconds}")
            except ValueError:
                book.log.add("value_unreadable", f"{body[:40]!r} is no duration", f"line {line}")
                return
            before = state.span[1] if state.span else None
            start_ns, end_ns, lost = chain_interval(before, state.stamp_ns, length_ns)
            if lost:
                book.log.add("time_reanchored", "the epoch does not follow the one before", f"line {line}")
            state.span = (start_ns, end_ns)
            slices.append(Slice(name=f"epoch {state.epoch}", start_ns=start_ns, end_ns=end_ns, kind="epoch"))
        elif power is not None and state.span is not None:
            component = power.group(1)
            domain = Domain(boundary=Boundary.BOARD if component == "gpu" else Boundary.PACKAGE)
            value = read_quantity(book.log, power.group(2), line)
            book.series(component, domain).add_interval(*state.span, value, line)
