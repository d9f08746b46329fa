"""powermetrics of macOS as text: one block per sample with its zone and its elapsed time, powers in mW."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.logs import parse_asctime
from joulemap.formats.ground.sampling import Domain, SampleBook, chain_interval, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["PowermetricsTextReader"]

_SAMPLE = re.compile(r"^\*\*\* Sampled system activity \((.+?)\) \((\d+(?:\.\d+)?)ms elapsed\) \*\*\*")
_POWER = re.compile(r"^(.{1,40}?) Power(?: \(CPU \+ GPU \+ ANE\))?: (\d{1,9}(?:\.\d+)?) mW\s*$")
_ACTIVE = re.compile(r"^(GPU|\w{1,3}-Cluster)(?: HW)? active residency:\s+(\d+(?:\.\d+)?)%")
_WHOLES = ("Package", "Combined")


class PowermetricsTextReader:
    """Reads powermetrics' text. Powers are means over the elapsed time of their sample, estimated by the system.

    The stamps are whole seconds while samples are fractions of one: the elapsed times are laid end to end from the
    first stamp, and re-anchored where a stamp shows that time was lost. macOS 13 drops Package and DRAM; Combined is
    CPU + GPU + ANE and is not the package.

    References:
        powermetrics(1); FORMATS 2 and 3 (powermetrics) and 4 (report 59).
    """

    name: ClassVar[str] = "powermetrics-text"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the banner of a sample."""
        del path
        return 1.0 if any(_SAMPLE.match(text) for text in head_lines(head, 40)) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per power, active residencies as lanes.

        Raises:
            FormatError: no sample with a power.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e9), log)
        metadata: dict[str, str] = {}
        span: tuple[int, int] | None = None
        for line, text in read_lines(path):
            banner = _SAMPLE.match(text)
            if banner is not None:
                span = self._span(banner, span, (log, line))
                continue
            if span is None:
                key, colon, value = text.partition(":")
                if colon and key in ("Machine model", "OS version"):
                    metadata[key.lower().replace(" ", "_")] = value.strip()
                continue
            power = _POWER.match(text)
            if power is not None:
                name = power.group(1)
                book.series(name, _domain(name, options)).add_interval(*span, float(power.group(2)), line)
                continue
            active = _ACTIVE.match(text)
            if active is not None:
                book.lane(f"{active.group(1)} active", "1", span[1], float(active.group(2)) * 0.01)
        return recording_of(self.name, path, book, overlaps=_overlaps(book.names), metadata=metadata)

    @staticmethod
    def _span(banner: re.Match[str], before: tuple[int, int] | None, place: tuple[FindingLog, int]) -> tuple[int, int]:
        log, line = place
        try:
            stamp = parse_asctime(banner.group(1))
            elapsed_ns = decimal_ns(banner.group(2), 1_000_000)
        except ValueError as error:
            raise FormatError(
                f"line {line}: {error}", hint="Run powermetrics with LC_ALL=C.", slug="stamp-unreadable"
            ) from None
        end_ns = stamp.ns if stamp.offset_s is None else stamp.utc_ns
        start_ns, chained_ns, lost = chain_interval(before[1] if before else None, end_ns, elapsed_ns)
        if lost and before is not None:
            log.add(
                "time_reanchored",
                f"the stamp is {(end_ns - before[1] - elapsed_ns) * 1e-9:.3f} s from the sum of the elapsed times",
                f"line {line}",
            )
        return start_ns, chained_ns


def _domain(name: str, options: ReadOptions) -> Domain:
    own = Boundary.SOC if name in _WHOLES else Boundary.RAIL
    boundary = boundary_of(options.boundary, own) if name in _WHOLES else own
    return Domain(boundary=boundary, provenance=Provenance.ESTIMATED, scale=1e-3)


def _overlaps(names: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for name in names:
        if name.endswith("-Cluster"):
            pairs.append((name, "CPU"))
        if name not in _WHOLES:
            pairs.append((name, "Package"))
            if name != "DRAM":
                pairs.append((name, "Combined"))
    return [*pairs, ("Combined", "Package")]
