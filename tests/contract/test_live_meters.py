"""What every driver of live meters must do, on something that it can read here."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from joulemap.errors import PowerError, SetupError, UsageError
from joulemap.estimate import Provenance
from joulemap.meters.live.base import LiveMeter
from joulemap.meters.live.discovery import discover, find_meters
from joulemap.meters.live.registry import driver, driver_names, open_meter
from joulemap.records.live.domain import DomainReading, MeterAddress
from live_benches import BENCHES, LASTING, LiveBench, live_bench

WAIT_S = 10.0
MEASURED = {Provenance.MEASURED_COUNTER, Provenance.MEASURED_SAMPLED}


@pytest.fixture(params=driver_names())
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def bench(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBench]:
    with live_bench(name, tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def meter(name: str, bench: LiveBench) -> Iterator[LiveMeter]:
    opened = open_meter(MeterAddress(driver=name, options=bench.options))
    yield opened
    opened.close()


def read(meter: LiveMeter) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    raw = np.full(len(meter.domains), -1.0)
    meter.read(raw)
    return raw


def lost_by_reading(meter: LiveMeter) -> str | None:
    try:
        read(meter)
    except PowerError as error:
        return error.slug
    return None


def test_every_driver_has_a_bench() -> None:
    assert set(BENCHES) == set(driver_names())


def test_every_driver_says_what_it_reads(name: str) -> None:
    assert driver(name).SUMMARY
    assert not driver(name).EXAMPLE or driver(name).EXAMPLE.startswith(f"{name}:")


def test_what_must_be_asked_for_is_not_found_by_itself(name: str) -> None:
    found = driver(name).discover_meters(None)
    assert not (driver(name).EXAMPLE and found)
    assert all(candidate.address.driver == name for candidate in found)


def test_discovery_on_any_machine_tells_a_problem_or_domains() -> None:
    found = discover()
    names = [candidate.name for candidate in found]
    assert len(set(names)) == len(names)
    assert all(bool(candidate.domains) != bool(candidate.problem) for candidate in found)


def test_a_meter_that_is_there_is_found_and_opens_as_it_was_told(name: str, bench: LiveBench) -> None:
    found = [candidate for candidate in driver(name).discover_meters(bench.options) if candidate.usable]
    assert found, [candidate.problem for candidate in driver(name).discover_meters(bench.options)]
    for candidate in found:
        meter = open_meter(pickle.loads(pickle.dumps(candidate.address)))
        try:
            assert [domain.name for domain in meter.domains] == [
                domain.name for domain in candidate.domains or meter.domains
            ]
        finally:
            meter.close()


def test_domains_are_declared_in_full(name: str, meter: LiveMeter) -> None:
    names = [domain.name for domain in meter.domains]
    assert names
    assert len(set(names)) == len(names)
    powers = [domain for domain in meter.domains if domain.boundary is not None]
    assert bool(powers) == (name != "host")
    for domain in meter.domains:
        assert domain.source
        assert all(outer in names or ":" in outer for outer in domain.inside)
        assert domain.name not in domain.inside
    for domain in powers:
        assert domain.unit == ("J" if domain.reading is DomainReading.ENERGY_COUNTER else "W")
        assert domain.provenance is not Provenance.UNAVAILABLE


def test_a_measured_figure_comes_from_a_meter(name: str, meter: LiveMeter) -> None:
    powers = [domain.provenance for domain in meter.domains if domain.boundary is not None]
    if name in {"simulated", "replay"}:
        assert set(powers) == {Provenance.SIMULATED}
    elif name in {"estimate", "powermetrics"}:
        assert set(powers) == {Provenance.ESTIMATED}
    else:
        assert set(powers) <= MEASURED


def test_readings_fill_every_place_and_counters_never_fall(meter: LiveMeter) -> None:
    first = read(meter)
    for _ in range(20):
        time.sleep(0.003)
        second = read(meter)
        assert not (second == -1.0).any()
        for at, domain in enumerate(meter.domains):
            if domain.reading is DomainReading.ENERGY_COUNTER:
                assert second[at] >= first[at]
                if domain.largest_w is not None:
                    assert (second[at] - first[at]) * domain.scale <= domain.largest_w * 1.0
        first = second
    powers = [at for at, domain in enumerate(meter.domains) if domain.reading is not DomainReading.SIGNAL]
    assert np.isfinite(first[powers]).all()


def test_opening_twice_and_closing_twice_change_nothing(name: str, bench: LiveBench) -> None:
    meter = driver(name).build_meter(MeterAddress(driver=name, options=bench.options))
    meter.open()
    domains = meter.domains
    meter.open()
    assert meter.domains == domains
    meter.close()
    meter.close()
    meter.open()
    assert [domain.name for domain in meter.domains] == [domain.name for domain in domains]
    assert read(meter).size == len(domains)
    meter.close()


def test_an_option_that_does_not_exist_is_refused(name: str, bench: LiveBench) -> None:
    with pytest.raises(UsageError) as caught:
        driver(name).build_meter(MeterAddress(driver=name, options={**bench.options, "nonsense": "1"}))
    assert caught.value.slug == "meter-option"
    assert caught.value.hint


@pytest.mark.parametrize("name", sorted(set(driver_names()) - LASTING), indirect=True)
def test_a_meter_that_goes_away_is_lost_and_does_not_open(name: str, bench: LiveBench) -> None:
    assert bench.take_away is not None
    address = MeterAddress(driver=name, options=bench.options)
    meter = open_meter(address)
    bench.take_away()
    deadline = time.monotonic() + WAIT_S
    lost = None
    while lost is None and time.monotonic() < deadline:
        lost = lost_by_reading(meter)
        time.sleep(0.005)
    assert lost == "meter-lost"
    meter.close()
    with pytest.raises(SetupError) as refused:
        open_meter(address)
    assert refused.value.slug == "meter-unusable"


def test_a_meter_is_named_by_driver_and_options(name: str, bench: LiveBench) -> None:
    text = name + ":" + ",".join(f"{key}={value.replace(',', ',,')}" for key, value in bench.options.items())
    found = find_meters([text if bench.options else name])
    assert found
    assert all(candidate.usable and candidate.address.driver == name for candidate in found)
    assert json.dumps(dict(found[0].address.options))
