"""A real HTTP server under load while it is recorded: joules per request and inference, and every way it can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import metrics_server
from program import PROGRAM, leftovers

LOAD = """
import http.client, sys, time
port, count, batch = map(int, sys.argv[1:])
began = time.monotonic()
for number in range(count):
    try:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        link.request("POST", f"/infer?batch={batch}", b"x")
        link.getresponse().read()
        link.close()
    except OSError:
        pass
    time.sleep(max(0.0, began + (number + 1) * 0.02 - time.monotonic()))
"""


@contextmanager
def server(*arguments: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, metrics_server.__file__, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def record(port: int, *flags: str, requests: int = 40, batch: int = 1, cwd: Path) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{port}/metrics"
    meter = f"prometheus:url={url},metric=nv_energy,every_s=0.02"
    meters = ("--meter", meter) if "--meter" not in flags else ()
    load = (sys.executable, "-c", LOAD, str(port), str(requests), str(batch))
    command = [*PROGRAM, "record", *meters, "--rate", "50", "--server", url, *flags, "-o", "r.jm", "--", *load]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def document_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def slugs(document: dict[str, Any]) -> set[str]:
    return {finding["slug"] for finding in document["findings"]}


def test_joules_per_request_and_inference_of_a_triton_server(tmp_path: Path) -> None:
    with server("triton") as port:
        document = document_of(record(port, "--repeats", "3", "--baseline", "0.6", "--json", batch=4, cwd=tmp_path))
        assert document["energy_j"]["boundary"] == "board"
        units = {unit["unit"]: unit for unit in document["work"]["units"]}
        assert set(units) == {"request", "inference"}
        assert units["request"]["counts"] == [40.0, 40.0, 40.0]
        assert units["inference"]["counts"] == [160.0, 160.0, 160.0]
        each, truth_j = units["request"]["energy_per_unit_j"], metrics_server.REQUEST_J
        idle_j = metrics_server.IDLE_W * document["duration_s"]["value"] / 40
        assert abs(each["value"] - truth_j - idle_j) <= 2 * each["expanded"]
        assert each["expanded"] < 0.2 * each["value"]
        above = units["request"]["energy_above_idle_per_unit_j"]
        assert abs(above["value"] - truth_j) <= 2 * above["expanded"]
        assert units["inference"]["energy_per_unit_j"]["value"] == pytest.approx(each["value"] / 4)
        assert units["request"]["units_per_s"]["value"] == pytest.approx(40 / document["duration_s"]["value"], rel=0.02)
        assert not slugs(document) & {"server_lost", "server_restarted", "server_idle", "server_shared"}
        shown = record(port, "--force", cwd=tmp_path)
        assert "per request" in shown.stderr
        assert "nv_inference_request_success" in shown.stderr


SIMULATED = ("--meter", "simulated:mean_w=20", "--json")


def test_a_plain_server_is_counted_without_our_own_questions(tmp_path: Path) -> None:
    with server("plain") as port:
        (unit,) = document_of(record(port, *SIMULATED, cwd=tmp_path))["work"]["units"]
        assert (unit["metric"], unit["counts"]) == ("http_requests_total", [40.0])
        named = ("--count", "answer=http_requests.*", "--force")
        (unit,) = document_of(record(port, *SIMULATED, *named, cwd=tmp_path))["work"]["units"]
        assert (unit["unit"], unit["counts"]) == ("answer", [40.0])


@pytest.mark.parametrize(
    ("flag", "slug", "words"),
    [("--die-after=60", "server_lost", "stopped answering"), ("--reset-after=60", "server_restarted", "fell in run 2")],
)
def test_a_server_that_fails_in_one_of_three_runs_leaves_the_others(
    flag: str, slug: str, words: str, tmp_path: Path
) -> None:
    with server("triton", flag) as port:
        document = document_of(record(port, *SIMULATED, "--repeats", "3", cwd=tmp_path))
        told = [finding["message"] for finding in document["findings"] if finding["slug"] == slug]
        assert told
        assert words in told[0]
        counts = document["work"]["units"][0]["counts"]
        figure = document["work"]["units"][0]["energy_per_unit_j"]
        if slug == "server_lost":
            assert counts == [40.0, None, None]
            assert figure == {"value": None, "provenance": "unavailable", "reason": "samples_lost"}
        else:
            assert counts == [40.0, None, 40.0]
            assert figure["value"] is not None
        assert document["energy_j"]["value"] is not None  # the energy itself is not in doubt


def test_failed_requests_and_no_requests_are_said(tmp_path: Path) -> None:
    with server("triton", "--fail-every", "4") as port:
        document = document_of(record(port, *SIMULATED, cwd=tmp_path))
        assert "requests_failed" in slugs(document)
        assert document["work"]["units"][0]["counts"] == [30.0]
        idle = document_of(record(port, *SIMULATED, "--force", requests=0, cwd=tmp_path))
        assert "server_idle" in slugs(idle)
        assert idle["work"]["units"][0]["energy_per_unit_j"]["reason"] == "nothing_counted"


def test_others_who_load_the_server_are_said(tmp_path: Path) -> None:
    with server("triton") as port:
        others = subprocess.Popen([sys.executable, "-c", LOAD, str(port), "1000", "1"])
        try:
            document = document_of(record(port, *SIMULATED, "--baseline", "0.5", cwd=tmp_path))
        finally:
            others.kill()
            others.wait()
        assert "server_shared" in slugs(document)


@pytest.mark.parametrize(
    ("kind", "flags", "code", "word"),
    [
        ("bare", (), 3, "server-uncounted"),
        (None, (), 3, "server-silent"),
        ("triton", ("--count", "request"), 2, "flag-form"),
        ("triton", ("--count", "request=("), 2, "flag-form"),
    ],
)
def test_a_server_that_cannot_be_counted_is_refused_before_anything_runs(
    kind: str | None, flags: tuple[str, ...], code: int, word: str, tmp_path: Path
) -> None:
    with server(kind or "bare") as port:
        done = record(port if kind else 9, *SIMULATED, *flags, cwd=tmp_path)
    assert done.returncode == code
    assert word in done.stderr + done.stdout
    assert leftovers(tmp_path) == []
