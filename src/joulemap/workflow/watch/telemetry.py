"""Live domains as OpenTelemetry metrics: ``hw.energy`` and ``hw.power``, with provenance and boundary as attributes.

The exporter is the one that OpenTelemetry's own environment variables name (``OTEL_EXPORTER_OTLP_ENDPOINT``).

References:
    OpenTelemetry semantic conventions, hardware metrics: hw.energy (counter, J), hw.power (gauge, W), hw.id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from joulemap.errors import SetupError
from joulemap.records.live.domain import DomainReading
from joulemap.workflow.record.live_power import DomainNow

__all__ = ["open_otlp_provider", "register_instruments"]

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

    def observe(figure: Callable[[DomainNow], float]) -> Callable[[Any], Iterable[Any]]:
        def callback(_options: Any) -> Iterable[Any]:
            return [
                metrics.Observation(figure(domain), _attributes(domain))
                for domain in domains()
                if domain.domain.reading is not DomainReading.SIGNAL and math.isfinite(domain.power_w)
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
        callbacks=[observe(lambda domain: domain.power_w)],
        unit="W",
        description="Power of a whole domain.",
    )


def open_otlp_provider(interval_s: float) -> Any:
    """Returns a meter provider that sends over OTLP at an interval; its ``shutdown`` ends it.

    Raises:
        SetupError: OpenTelemetry's SDK or its OTLP exporter is not installed (``extra-missing``).
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415  an extra
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415  an extra
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing() from error
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=interval_s * 1e3)
    return MeterProvider(metric_readers=[reader])


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
        "joulemap.boundary": str(domain.domain.boundary),
        "joulemap.provenance": str(domain.domain.provenance),
    }
