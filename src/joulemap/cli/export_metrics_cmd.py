"""``joulemap export-metrics``: live energy and power for Prometheus or OpenTelemetry, until it is interrupted."""

from __future__ import annotations

import contextlib
import json
import time

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, check_finite, output_options
from joulemap.cli.live_options import endpoint_options, meter_options, seconds_option
from joulemap.cli.streams import tell, write_result
from joulemap.errors import UsageError
from joulemap.workflow.watch.exposition import MetricsEndpoint
from joulemap.workflow.watch.telemetry import OtlpSender, open_otlp_sender, register_instruments
from joulemap.workflow.watch.watching import Watch, describe_domains

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
    sender = open_otlp_sender(interval) if otlp else None
    document = {**document_head("joulemap.export-metrics"), "elapsed_s": 0.0, "otlp": None, "domains": []}
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # the way to end it
        watch = stack.enter_context(Watch(meters, rate_hz=rate))
        if port is not None:
            tell(f"metrics at {stack.enter_context(MetricsEndpoint(watch.refresh, port=port, address=listen)).url}\n")
        if sender is not None:
            stack.callback(sender.close)
            register_instruments(watch.refresh, sender.provider)
            tell(f"sending to {sender.endpoint}\n")
        with contextlib.suppress(KeyboardInterrupt):
            _go_on(watch, sender, seconds)
        document["elapsed_s"], document["domains"] = watch.elapsed_s, describe_domains(watch.refresh())
    if sender is not None:
        sender.require()
        document["otlp"] = {"endpoint": sender.endpoint, "delivered": sender.delivered}
    if invocation.json:
        write_result(json.dumps(document, allow_nan=False) + "\n")
    return 0


def _go_on(watch: Watch, sender: OtlpSender | None, seconds: float) -> None:
    """Refreshes until the time is over, and says when the endpoint takes nothing, and when it does again."""
    failing = False
    while not seconds or watch.elapsed_s < seconds:
        time.sleep(min(1.0, max(seconds - watch.elapsed_s, 0.0)) if seconds else 1.0)
        watch.refresh()
        if sender is not None and failing != bool(sender.failed):
            failing = not failing
            why = f" ({sender.reason})" if sender.reason else ""
            tell(f"{sender.endpoint} takes nothing{why}\n" if failing else f"{sender.endpoint} takes it again\n")
