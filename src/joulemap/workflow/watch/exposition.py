"""Live domains as Prometheus text, and the endpoint that serves it. Loopback unless another address is asked for.

References:
    Prometheus text exposition format 0.0.4; OpenTelemetry semantic conventions, hardware metrics (``hw.energy`` in J,
    ``hw.power`` in W), with names as their Prometheus exporter writes them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

from joulemap.errors import SetupError
from joulemap.records.live.domain import DomainReading
from joulemap.workflow.record.live_power import DomainNow

__all__ = ["MetricsEndpoint", "render_exposition"]

_CONTENT: Final = "text/plain; version=0.0.4; charset=utf-8"

Domains = Callable[[], Sequence[DomainNow]]


def render_exposition(domains: Sequence[DomainNow]) -> str:
    """Returns the domains as text; what is not known has no line, and never the value 0.

    Energy counts from the beginning of the watch. Labels say what a figure is: boundary and provenance.
    """
    lines = [
        "# HELP hw_energy_joules_total Energy of a whole domain since the exporter began.",
        "# TYPE hw_energy_joules_total counter",
    ]
    power = [d for d in domains if d.domain.reading is not DomainReading.SIGNAL and math.isfinite(d.power_w)]
    lines += [f"hw_energy_joules_total{_labels(d)} {d.energy_j!r}" for d in power]
    lines += ["# HELP hw_power_watts Power of a whole domain.", "# TYPE hw_power_watts gauge"]
    lines += [f"hw_power_watts{_labels(d)} {d.power_w!r}" for d in power]
    signals = [d for d in domains if d.domain.reading is DomainReading.SIGNAL and math.isfinite(d.power_w)]
    if signals:
        lines += ["# HELP hw_signal Something that is no power, in the unit of its label.", "# TYPE hw_signal gauge"]
        lines += [f"hw_signal{_labels(d, unit=d.domain.unit)} {d.power_w!r}" for d in signals]
    return "\n".join(lines) + "\n"


def _labels(domain: DomainNow, **more: str) -> str:
    meter, _, name = domain.name.rpartition(":")
    labels = {
        "hw_id": domain.name,
        "hw_name": name,
        "meter": meter,
        "boundary": "" if domain.domain.boundary is None else str(domain.domain.boundary),
        "provenance": str(domain.domain.provenance),
        **more,
    }
    return "{" + ",".join(f'{key}="{_escape(value)}"' for key, value in labels.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsEndpoint:
    """Serves ``/metrics`` from a thread; a context manager.

    Args:
        domains: gives what is to be served.
        port: 0 for any free one.
        address: to listen at; loopback by default.

    Raises:
        SetupError: the port is taken or not allowed (``port-unusable``).
    """

    def __init__(self, domains: Domains, *, port: int, address: str = "127.0.0.1") -> None:
        class Handler(BaseHTTPRequestHandler):
            """Answers one request."""

            def do_GET(self) -> None:
                """Answers ``/metrics``."""
                if self.path.partition("?")[0] not in {"/", "/metrics"}:
                    self.send_error(404)
                    return
                body = render_exposition(domains()).encode()
                self.send_response(200)
                self.send_header("Content-Type", _CONTENT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing: stderr is not the library's."""

        try:
            self._server = ThreadingHTTPServer((address, port), Handler)
        except (OSError, OverflowError) as error:
            raise SetupError(
                f"{address}:{port}: cannot listen there ({error})",
                hint="name another port, or 0 for any free one",
                slug="port-unusable",
            ) from error
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="joulemap-metrics", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
