"""powercfg /srumutil: Windows' history of estimated energy per application, and of its hardware meters."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Boundary, Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.logs import local_clock, read_quantity
from joulemap.formats.ground.sampling import Domain, Meaning, SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns, parse_stamp
from joulemap.records.recording import Recording

__all__ = ["SrumReader"]

_TOTAL = "TotalEnergyConsumption"
_SPAN = "TimeInMSec"
_METER = "EMI_"


class SrumReader:
    """Reads SRUM's energy table: mJ per row over the span that ends at its stamp, columns by name.

    An application's path may hold the separator, so rows are split from the right. Rows of one application and time
    are added; hardware meters (EMI) are channels of their own and are never added to applications. Whether the stamps
    are UTC or local time is disputed among readers: they are kept as local.

    References:
        FORMATS_MORE, "powercfg /srumutil CSV"; airbus-cert/etl-parser (event 3006, the same fields).
    """

    name: ClassVar[str] = "srum"
    certainty: ClassVar[Certainty] = Certainty.DESCRIBED
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for a header that begins with AppId, UserId, TimeStamp and holds energies."""
        del path
        lines = head_lines(head, 1)
        return 1.0 if lines and lines[0].startswith("AppId, UserId, TimeStamp") and _TOTAL in lines[0] else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one trace per application and per hardware meter.

        Raises:
            FormatError: a column is missing, or there is no row.
        """
        log = FindingLog()
        clock, shift_ns = local_clock(options, log, resolution_ns=1e5)
        book = SampleBook(clock, log)
        header: list[str] = []
        sums: dict[tuple[str, int, int], tuple[float, int]] = {}
        for line, text in read_lines(path):
            if not text.strip():
                continue
            if not header:
                header = text.strip().split(", ")
                for column in ("AppId", _TOTAL, _SPAN, "TimeStamp"):
                    if column not in header:
                        raise FormatError(
                            f"{path.name} has no column {column}",
                            hint="Export with powercfg /srumutil /csv.",
                            slug="column-missing",
                        )
                continue
            fields = text.strip().rsplit(", ", len(header) - 1)
            if len(fields) != len(header):
                log.add("row_ragged", f"{len(fields)} fields where the header has {len(header)}", f"line {line}")
                continue
            cells = dict(zip(header, fields, strict=True))
            try:
                end_ns = parse_stamp(cells["TimeStamp"]).ns + shift_ns
                span_ns = decimal_ns(cells[_SPAN], 1_000_000)
            except ValueError:
                log.add("stamp_unreadable", f"no time in {text[:60]!r}", f"line {line}")
                continue
            energy = read_quantity(log, cells[_TOTAL], line)
            key = (cells["AppId"], end_ns - span_ns, end_ns)
            sums[key] = (sums.get(key, (0.0, 0))[0] + energy, line)
        for (app, start_ns, end_ns), (energy, line) in sums.items():
            meter = app.startswith(_METER)
            domain = Domain(
                boundary=Boundary.PACKAGE if "Package" in app and meter else Boundary.NODE,
                provenance=Provenance.MEASURED_COUNTER if meter else Provenance.ESTIMATED,
                meaning=Meaning.STEP,
                scale=1e-3,
            )
            book.series(app, domain).add_interval(start_ns, end_ns, energy, line)
        apps = [name for name in book.names if not name.startswith(_METER)]
        meters = [name for name in book.names if name.startswith(_METER)]
        return recording_of(self.name, path, book, overlaps=[(app, meter) for meter in meters for app in apps])
