"""LiteRT's benchmark result: latencies of whole inferences, rounded to hundredths of a millisecond."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final

from joulemap.errors import FormatError
from joulemap.estimate import Provenance
from joulemap.formats.base import Certainty, ReadOptions
from joulemap.formats.ground.building import FindingLog, source_file
from joulemap.formats.ground.text import read_json
from joulemap.records.finding import Severity
from joulemap.records.recording import Recording, StatedTotal

__all__ = ["LitertBenchmarkReader"]

_TIMES: Final = {
    "init_ms": "init_s",
    "warmup_first_ms": "first_warmup_latency_s",
    "avg_ms": "mean_latency_s",
    "min_ms": "min_latency_s",
    "max_ms": "max_latency_s",
    "median_ms": "median_latency_s",
    "p5_ms": "p5_latency_s",
    "p95_ms": "p95_latency_s",
}
_COUNT_MAX: Final = 1e12


class LitertBenchmarkReader:
    """Reads ``litert-benchmark --result_json``: stated latencies and the number of runs, no operators and no instants.

    A time of 0.0 is one below 0.005 ms: it is missing, never 0.

    References:
        A file of PyPI ai-edge-litert 2.3.0 (FORMATS_MORE, "TFLite benchmark_model op profile").
    """

    name: ClassVar[str] = "litert-benchmark"
    certainty: ClassVar[Certainty] = Certainty.WRITTEN
    folders: ClassVar[bool] = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Returns 1 for an object with the keys of the tool."""
        del path
        keys = (b'"latency"', b'"warmup_avg_ms"', b'"accelerators"')
        return 1.0 if head.lstrip().startswith(b"{") and all(key in head[:8192] for key in keys) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Recording:
        """Returns the latencies as stated figures, s.

        Raises:
            FormatError: no such object, or no time above the tool's resolution.
        """
        del options
        document = read_json(path)
        latency = document.get("latency") if isinstance(document, dict) else None
        if not isinstance(latency, dict):
            raise FormatError(
                f"{path.name} holds no latencies", hint="Use litert-benchmark --result_json.", slug="json-unexpected"
            )
        log = FindingLog()
        totals = _totals(latency, log)
        if not totals:
            raise FormatError(
                f"{path.name} holds no time above 0.005 ms", hint="Measure a larger model.", slug="recording-empty"
            )
        log.add("no_power", "the result holds no power and no time axis", severity=Severity.INFO)
        return Recording(
            format=self.name,
            sources=(source_file(path),),
            totals=tuple(totals),
            metadata={
                key: str(document[key])[:200] for key in ("model", "accelerators", "num_threads") if key in document
            },
            findings=log.findings(),
        )


def _totals(latency: dict[str, Any], log: FindingLog) -> list[StatedTotal]:
    totals = []
    for key, name in _TIMES.items():
        value = latency.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _COUNT_MAX:
            if key in latency:
                log.add("value_unreadable", f"{key} is {str(value)[:40]!r}, no time", key)
        elif value == 0:
            log.add("value_below_resolution", f"{key} is below 0.005 ms: missing, not 0", key, Severity.INFO)
        else:
            totals.append(_stated(name, value * 1e-3, key))
    runs = latency.get("num_runs")
    if isinstance(runs, int) and not isinstance(runs, bool) and 0 < runs < _COUNT_MAX and totals:
        totals.append(_stated("inferences_count", float(runs), "num_runs"))
    return totals


def _stated(key: str, value: float, span: str) -> StatedTotal:
    return StatedTotal(key=key, value=value, provenance=Provenance.MEASURED_SAMPLED, span=span)
