"""TFLite's benchmark_model with op profiling, as CSV: operators with their mean start and time per inference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from joulemap.errors import FormatError
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.formats.profiles.laid_out import MEAN_CLOCK, lay_out
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording

__all__ = ["TfliteProfileReader"]

_HEADER = "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name"
_HEADER_FIELDS = 9


class TfliteProfileReader:
    """Reads the section Run Order; the other sections repeat its operators in another order.

    Blocks inside a delegate follow as sections of their own and lie within the delegate's operator: left out.

    References:
        tensorflow 31ccb01c, tensorflow/core/util/stats_calculator.cc; 177d5e6d,
        tensorflow/lite/profiling/profile_summary_formatter.cc.
    """

    name: ClassVar[str] = "tflite-profile"
    certainty: ClassVar[Certainty] = Certainty.RECORDING
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the banner of a section above the profiler's header."""
        del path
        lines = head_lines(head, 200)
        return 1.0 if any("Run Order" in text for text in lines) and _HEADER in lines else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns one mean inference as a timeline.

        Raises:
            FormatError: no operator in a section Run Order.
        """
        del options
        log = FindingLog()
        timelines = lay_out(_rows(path, log), log)
        if not timelines:
            raise FormatError(
                f"{path.name} holds no operator",
                hint="Use --enable_op_profiling=true with a CSV file.",
                slug="recording-empty",
            )
        return recording_of(self.name, path, SampleBook(MEAN_CLOCK, log), timelines=timelines)


def _rows(path: Path, log: FindingLog) -> Iterator[tuple[str, str, int | None, int]]:
    inside = seen = delegate = False
    for line, text in read_lines(path):
        if text.startswith("===="):
            inside = "Run Order" in text and not seen
            if "Run Order" in text and seen:
                log.add(
                    "section_inside",
                    "a further section (of a delegate or subgraph) is left out",
                    f"line {line}",
                    Severity.INFO,
                )
            seen = seen or inside
            continue
        if text.strip().startswith("Delegate internal"):
            delegate = True
        if not inside or delegate or not text.strip() or text == _HEADER:
            continue
        fields = text.split(", ", _HEADER_FIELDS - 1)
        if len(fields) != _HEADER_FIELDS:
            if "," in text:
                log.add("row_ragged", f"{len(fields)} fields of {_HEADER_FIELDS}", f"line {line}")
            continue
        try:
            start_ns, mean_ns = decimal_ns(fields[1], 1_000_000), decimal_ns(fields[3], 1_000_000)
        except ValueError:
            log.add("value_unreadable", f"no times in {text[:40]!r}", f"line {line}")
            continue
        yield "inference", f"{fields[0]} {fields[8]}", start_ns, mean_ns
