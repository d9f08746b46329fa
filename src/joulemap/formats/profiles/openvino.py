"""OpenVINO benchmark_app: counters per layer (CSV and JSON) and the benchmark's own report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from joulemap.errors import FormatError
from joulemap.estimate import Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog
from joulemap.formats.ground.json_stream import read_json
from joulemap.formats.ground.logs import key_of, read_quantity
from joulemap.formats.ground.sampling import SampleBook, recording_of
from joulemap.formats.ground.text import head_lines, read_head, read_lines
from joulemap.formats.ground.values import decimal_ns
from joulemap.formats.profiles.laid_out import MEAN_CLOCK, lay_out
from joulemap.records.recording import Recording, StatedTotal

__all__ = ["OpenVinoReader"]

_HEADER = "layerName;execStatus;layerType;execType;realTime (ms)"
_RESULTS = {
    "avg latency": ("mean_latency_s", 1e-3),
    "min latency": ("min_latency_s", 1e-3),
    "max latency": ("max_latency_s", 1e-3),
    "latency (ms)": ("median_latency_s", 1e-3),
    "throughput": ("throughput_per_s", 1.0),
    "total number of iterations": ("inferences_count", 1.0),
}
_JSON_RESULTS = {
    "latency_avg": "avg latency",
    "latency_min": "min latency",
    "latency_max": "max latency",
    "latency_median": "latency (ms)",
    "iterations_num": "total number of iterations",
}
Rows = Iterator[tuple[str, str, int | None, int]]


class OpenVinoReader:
    """Reads counters: means per layer of each infer request, executed layers only, laid end to end.

    The rows Total are the tool's own sums. Execution names differ from the model's. In JSON numbers are text.

    References:
        Files of openvino 2026.4.1 (average and detailed counters, CSV and JSON, and the report).
    """

    name: ClassVar[str] = "openvino"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for the counters' header, 0.95 for the JSON forms or the report's first block."""
        del path
        lines = head_lines(head, 2)
        if lines and lines[0].startswith(_HEADER):
            return 1.0
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith(b"{"):
            return (
                0.95
                if b'"detailed_performance"' in head
                or b'"execution_results"' in head
                or b'"cmd_options"' in start[:200]
                else 0.0
            )
        return 0.95 if lines[:1] == ["Command line parameters"] and len(lines) > 1 and ";" in lines[1] else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the layers of each infer request as one mean inference, or what the report states.

        Raises:
            FormatError: neither layers nor results.
        """
        del options
        log = FindingLog()
        head = read_head(path)
        book = SampleBook(MEAN_CLOCK, log)
        rows: Rows
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            document = read_json(path)
            rows = _json_layers(document, log)
            if isinstance(document, dict):
                _json_results(document, book)
        elif head_lines(head, 1)[:1] == ["Command line parameters"]:
            rows = iter(())
            _csv_results(path, book)
        else:
            rows = _csv_layers(path, book)
        timelines = lay_out(rows, log, kind="layer")
        if not timelines and not book.totals:
            raise FormatError(
                f"{path.name} holds neither executed layers nor results",
                hint="Use -report_type average_counters.",
                slug="recording-empty",
            )
        return recording_of(self.name, path, book, timelines=timelines)


def _csv_layers(path: Path, book: SampleBook) -> Rows:
    request = 0
    for line, text in read_lines(path):
        fields = text.strip().split(";")
        if not text.strip() or fields[0] == "layerName":
            continue
        if len(fields) < 5:
            book.log.add("row_ragged", f"{len(fields)} fields", f"line {line}")
            continue
        if fields[0] == "Total" and not fields[1]:
            total_s = read_quantity(book.log, fields[4], line, "ms")
            if math.isfinite(total_s):
                book.totals.append(_stated(f"request_{request}_layers_time_s", total_s, f"line {line}"))
            request += 1
            continue
        row = _layer((fields[0], fields[2], fields[1]), (fields[4], f"line {line}"), (request, book.log))
        if row is not None:
            yield row


def _json_layers(document: Any, log: FindingLog) -> Rows:
    blocks = (
        document.get("detailed_performance", document.get("avg_performance")) if isinstance(document, dict) else None
    )
    for request, block in enumerate(
        [blocks] if isinstance(blocks, dict) else blocks if isinstance(blocks, list) else []
    ):
        nodes = block.get("nodes") if isinstance(block, dict) else None
        for node in nodes if isinstance(nodes, list) else []:
            if not isinstance(node, dict):
                continue
            place = (str(node.get("real_time")), f"request {request}")
            layer = (str(node.get("name")), str(node.get("node_type")), str(node.get("status")))
            row = _layer(layer, place, (request, log))
            if row is not None:
                yield row


def _layer(
    layer: tuple[str, str, str], place: tuple[str, str], context: tuple[int, FindingLog]
) -> tuple[str, str, int | None, int] | None:
    name, kind, status = layer
    request, log = context
    if not status.endswith("EXECUTED"):
        return None
    try:
        return f"request {request}", f"{kind} {name}", None, decimal_ns(place[0], 1_000_000)
    except ValueError:
        log.add("value_unreadable", f"{name} has no time", place[1])
        return None


def _csv_results(path: Path, book: SampleBook) -> None:
    for line, text in read_lines(path):
        key, _, value = text.partition(";")
        if key in _RESULTS and value.strip():
            name, factor = _RESULTS[key]
            number = read_quantity(book.log, value, line) * factor
            if math.isfinite(number):
                book.totals.append(_stated(name, number, f"line {line}"))


def _json_results(document: dict[str, Any], book: SampleBook) -> None:
    results = document.get("execution_results")
    for key, value in results.items() if isinstance(results, dict) else []:
        name, factor = _RESULTS.get(_JSON_RESULTS.get(str(key), str(key)), ("", 1.0))
        if name and isinstance(value, (str, int)):
            number = read_quantity(book.log, str(value), 1) * factor
            if math.isfinite(number):
                book.totals.append(_stated(name, number, key_of(key)))


def _stated(key: str, value: float, span: str) -> StatedTotal:
    return StatedTotal(key=key, value=value, provenance=Provenance.MEASURED_SAMPLED, span=span)
