"""``joulemap watch``: every domain live, as a table, as lines, as JSON lines, and for Prometheus if asked."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence

import click

from joulemap.cli.document import document_head
from joulemap.cli.invocation import Invocation, check_finite, is_unicode, output_options
from joulemap.cli.live_options import endpoint_options, meter_options, seconds_option
from joulemap.cli.streams import tell, write_result
from joulemap.records.live.domain import DomainReading
from joulemap.report.console.style import Style
from joulemap.report.console.watch import WatchedDomain, build_table, render_watch
from joulemap.workflow.record.live_power import DomainNow
from joulemap.workflow.watch.exposition import MetricsEndpoint
from joulemap.workflow.watch.watching import Watch, describe_domains

__all__ = ["command"]


@click.command("watch", context_settings={"show_default": True})
@meter_options
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 3600),
    default=0.5,
    metavar="S",
    callback=check_finite,
    help="Between two views, s.",
)
@seconds_option
@click.option("--once", is_flag=True, help="Show one view after the first interval, and end.")
@endpoint_options
@output_options
@click.pass_context
def command(
    context: click.Context,
    /,
    meters: tuple[str, ...],
    *,
    rate: float,
    interval: float,
    seconds: float,
    once: bool,
    port: int | None,
    listen: str,
) -> int:
    """Show power and energy of every domain, live; with --json one line a view."""
    invocation = context.ensure_object(Invocation)
    invocation.check()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # the way to end it
        watch = stack.enter_context(Watch(meters, rate_hz=rate))
        if port is not None:
            tell(f"metrics at {stack.enter_context(MetricsEndpoint(watch.refresh, port=port, address=listen)).url}\n")
        views = _views(watch, interval, interval if once else seconds)
        if invocation.json:
            for elapsed_s, domains in views:
                if not write_result(json.dumps(_document(elapsed_s, domains), allow_nan=False) + "\n"):
                    break  # nobody reads it any more
        else:
            _show(views, Style(color=invocation.color(sys.stdout), unicode=is_unicode(sys.stdout)), once=once)
    return 0


def _views(watch: Watch, interval_s: float, seconds: float) -> Iterator[tuple[float, Sequence[DomainNow]]]:
    watch.refresh()
    while True:
        time.sleep(interval_s)
        domains = watch.refresh()
        yield watch.elapsed_s, domains
        if seconds and watch.elapsed_s >= seconds:
            return


def _show(views: Iterator[tuple[float, Sequence[DomainNow]]], style: Style, *, once: bool) -> None:
    if once or not sys.stdout.isatty():
        for _, domains in views:
            if not write_result(render_watch([_row(domain) for domain in domains], style=style)):
                return
        return
    from rich.console import Console  # noqa: PLC0415  only a terminal needs it
    from rich.live import Live  # noqa: PLC0415  as above

    console = Console(no_color=not style.color)
    with Live(console=console, auto_refresh=False) as live:
        for elapsed_s, domains in views:
            live.update(build_table([_row(domain) for domain in domains], elapsed_s, style), refresh=True)


def _row(domain: DomainNow) -> WatchedDomain:
    signal = domain.domain.reading is DomainReading.SIGNAL
    return WatchedDomain(
        name=domain.name,
        value=domain.power_w,
        unit=domain.domain.unit if signal else "W",
        energy_j=domain.energy_j,
        boundary="" if domain.domain.boundary is None else str(domain.domain.boundary),
        provenance=str(domain.domain.provenance),
        stale=domain.stale,
        peak=domain.peak_w,
    )


def _document(elapsed_s: float, domains: Sequence[DomainNow]) -> dict[str, object]:
    return {
        **document_head("joulemap.watch"),
        "time_ns": time.time_ns(),
        "elapsed_s": elapsed_s,
        "domains": describe_domains(domains),
    }
