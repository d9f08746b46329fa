"""What live readers see, and what other programs are told: never a 0 for what is not known."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from dataclasses import replace

import numpy as np
import pytest

from joulemap.errors import SetupError
from joulemap.meters.live.sampling.ring import RingRows
from joulemap.report.console.style import Style
from joulemap.report.console.watch import WatchedDomain, render_watch
from joulemap.workflow.record.live_power import DomainNow
from joulemap.workflow.watch.exposition import MetricsEndpoint, render_exposition
from joulemap.workflow.watch.telemetry import register_instruments
from joulemap.workflow.watch.watching import describe_domains
from live_captures import COUNTER, POWER, SIGNAL

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
    metrics = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
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
