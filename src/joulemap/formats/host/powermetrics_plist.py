"""powermetrics of macOS as property lists: one document per sample, several in a file with a NUL between them."""

from __future__ import annotations

import datetime as dt
import plistlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from xml.parsers import expat

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, boundary_of
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, chain_interval, recording_of
from joulemap.formats.ground.text import open_bytes
from joulemap.records.recording import Recording
from joulemap.trace import Clock, ClockKind

__all__ = ["PowermetricsPlistReader"]

_APPLE_MJ = {"package_energy": "Package", "cpu_energy": "CPU", "gpu_energy": "GPU", "ane_energy": "ANE",
             "dram_energy": "DRAM"}  # fmt: skip
_APPLE_MW = {"combined_power": "Combined", "cpu_power": "CPU", "gpu_power": "GPU", "ane_power": "ANE"}
_LIMIT_B = 1 << 24
_DAMAGE = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class PowermetricsPlistReader:
    """Reads powermetrics' property lists.

    Intel: ``processor.package_joules`` over ``elapsed_ns``. Apple: energies in mJ (to macOS 12) or powers in mW.
    Virtual machines and old Macs have neither: the file then holds no power, and says so.

    References:
        FORMATS 2 (powermetrics plist: package_watts times elapsed is package_joules) and 3; tlkh/asitop 3548aeeb,
        asitop/parsers.py (keys and mJ); report 59 (Combined is not the package).
    """

    name: ClassVar[str] = "powermetrics-plist"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a property list with an elapsed time; 0.9 when only the list and its head show."""
        del path
        if b"<plist" not in head[:1024]:
            return 0.0
        if b"<key>elapsed_ns</key>" in head:
            return 1.0
        return 0.9 if b"<key>c_state_ns</key>" in head or b"<key>is_delta</key>" in head else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per energy or power.

        Raises:
            FormatError: no property list, or none that holds a power.
        """
        log = FindingLog()
        book = SampleBook(Clock(name="host", kind=ClockKind.UTC, resolution_ns=1e9), log)
        metadata: dict[str, str] = {}
        last_ns: int | None = None
        for number, document in enumerate(_documents(path, log), start=1):
            stamp, elapsed_ns = document.get("timestamp"), document.get("elapsed_ns")
            if not isinstance(stamp, dt.datetime) or not isinstance(elapsed_ns, int) or elapsed_ns <= 0:
                log.add("stamp_unreadable", "a sample without time stamp or elapsed time; left out", f"sample {number}")
                continue
            try:
                end_ns = int(stamp.replace(tzinfo=dt.UTC).timestamp()) * 1_000_000_000
            except (OverflowError, ValueError):
                log.add("stamp_unreadable", "a time stamp beyond any calendar; left out", f"sample {number}")
                continue
            start_ns, last_ns, lost = chain_interval(last_ns, end_ns, elapsed_ns)
            if lost:
                log.add("time_reanchored", "the stamp is not the sum of the elapsed times", f"sample {number}")
            metadata.setdefault("hw_model", str(document.get("hw_model", "")))
            processor = document.get("processor")
            if isinstance(processor, dict):
                self._take(processor, (start_ns, last_ns), number, (book, options, log))
        names = book.names
        overlaps = [(name, "Package") for name in names if name != "Package"]
        overlaps += [(name, "Combined") for name in ("CPU", "GPU", "ANE")]
        return recording_of(self.name, path, book, overlaps=overlaps, metadata=metadata)

    @staticmethod
    def _take(
        processor: dict[str, Any],
        span: tuple[int, int],
        number: int,
        sink: tuple[SampleBook, ReadOptions, FindingLog],
    ) -> None:
        book, options, log = sink
        joules, watts = processor.get("package_joules"), processor.get("package_watts")
        if isinstance(joules, (int, float)):
            domain = Domain(
                boundary=boundary_of(options.boundary, Boundary.PACKAGE),
                provenance=Provenance.MEASURED_COUNTER,
                meaning=Meaning.STEP,
            )
            book.series("Package", domain).add_interval(*span, float(joules), number)
            span_s = (span[1] - span[0]) * 1e-9
            if isinstance(watts, (int, float)) and abs(watts * span_s - joules) > 1e-3 * abs(joules) + 1e-6:
                log.add(
                    "stated_disagrees",
                    f"package_watts {watts:g} over {span_s:g} s is not package_joules {joules:g}",
                    f"sample {number}",
                )
            return
        found = set()
        for keys, meaning in ((_APPLE_MJ, Meaning.STEP), (_APPLE_MW, Meaning.POWER)):
            for key, name in keys.items():
                value = processor.get(key)
                if not isinstance(value, (int, float)) or isinstance(value, bool) or name in found:
                    continue
                found.add(name)
                own = Boundary.SOC if name in ("Package", "Combined") else Boundary.RAIL
                domain = Domain(
                    boundary=boundary_of(options.boundary, own) if own is Boundary.SOC else own,
                    provenance=Provenance.ESTIMATED,
                    meaning=meaning,
                    scale=1e-3,
                )
                book.series(name, domain).add_interval(*span, float(value), number)


def _documents(path: Path, log: FindingLog) -> Iterator[dict[str, Any]]:
    """Yields the documents; a damaged one is left out with a finding when it is not the only one."""
    good = bad = 0
    for number, raw in enumerate(_pieces(path), start=1):
        try:
            document = plistlib.loads(raw, fmt=plistlib.FMT_XML)
        except (plistlib.InvalidFileException, expat.ExpatError, *_DAMAGE) as error:
            problem = str(error)
        else:
            if isinstance(document, dict):
                good += 1
                yield document
                continue
            problem = "not a dictionary"
        bad += 1
        log.add("sample_damaged", f"a property list cannot be read ({problem}); left out", f"sample {number}")
    if not good:
        raise FormatError(
            f"{path.name} holds no readable property list ({bad} damaged)",
            hint="Run powermetrics -f plist again.",
            slug="plist-damaged",
        )


def _pieces(path: Path) -> Iterator[bytes]:
    pending = b""
    with open_bytes(path) as handle:
        while block := handle.read(1 << 20):
            *whole, pending = (pending + block).split(b"\0")
            yield from (piece for piece in whole if piece.strip())
            if len(pending) > _LIMIT_B:
                raise FormatError(
                    f"{path.name}: one property list is larger than {_LIMIT_B} bytes",
                    hint="This is not a recording of powermetrics.",
                    slug="recording-too-large",
                )
    if pending.strip():
        yield pending.lstrip()
