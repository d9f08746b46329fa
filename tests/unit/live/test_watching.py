"""What live readers see, and what other programs are told: never a 0 for what is not known."""

from __future__ import annotations

import http.client
import json
import math
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import SetupError
from joulemap.meters.live.sampling.ring import RingRows
from joulemap.report.console.style import Style
from joulemap.report.console.watch import WatchedDomain, render_watch
from joulemap.workflow.record.live_power import DomainNow, LivePower
from joulemap.workflow.watch.exposition import MetricsEndpoint, render_exposition
from joulemap.workflow.watch.telemetry import open_otlp_sender, register_instruments
from joulemap.workflow.watch.watching import describe_domains
from live_captures import COUNTER, POWER, SIGNAL, header_of
from program import call

S = 10**9


def rows(stamps: list[float], raw: list[float]) -> RingRows:
    return RingRows(
        stamp_ns=np.array([round(at * S) for at in stamps], np.int64), raw=np.array(raw, np.float64)[:, None], lost=0
    )


def test_a_counter_gives_power_and_energy_over_a_wrap() -> None:
    now = DomainNow("m:package-0", COUNTER)
    now.take(rows([1.0, 1.5], [2.0**32 - 5e6, 2.0**32 - 1e6]), 0)
    assert now.power_w == pytest.approx(8.0)
    now.take(rows([2.0], [3e6]), 0)
    assert now.power_w == pytest.approx(8.0)
    assert now.energy_j == pytest.approx(8.0)
    now.take(rows([2.1], [math.nan]), 0)
    assert now.energy_j == pytest.approx(8.0)


def test_a_counter_that_was_reset_adds_nothing() -> None:
    now = DomainNow("m:package-0", COUNTER)
    now.take(rows([1.0, 2.0], [5e6, 25e6]), 0)
    now.take(rows([3.0], [1e6]), 0)
    assert now.energy_j == pytest.approx(20.0)
    now.take(rows([4.0], [21e6]), 0)
    assert now.energy_j == pytest.approx(40.0)


def test_a_power_is_summed_over_its_intervals() -> None:
    now = DomainNow("m:board", POWER)
    now.take(rows([1.0, 1.5, 2.0], [10.0, 20.0, 30.0]), 0)
    assert now.energy_j == pytest.approx(25.0)
    assert now.power_w == pytest.approx(20.0)


def test_what_is_not_known_has_no_number_anywhere() -> None:
    unknown, signal = DomainNow("m:package-0", COUNTER), DomainNow("m:temp", SIGNAL)
    signal.take(rows([1.0], [45_000.0]), 0)
    text = render_exposition([unknown, signal])
    assert "hw_power_watts{" not in text
    assert (
        'hw_signal{hw_id="m:temp",hw_name="temp",meter="m",boundary="",provenance="measured_sampled",unit="degC"} 45'
        in text
    )
    document = json.dumps(describe_domains([unknown, signal]), allow_nan=False)
    assert '"power_w": null, "energy_j": null' in document
    assert '"value": 45.0' in document


def test_labels_are_escaped() -> None:
    odd = DomainNow('m:a"b\\c\nd', replace(COUNTER, name='a"b\\c\nd'))
    odd.take(rows([1.0, 2.0], [0.0, 7e6]), 0)
    line = next(line for line in render_exposition([odd]).splitlines() if line.startswith("hw_power_watts{"))
    assert 'hw_name="a\\"b\\\\c\\nd"' in line
    assert line.endswith(" 7.0")


def test_an_endpoint_serves_metrics_and_nothing_else() -> None:
    now = DomainNow("m:board", POWER)
    now.take(rows([1.0, 2.0], [10.0, 10.0]), 0)
    with MetricsEndpoint(lambda: [now], port=0) as endpoint:
        base = f"http://127.0.0.1:{endpoint.port}"
        with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert 'hw_power_watts{hw_id="m:board"' in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{base}/etc/passwd", timeout=10)
        caught.value.close()
        assert caught.value.code == 404
        with pytest.raises(SetupError) as taken:
            MetricsEndpoint(lambda: [now], port=endpoint.port)
        assert taken.value.slug == "port-unusable"


def test_opentelemetry_sees_energy_and_power() -> None:
    from opentelemetry.sdk import metrics
    from opentelemetry.sdk.metrics import export

    now = DomainNow("m:board", POWER)
    now.take(rows([1.0, 2.0], [10.0, 10.0]), 0)
    unknown = DomainNow("m:package-0", COUNTER)
    reader = export.InMemoryMetricReader()
    provider = metrics.MeterProvider(metric_readers=[reader])
    register_instruments(lambda: [now, unknown], provider)
    collected = json.loads(reader.get_metrics_data().to_json())
    provider.shutdown()
    found = {m["name"]: m for m in collected["resource_metrics"][0]["scope_metrics"][0]["metrics"]}
    assert found["hw.energy"]["unit"] == "J"
    (energy,) = found["hw.energy"]["data"]["data_points"]
    assert energy["value"] == pytest.approx(10.0)
    assert energy["attributes"]["joulemap.provenance"] == "measured_sampled"
    assert energy["attributes"]["joulemap.boundary"] == "board"
    assert found["hw.power"]["data"]["data_points"][0]["value"] == pytest.approx(10.0)


def test_a_view_says_what_has_no_reading_and_what_is_stale() -> None:
    known = WatchedDomain(
        name="a", value=12.0, unit="W", energy_j=3.0, boundary="package", provenance="measured_counter"
    )
    views = [known, replace(known, name="b", value=math.nan, energy_j=0.0), replace(known, name="c", stale=True)]
    text = render_watch(views, style=Style(color=False, unicode=False))
    assert "12" in text.splitlines()[0]
    assert "no reading yet" in text.splitlines()[1]
    assert text.splitlines()[2].endswith("stale")


def test_a_counter_that_wraps_twice_between_two_looks_is_followed_row_by_row() -> None:
    now = DomainNow("m:package-0", replace(COUNTER, largest_w=None))
    top = 2.0**32
    now.take(rows([1.0, 2.0, 3.0, 4.0, 5.0], [top - 1e6, 1e9, top - 1e6, 1e9, top - 1e6]), 0)
    assert now.energy_j == pytest.approx(2 * top * 1e-6)


def test_a_meter_that_is_gone_goes_stale_and_nothing_is_made_up_for_the_gap() -> None:
    power, count = DomainNow("m:board", POWER), DomainNow("m:package-0", replace(COUNTER, modulus=2.0**40))
    power.take(rows([1.0, 2.0], [10.0, 10.0]), 0)
    count.take(rows([1.0, 2.0], [0.0, 10e6]), 0)
    for domain in (power, count):
        domain.take(rows([3.0, 6.0], [math.nan, math.nan]), 0)
        domain.look(6 * S)
        assert domain.stale
        assert domain.energy_j == pytest.approx(10.0)
    text = render_exposition([power, count])
    assert "hw_power_watts{" not in text
    assert text.count("hw_energy_joules_total{") == 2
    document = describe_domains([power, count])
    assert [domain["power_w"] for domain in document] == [None, None]
    assert [domain["energy_j"] for domain in document] == pytest.approx([10.0, 10.0])
    assert [domain["age_s"] for domain in document] == pytest.approx([4.0, 4.0])
    power.take(rows([32.0, 33.0], [10.0, 10.0]), 0)  # 30 s of which nobody knows
    count.take(rows([32.0, 33.0], [310e6, 320e6]), 0)  # the counter itself counted them
    assert (power.energy_j, power.lost_s) == pytest.approx((20.0, 30.0))
    assert (count.energy_j, count.lost_s) == pytest.approx((320.0, 0.0))


def test_a_counter_that_stands_still_has_no_power_of_zero() -> None:
    now = DomainNow("m:package-0", COUNTER)
    now.take(rows([1.0, 2.0], [0.0, 5e6]), 0)
    now.take(rows([3.0, 4.0, 5.0, 6.0], [5e6, 5e6, 5e6, 5e6]), 0)
    now.look(6 * S)
    assert now.stale
    assert describe_domains([now])[0]["power_w"] is None


def test_a_pause_in_which_a_counter_may_have_wrapped_unseen_is_lost() -> None:
    bounded = replace(COUNTER, modulus=100e6, largest_w=50.0)  # 100 J: two seconds at the utmost
    now = DomainNow("m:package-0", bounded)
    now.take(rows([1.0, 2.0], [0.0, 5e6]), 0)
    now.take(rows([12.0], [7e6]), 0)
    assert (now.energy_j, now.lost_s) == pytest.approx((5.0, 10.0))


def test_slow_meters_are_given_their_time() -> None:
    live = LivePower(header_of(COUNTER, period_s=10.0), now_ns=lambda: 0)
    (domain,) = live.refresh(None)
    assert domain.fresh_s == pytest.approx(30.0)  # a reading every ten seconds


def test_rude_clients_leave_no_word_on_stderr_and_the_endpoint_serves_on(capfd: pytest.CaptureFixture[str]) -> None:
    now = DomainNow("m:\ud800board", POWER)
    now.take(rows([1.0, 2.0], [10.0, 10.0]), 0)
    with MetricsEndpoint(lambda: [now], port=0) as endpoint:
        silent = [socket.create_connection(("127.0.0.1", endpoint.port)) for _ in range(20)]
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", endpoint.port)) as rude:
                rude.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, unread
        answers: list[tuple[int, bool]] = []

        def scrape() -> None:
            caller = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
            caller.request("GET", "/metrics")
            answer = caller.getresponse()
            answers.append((answer.status, b"hw_power_watts{" in answer.read()))
            caller.close()

        scrapers = [threading.Thread(target=scrape) for _ in range(200)]
        for scraper in scrapers:
            scraper.start()
        for scraper in scrapers:
            scraper.join()
        caller = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
        caller.request("HEAD", "/metrics")
        answer = caller.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 100
        caller.close()
        for connection in silent:
            connection.close()
    assert answers == [(200, True)] * 200
    assert capfd.readouterr().err == ""


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no loopback address of IPv6")
def test_an_endpoint_listens_on_ipv6_too() -> None:
    with MetricsEndpoint(list, port=0, address="::1") as endpoint:
        assert endpoint.url == f"http://[::1]:{endpoint.port}/metrics"
        with urllib.request.urlopen(endpoint.url, timeout=10) as answer:
            assert answer.status == 200


def test_an_endpoint_that_takes_nothing_is_told_and_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    sender = open_otlp_sender(3600.0)
    register_instruments(list, sender.provider)
    sender.close()
    with pytest.raises(SetupError) as caught:
        sender.require()
    assert caught.value.slug == "otlp-undelivered"
    assert caught.value.exit_code == 3
    sender.note(taken=True)
    sender.note(taken=False)
    sender.require()  # what was delivered once is no error
    assert sender.failed == 1


def test_a_watch_ends_with_its_reader(tmp_path: Path) -> None:
    watch = f"{sys.executable} -m joulemap watch --meter simulated --interval 0.05"
    for flags in ("", " --json"):
        script = f"set -o pipefail; {watch}{flags} | head -n 2"
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")


def test_exported_figures_are_a_document_at_the_end() -> None:
    done = call("export-metrics", "--meter", "simulated:mean_w=20", "--prometheus", "0", "--seconds", "1", "--json")
    assert done.code == 0
    assert done.err.startswith("metrics at http://127.0.0.1:")
    document = done.json
    assert document["schema"] == "joulemap.export-metrics"
    assert document["otlp"] is None
    (domain,) = document["domains"]
    assert domain["power_w"] == pytest.approx(20.0, rel=0.05)
    assert domain["provenance"] == "simulated"
