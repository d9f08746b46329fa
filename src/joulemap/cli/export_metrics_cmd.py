"""``joulemap export-metrics``: live energy and power for Prometheus or OpenTelemetry, until it is interrupted."""

from __future__ import annotations

import contextlib
import time

import click

from joulemap.cli.invocation import Invocation, check_finite, output_options
from joulemap.cli.live_options import endpoint_options, meter_options, seconds_option
from joulemap.cli.streams import tell
from joulemap.errors import UsageError
from joulemap.workflow.watch.exposition import MetricsEndpoint
from joulemap.workflow.watch.telemetry import open_otlp_provider, register_instruments
from joulemap.workflow.watch.watching import Watch

__all__ = ["command"]


@click.command("export-metrics", context_settings={"show_default": True})
@meter_options
@endpoint_options
@click.option("--otlp", is_flag=True, help="Send over OTLP, to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    metavar="S",
    callback=check_finite,
    help="Between two sendings over OTLP, s.",
)
@seconds_option
@output_options
@click.pass_context
def command(
    context: click.Context,
    /,
    meters: tuple[str, ...],
    *,
    rate: float,
    port: int | None,
    listen: str,
    otlp: bool,
    interval: float,
    seconds: float,
) -> int:
    """Offer hw.energy and hw.power of every domain to Prometheus or OpenTelemetry."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    if port is None and not otlp:
        raise UsageError(
            "export-metrics: nothing to offer to", hint="give --prometheus PORT, --otlp, or both", slug="no-output"
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # the way to end it
        provider = open_otlp_provider(interval) if otlp else None
        watch = stack.enter_context(Watch(meters, rate_hz=rate))
        if port is not None:
            endpoint = stack.enter_context(MetricsEndpoint(watch.refresh, port=port, address=listen))
            tell(f"metrics at http://{listen}:{endpoint.port}/metrics\n")
        if provider is not None:
            stack.callback(provider.shutdown)
            register_instruments(watch.refresh, provider)
        while not seconds or watch.elapsed_s < seconds:
            time.sleep(min(1.0, seconds - watch.elapsed_s) if seconds else 1.0)
            watch.refresh()
    return 0
