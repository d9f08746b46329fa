"""A real HTTP server on loopback that works for its requests and tells its counters in Prometheus text.

``python metrics_server.py triton|plain|bare [--die-after N] [--reset-after N] [--fail-every N]`` prints its port. A
POST is one request of ``batch`` inferences (query, default 1). It draws, made up, ``IDLE_W`` and ``REQUEST_J`` for each
request, and counts that as a Triton server counts its GPU.
"""

from __future__ import annotations

import argparse
import http.server
import os
import threading
import time
import urllib.parse

IDLE_W = 20.0
REQUEST_J = 2.0


class Work:
    """What was done."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.posts = 0
        self.base = {"requests": 0, "inferences": 0, "failed": 0}
        self.done = dict(self.base)

    def take(self, batch: int) -> bool:
        with self.lock:
            self.posts += 1
            if self.given.reset_after and self.posts == self.given.reset_after:
                self.done = dict(self.base)
            if self.given.fail_every and self.posts % self.given.fail_every == 0:
                self.done["failed"] += 1
                return False
            self.done["requests"] += 1
            self.done["inferences"] += batch
            return True

    def energy_j(self) -> float:
        return IDLE_W * (time.monotonic() - self.began) + REQUEST_J * self.posts

    def text(self) -> str:
        if self.given.kind == "bare":
            return "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.5\n"
        if self.given.kind == "plain":
            return (
                "# TYPE http_requests_total counter\n"
                f'http_requests_total{{code="200",handler="/infer"}} {self.done["requests"]}\n'
                f'http_requests_total{{code="200",handler="/metrics"}} {self.posts + 7}\n'
            )
        model = '{model="m",version="1"}'
        return (
            "# HELP nv_inference_request_success Number of successful inference requests, all batch sizes\n"
            "# TYPE nv_inference_request_success counter\n"
            f"nv_inference_request_success{model} {self.done['requests']:.6f}\n"
            f'nv_inference_request_failure{{model="m",reason="OTHER",version="1"}} {self.done["failed"]:.6f}\n'
            f"nv_inference_count{model} {self.done['inferences']:.6f}\n"
            f'nv_energy_consumption{{gpu_uuid="GPU-1"}} {self.energy_j():.6f}\n'
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("triton", "plain", "bare"))
    for name in ("--die-after", "--reset-after", "--fail-every"):
        parser.add_argument(name, type=int, default=0)
    work = Work(parser.parse_args())

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(200, work.text())

        def do_POST(self) -> None:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            good = work.take(int(query.get("batch", ["1"])[0]))
            self.answer(200 if good else 500, "{}")
            if work.given.die_after and work.posts >= work.given.die_after:
                os._exit(1)

        def answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)  # noqa: T201  whoever started it reads it
    server.serve_forever()


if __name__ == "__main__":
    main()
