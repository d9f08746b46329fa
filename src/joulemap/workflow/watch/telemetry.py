"""Live domains as OpenTelemetry metrics: ``hw.energy`` and ``hw.power``, with provenance and boundary as attributes.

The exporter is the one that OpenTelemetry's own environment variables name (``OTEL_EXPORTER_OTLP_ENDPOINT``).

References:
    OpenTelemetry semantic conventions, hardware metrics: hw.energy (counter, J), hw.power (gauge, W), hw.id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from joulemap.errors import SetupError
from joulemap.records.live.domain import DomainReading
from joulemap.workflow.record.live_power import DomainNow

__all__ = ["OtlpSender", "open_otlp_sender", "register_instruments"]

_END_MS: Final = 2000.0
"""What the last sending may take once all is over."""
_LOGGER: Final = "opentelemetry"

Domains = Callable[[], Sequence[DomainNow]]


def register_instruments(domains: Domains, provider: Any) -> None:
    """Has a meter provider observe the domains: every collection asks for their present figures.

    Args:
        domains: gives the present figures.
        provider: an OpenTelemetry ``MeterProvider``.

    Raises:
        SetupError: OpenTelemetry is not installed (``extra-missing``).
    """
    metrics = _load_metrics()
    meter = provider.get_meter("joulemap")

    def observe(figure: Callable[[DomainNow], float], *, now: bool = False) -> Callable[[Any], Iterable[Any]]:
        def callback(_options: Any) -> Iterable[Any]:
            return [
                metrics.Observation(figure(domain), _attributes(domain))
                for domain in domains()
                if domain.domain.reading is not DomainReading.SIGNAL and domain.known and not (now and domain.stale)
            ]

        return callback

    meter.create_observable_counter(
        "hw.energy",
        callbacks=[observe(lambda domain: domain.energy_j)],
        unit="J",
        description="Energy of a whole domain since the exporter began.",
    )
    meter.create_observable_gauge(
        "hw.power",
        callbacks=[observe(lambda domain: domain.power_w, now=True)],
        unit="W",
        description="Power of a whole domain.",
    )


@dataclass(slots=True)
class OtlpSender:
    """Sends over OTLP, and knows what became of it.

    Args:
        provider: takes instruments.
        endpoint: where it sends to.
        delivered: sendings that were taken.
        failed: sendings in a row that were not.
        reason: why the last one was not.
    """

    provider: Any = None
    endpoint: str = ""
    delivered: int = 0
    failed: int = 0
    reason: str = ""

    def close(self) -> None:
        """Sends once more, for two seconds at most, and ends."""
        self.provider.shutdown(timeout_millis=_END_MS)

    def require(self) -> None:
        """Refuses to call it a success when nothing was ever delivered.

        Raises:
            SetupError: nothing was (``otlp-undelivered``).
        """
        if not self.delivered:
            raise SetupError(
                f"nothing was delivered to {self.endpoint}" + (f" ({self.reason})" if self.reason else ""),
                hint="set OTEL_EXPORTER_OTLP_ENDPOINT to where a collector listens, such as http://127.0.0.1:4318",
                slug="otlp-undelivered",
            )

    def note(self, *, taken: bool) -> None:
        """Counts one sending."""
        if taken:
            self.delivered, self.failed, self.reason = self.delivered + 1, 0, ""
        else:
            self.failed += 1


class _Said(logging.Handler):
    """Keeps what the library says of a failure, in place of the library's own lines on stderr."""

    def __init__(self, sender: OtlpSender) -> None:
        super().__init__(logging.WARNING)
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the first line: the later ones only say that it was given up."""
        self._sender.reason = self._sender.reason or " ".join(record.getMessage().split())


def open_otlp_sender(interval_s: float) -> OtlpSender:
    """Returns what sends over OTLP at an interval.

    Raises:
        SetupError: OpenTelemetry's SDK or its OTLP exporter is not installed (``extra-missing``).
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415  an extra
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415  an extra
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415  an extra
            MetricExportResult,
            PeriodicExportingMetricReader,
        )
    except ImportError as error:
        raise _missing() from error
    sender = OtlpSender()

    class Exporter(OTLPMetricExporter):  # type: ignore[misc]  # a class of the library
        """Counts what is taken."""

        def export(self, *args: Any, **named: Any) -> Any:
            result = super().export(*args, **named)
            sender.note(taken=result is MetricExportResult.SUCCESS)
            return result

    logger = logging.getLogger(_LOGGER)
    logger.addHandler(_Said(sender))
    logger.propagate = False
    exporter = Exporter()
    sender.endpoint = str(getattr(exporter, "_endpoint", "") or "the OTLP endpoint")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=interval_s * 1e3)
    sender.provider = MeterProvider(metric_readers=[reader])
    return sender


def _load_metrics() -> Any:
    try:
        from opentelemetry import metrics  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing() from error
    return metrics


def _missing() -> SetupError:
    return SetupError("OpenTelemetry is not installed", hint="pip install 'joulemap[otel]'", slug="extra-missing")


def _attributes(domain: DomainNow) -> dict[str, str]:
    return {
        "hw.id": domain.name,
        "hw.name": domain.name.rpartition(":")[2],
        "hw.type": "power_supply" if str(domain.domain.boundary) in {"node", "wall", "facility"} else "cpu",
        "joulemap.boundary": "" if domain.domain.boundary is None else str(domain.domain.boundary),
        "joulemap.provenance": str(domain.domain.provenance),
    }
