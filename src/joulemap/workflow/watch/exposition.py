"""Live domains as Prometheus text, and the endpoint that serves it. Loopback unless another address is asked for.

References:
    Prometheus text exposition format 0.0.4; OpenTelemetry semantic conventions, hardware metrics (``hw.energy`` in J,
    ``hw.power`` in W), with names as their Prometheus exporter writes them.
"""

from __future__ import annotations

import functools
import socket
import socketserver
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
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.1

Domains = Callable[[], Sequence[DomainNow]]


def render_exposition(domains: Sequence[DomainNow]) -> str:
    """Returns the domains as text; what is not known, or no longer, has no line, and never the value 0.

    Energy counts from the beginning of the watch; time that it does not hold is a counter of its own. Labels say what a
    figure is: boundary and provenance.
    """
    seen = [d for d in domains if d.domain.reading is not DomainReading.SIGNAL and d.known]
    signals = [d for d in domains if d.domain.reading is DomainReading.SIGNAL and d.known and not d.stale]
    lines = [
        "# HELP hw_energy_joules_total Energy of a whole domain since the exporter began.",
        "# TYPE hw_energy_joules_total counter",
        *(f"hw_energy_joules_total{_labels(d)} {d.energy_j!r}" for d in seen),
        "# HELP hw_energy_lost_seconds_total Time whose energy is not known and not in hw_energy_joules_total.",
        "# TYPE hw_energy_lost_seconds_total counter",
        *(f"hw_energy_lost_seconds_total{_labels(d)} {d.lost_s!r}" for d in seen),
        "# HELP hw_power_watts Power of a whole domain; no line while its meter says nothing.",
        "# TYPE hw_power_watts gauge",
        *(f"hw_power_watts{_labels(d)} {d.power_w!r}" for d in seen if not d.stale),
    ]
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


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; a client that says nothing is left after a while."""

    timeout = _PATIENCE_S
    domains: Domains

    def do_GET(self) -> None:
        """Answers ``/metrics``."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answers what ``GET`` would, without the text."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.path.partition("?")[0] not in {"/", "/metrics"}:
            self.send_error(404)
            return
        text = render_exposition(type(self).domains()).encode("utf-8", "replace")
        self.send_response(200)
        self.send_header("Content-Type", _CONTENT)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def version_string(self) -> str:
        """Returns what stands as the server: nothing of this machine."""
        return "joulemap"

    def log_message(self, *_: object) -> None:
        """Says nothing: stderr is not the library's."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def server_bind(self) -> None:
        """Binds without asking who this machine is called: a name server may take long to answer."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def _leave(self, request: object, client_address: object) -> None:
        """Says nothing: a client that goes away is no fault, and it sees for itself what it did not get."""

    handle_error = _leave  # the library's name


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
        class Server(_Server):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        class Handler(_Handler):
            """Of this endpoint."""

        Handler.domains = staticmethod(domains)
        self._address = f"[{address}]" if ":" in address else address
        try:
            self._server = Server((address, port), Handler)
        except (OSError, OverflowError, UnicodeError) as error:
            raise SetupError(
                f"{self._address}:{port}: cannot listen there ({error})",
                hint="name another port, or 0 for any free one; --listen takes an address of this machine",
                slug="port-unusable",
            ) from error

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Where the metrics are."""
        return f"http://{self._address}:{self.port}/metrics"

    def __enter__(self) -> Self:
        serve = functools.partial(self._server.serve_forever, poll_interval=_POLL_S)
        threading.Thread(target=serve, name="joulemap-metrics", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
